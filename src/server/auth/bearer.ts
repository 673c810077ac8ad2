import type { IncomingMessage } from 'node:http'
import { valuesOf } from '../http/guard.ts'

/** The token of a request; `none` without one; `malformed` when it is not sent as RFC 6750 (section 2.1) requires. */
export type Credentials = { readonly token: string } | 'none' | 'malformed'

/**
 * Returns the token in the header `Authorization`. A token in the query is ignored like any other parameter (it is in too many
 * logs by then). Together with one in the header it is malformed: it would be ambiguous.
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
