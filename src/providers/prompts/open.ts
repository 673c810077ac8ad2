import { defined } from '../../core/kit/object.ts'
import { type FolderContext, locateRoot, type OpenSource, type OptionsOf } from '../source.ts'
import type { source } from './config.ts'

const usual = ['**/*.md']

/** The files are redacted before prompts are made from them. */
export const open: OpenSource<typeof source> = async (options, context) => {
  const { log, documents } = context
  const [{ files }, { prompts }] = await Promise.all([import('../files/index.ts'), import('./index.ts')])
  const { limit, include = usual } = options
  const provider = await files({ ...options, include, ...locateRoot(options, context), log })
  return prompts({ source: await documents(provider, { frontMatter: usual }), log, ...defined({ limit }) })
}

/** @throws ResourceError `invalid` for a folder that cannot be opened. */
export async function leftOut(options: OptionsOf<(typeof source)['shape']>, context: FolderContext) {
  const { openLeftOut } = await import('../files/index.ts')
  return openLeftOut({ ...options, include: options.include ?? usual, ...locateRoot(options, context) })
}
