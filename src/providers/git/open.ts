import { defined } from '../../core/kit/object.ts'
import { locatePath, type OpenSource } from '../source.ts'
import type { source } from './config.ts'

export const open: OpenSource<typeof source> = async (mountOptions, context) => {
  const { log, documents } = context
  const { git } = await import('./index.ts')
  const { timeout, alternates = [], redact = 'off', ...options } = mountOptions
  const { isCredentialFile } = redact === 'off' ? {} : await import('../../secrets/credential-files.ts')
  const { path: repository, ...found } = locatePath(mountOptions.repository, context)
  return documents(
    await git({
      ...options,
      ...{ repository, ...found },
      alternates: alternates.map((name) => locatePath(name, context).path),
      ...defined({ timeoutMs: timeout, withheld: isCredentialFile }),
      log,
    }),
  )
}
