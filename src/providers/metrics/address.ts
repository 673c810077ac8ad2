import { invalid } from '../../core/errors.ts'
import { parseHttpUrl } from '../../core/http-url.ts'
import { parseUri } from '../../core/uri.ts'

/**
 * The address of an API without a `/` at its end.
 *
 * @throws ResourceError `invalid` for what is no `http` or `https` URL, or has a password, a query or a fragment.
 */
export function apiAddress(url: string): string {
  const { scheme, authority, query } = parseUri(url)
  if ((scheme !== 'http' && scheme !== 'https') || authority === '')
    throw invalid('It does not begin with http:// or https:// and a host.', 'url')
  if (query !== undefined) throw invalid('It has a query (?).', 'url')
  parseHttpUrl(url)
  return url.replace(/\/+$/, '')
}
