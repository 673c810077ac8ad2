import { defined } from '../../core/kit/object.ts'
import { decoded } from '../../wrap/decoded.ts'
import { sliced } from '../../wrap/sliced.ts'
import { type FolderContext, locateRoot, type OpenSource, type OptionsOf } from '../source.ts'
import type { source } from './config.ts'

export const open: OpenSource<typeof source> = async (mountOptions, context) => {
  const { log, redaction } = context
  const [{ files }, { settings }] = await Promise.all([import('../files/index.ts'), import('./index.ts')])
  const { dotenv = true, formats, timeout, show, allow, maxBytes, maxDepth, maxNodes, ...options } = mountOptions
  const { language, encodings } = mountOptions
  const { key, scrubber } = await redaction()
  const provider = await files({ ...options, ...locateRoot(mountOptions, context), dotenv, log })
  return sliced(
    settings({
      source: decoded(provider, defined({ language, rules: encodings })),
      ...defined({ key, scrubber, formats, show, allow, maxBytes, maxDepth, maxNodes, timeoutMs: timeout }),
    }),
  )
}

/** @throws ResourceError `invalid` for a folder that cannot be opened. */
export async function leftOut(mountOptions: OptionsOf<(typeof source)['shape']>, context: FolderContext) {
  const { openLeftOut } = await import('../files/index.ts')
  const { maxBytes: _, dotenv = true, ...options } = mountOptions
  return openLeftOut({ ...options, ...locateRoot(mountOptions, context), dotenv })
}
