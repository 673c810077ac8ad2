import { resolveFolder } from '../../schema/values.ts'
import type { OpenSource } from '../source.ts'
import type { source } from './config.ts'

/** Opens a folder of files as documents. */
export const open: OpenSource<typeof source> = async (options, { folder, log, documents }) => {
  const { files } = await import('./index.ts')
  const { rules = [], defaultExcludes } = options
  const { except = [] } = typeof defaultExcludes === 'object' ? defaultExcludes : {}
  return documents(await files({ ...options, root: resolveFolder(options.root, folder), log }), {
    // In another encoding, the heading is only known after decoding.
    headings: rules.flatMap(({ title, match }) => (title === 'heading' ? [match].flat() : [])),
    except,
    findsTwins: true,
  })
}
