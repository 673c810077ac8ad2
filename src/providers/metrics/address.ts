import { invalid } from '../../core/errors.ts'
import { parseHttpUrl } from '../../core/http-url.ts'
import { parseUri } from '../../core/uri.ts'

/**
 * Returns the address of an API without a final `/`.
 *
 * @throws ResourceError `invalid` unless the address is an `http` or `https` URL without a password, a query and a fragment.
 */
export function apiAddress(url: string): string {
  const { scheme, authority, query } = parseUri(url)
  if ((scheme !== 'http' && scheme !== 'https') || authority === '')
    throw invalid('It does not begin with http:// or https:// and a host.', 'url')
  if (query !== undefined) throw invalid('It has a query (?).', 'url')
  parseHttpUrl(url)
  return url.replace(/\/+$/, '')
}
