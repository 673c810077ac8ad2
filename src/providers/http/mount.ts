import { defined } from '../../core/kit/defined.ts'
import type { originShape } from '../../schema/origin.ts'
import type { OptionsOf } from '../source.ts'

/** Returns the provider options for access to a web server. */
export function originOptions(options: OptionsOf<typeof originShape>) {
  const { redirects, allowAddresses, insecure, types, maxBytes, timeout } = options
  return defined({ redirects, allowAddresses, insecure, types, maxBytes, timeoutMs: timeout })
}
