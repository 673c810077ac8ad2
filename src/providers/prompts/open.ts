import { defined } from '../../core/kit/object.ts'
import { resolveFolder } from '../../schema/values.ts'
import type { OpenSource } from '../source.ts'
import type { source } from './config.ts'

/** Opens a folder of prompts. They are made of its documents, so they are redacted as these are. */
export const open: OpenSource<typeof source> = async (options, { folder, log, documents }) => {
  const [{ files }, { prompts }] = await Promise.all([import('../files/index.ts'), import('./index.ts')])
  const { limit, include = ['**/*.md'] } = options
  const opened = await files({ ...options, include, root: resolveFolder(options.root, folder), log })
  return prompts({ source: await documents(opened, { frontMatter: ['**/*.md'] }), log, ...defined({ limit }) })
}
