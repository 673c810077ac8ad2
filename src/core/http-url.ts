import { addressBytes } from './address.ts'
import { invalid, type ResourceError } from './errors.ts'

/** A parsed http or https URL. It is parsed once, so the checked URL is also the one that is connected to. */
export interface HttpUrl {
  readonly scheme: 'http' | 'https'
  /** A name in lower case (in another script as `xn--…`), or an address without brackets. */
  readonly host: string
  readonly port: number
  /** The path and query of the request. */
  readonly target: string
}

/** Maximum length of a URL, in characters. */
const maxLength = 8192

/**
 * Parses a URL that begins with `http://` or `https://`. It is strict: a host is one name, or one address in its canonical
 * spelling (no `127.1`, `0x7f.1`, `2130706433`, no `%31`), without a final dot, a user name and password, or a zone.
 *
 * @throws ResourceError `invalid` (reason `url`), whose message does not repeat the URL.
 */
export function parseHttpUrl(text: string): HttpUrl {
  const [, scheme, authority, rest] = /^(https?):\/\/([^/?#\\]*)([^#]*)$/i.exec(withoutFragment(text)) ?? []
  if (scheme === undefined || authority === undefined || rest === undefined)
    throw fault('It does not begin with http:// or https:// and a host.')
  const isSecure = scheme.toLowerCase() === 'https'
  const { host, port = isSecure ? 443 : 80 } = parseHost(authority)
  return { scheme: isSecure ? 'https' : 'http', host, port, target: targetOf(rest) }
}

/** Resolves a reference (of a redirect, of a link) against a URL (RFC 3986, section 5.2). Throws as {@link parseHttpUrl} does. */
export function resolveHttpUrl(base: HttpUrl, reference: string): HttpUrl {
  const text = withoutFragment(reference)
  if (/^[A-Za-z][A-Za-z0-9+.-]*:/.test(text)) return parseHttpUrl(text)
  if (text.startsWith('//')) return parseHttpUrl(`${base.scheme}:${text}`)
  if (text === '') return base
  const path = base.target.replace(/\?.*$/s, '')
  if (text.startsWith('?')) return { ...base, target: targetOf(path + text) }
  return { ...base, target: targetOf(text.startsWith('/') ? text : path.slice(0, path.lastIndexOf('/') + 1) + text) }
}

/** Returns scheme, host and port for comparison: without the default port of the scheme. */
export function originOf({ scheme, host, port }: HttpUrl): string {
  const name = host.includes(':') ? `[${host}]` : host
  return `${scheme}://${name}${port === (scheme === 'https' ? 443 : 80) ? '' : `:${port}`}`
}

export function formatHttpUrl(url: HttpUrl): string {
  return originOf(url) + url.target
}

/** Returns the URL of a path below another URL. `below` is encoded, without a leading `/`, and may have a query. */
export function httpUrlBelow(base: HttpUrl, below: string): HttpUrl {
  const path = base.target.replace(/\/$/, '')
  return { ...base, target: below === '' ? base.target : path + (below.startsWith('?') ? below : `/${below}`) }
}

function withoutFragment(text: string): string {
  if (text.length > maxLength) throw fault(`It is longer than ${maxLength} characters.`)
  const mark = text.indexOf('#')
  return mark === -1 ? text : text.slice(0, mark)
}

function parseHost(authority: string): { readonly host: string; readonly port?: number } {
  if (authority.includes('@')) throw fault('It holds a name and password (@ before the path).')
  const [, bracketed, plain, digits] = /^(?:\[([^\]]*)\]|([^:[\]]*))(?::(\d{1,5}))?$/.exec(authority) ?? []
  const host = (bracketed ?? plain ?? '').toLowerCase()
  if (bracketed !== undefined ? addressBytes(host)?.length !== 16 : !isHost(host))
    throw fault('Its host is neither a name nor an address as it is properly written.')
  const port = digits === undefined ? undefined : Number(digits)
  if (port !== undefined && (port === 0 || port > 65_535)) throw fault('There is no such port.')
  return port === undefined ? { host } : { host, port }
}

/** Whether a host is a name of letters, digits and hyphens. One that ends in a number is an address for some programs, so it must be an address. */
function isHost(host: string): boolean {
  if (host.length > 253 || !/^[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?(?:\.[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?)*$/.test(host))
    return false
  return addressBytes(host) !== undefined || !/(?:^|\.)(?:\d+|0x[\da-f]*)$/.test(host)
}

/** Returns the path and query of a request: without dot segments, and with the characters encoded that must be. */
function targetOf(text: string): string {
  if (/[\p{Cc}\\]/u.test(text) || !text.isWellFormed()) throw fault('It holds a control character or a backslash.')
  const [, path = '', query = ''] = /^([^?]*)(.*)$/s.exec(text) ?? []
  const segments: string[] = []
  const parts = path.split('/').slice(1)
  for (const [index, part] of parts.entries()) {
    const dots = part.replace(/%2e/gi, '.')
    const isLast = index === parts.length - 1
    if (dots === '..') segments.pop()
    if (dots !== '.' && dots !== '..') segments.push(part)
    else if (isLast) segments.push('')
  }
  return `/${segments.join('/')}${query}`.replace(/[^\w.~!$&'()*+,;=:@/?%-]/gu, encodeURIComponent)
}

function fault(message: string): ResourceError {
  return invalid(message, 'url')
}

/** Whether a text is an http or https URL in its strict spelling. */
export function isHttpUrl(text: string): boolean {
  try {
    return formatHttpUrl(parseHttpUrl(text)) !== ''
  } catch {
    return false
  }
}
