import { type FolderContext, locateRoot, type OpenSource, type OptionsOf } from '../source.ts'
import type { source } from './config.ts'

export const open: OpenSource<typeof source> = async (options, context) => {
  const { log, documents, languages = ['ja', 'en'] } = context
  const { files } = await import('./index.ts')
  const { rules = [], defaultExcludes } = options
  const { except = [] } = typeof defaultExcludes === 'object' ? defaultExcludes : {}
  return documents(await files({ ...options, ...locateRoot(options, context), languages, log }), {
    // The heading of a file in another encoding is known only after decoding.
    headings: rules.flatMap(({ title, match }) => (title === 'heading' ? [match].flat() : [])),
    except,
    findsTranslations: true,
  })
}

/** Opens the explainer of files left out of the folder. @throws ResourceError `invalid` for a folder that cannot be opened. */
export async function leftOut(options: OptionsOf<(typeof source)['shape']>, context: FolderContext) {
  const { openLeftOut } = await import('./index.ts')
  return openLeftOut({ ...options, ...locateRoot(options, context) })
}
