import type { IncomingMessage } from 'node:http'
import { valuesOf } from '../guard.ts'

/** The token of a request; that there is none; or that it is not said as RFC 6750 (section 2.1) has it. */
export type Credentials = { readonly token: string } | 'none' | 'malformed'

/**
 * Only the header `Authorization` can carry a token. One in the query is passed over like any other parameter (it is in
 * too many logs by then), and is malformed beside one in the header: nobody can say which is meant.
 */
export function credentialsOf(request: IncomingMessage): Credentials {
  const values = valuesOf(request, 'authorization')
  const [value = ''] = values
  if (values.length > 1) return 'malformed'
  const [, rest] = /^bearer(?:[ \t]+(.*))?$/i.exec(value) ?? []
  if (rest === undefined || rest === '') return 'none'
  if (!/^[A-Za-z0-9._~+/-]+=*$/.test(rest) || /[?&]access_token=/.test(request.url ?? '')) return 'malformed'
  return { token: rest }
}
