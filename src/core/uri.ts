import { canonicalDataUri } from './data-uri.ts'
import { invalid } from './errors.ts'
import { requireArgument } from './kit/object.ts'
import { segmentFault } from './path.ts'

/** Maximum length of a URI, in bytes of UTF-8. */
export const maxUriBytes = 8192

/** A parsed URI, with the path decoded. Equivalent spellings give equal results. */
export interface ParsedUri {
  readonly scheme: string
  /** Authority, in lower case, since hosts are case-insensitive (RFC 3986, section 6.2.2.1); never decoded. Empty for a `file:` of this machine. */
  readonly authority: string
  /** Decoded segments of the path, without the empty one after a final `/`. */
  readonly segments: readonly string[]
  readonly directory: boolean
  /** The text after `?`, with `%25` for a `%` that begins no escape, otherwise as it was given; undefined without a `?`. */
  readonly query?: string
}

/**
 * Parses a URI of the form `scheme://authority/path?query` (RFC 3986), decoding percent-escapes once. The only other
 * form is `data:`: the rest of such a URI is a single segment, in the spelling of {@link canonicalDataUri}.
 * It is tolerant of spelling, since hosts re-encode the URIs that they receive: characters that RFC 3986 wants escaped
 * may be raw (`[id].tsx`, Japanese, an inner space), and ones that need no escape may be escaped. A `%` before anything
 * but two hexadecimal digits is itself. Scheme and host are case-insensitive. `file:/path` and `file://localhost/path`
 * are `file:///path` (RFC 8089, section 2 and appendix B).
 * It refuses dot segments raw or encoded, encoded slashes, raw backslashes, empty segments, control characters raw or
 * encoded in the path, escapes that are not UTF-8, lone surrogates, userinfo, fragments, and white space around the
 * URI. `new URL()` rewrites many of these into something else.
 * On Windows the letter of a drive has no case, and a `file` URI may name a server: `file://server/share/a` (RFC 8089,
 * appendix E.3).
 * @throws ResourceError `invalid`, whose detail has a `reason`. The message does not repeat the URI.
 */
export function parseUri(raw: string, platform: NodeJS.Platform = process.platform): ParsedUri {
  // A program in JavaScript may pass anything.
  if (typeof raw !== 'string') throw invalid('A URI must be a string.', 'argument')
  if (raw.length > maxUriBytes || Buffer.byteLength(raw) > maxUriBytes)
    throw invalid(`The URI is longer than ${maxUriBytes} bytes.`, 'uri', { limit: maxUriBytes })
  if (!raw.isWellFormed()) throw invalid('The URI holds a lone surrogate.', 'uri')
  if (/^[\s\u200b-\u200d\u2060\ufeff]|[\s\u200b-\u200d\u2060\ufeff]$/u.test(raw))
    throw invalid('The URI begins or ends with white space.', 'uri')
  if (raw.includes('\\')) throw invalid('The URI holds a raw backslash; write %5C.', 'uri')
  if (raw.includes('#')) throw invalid('The URI has a fragment (#); write %23 for the character.', 'uri')
  if (/^data:/i.test(raw))
    return { scheme: 'data', authority: '', segments: [canonicalDataUri(raw).slice('data:'.length)], directory: false }

  const text = raw.replace(/^file:\/(?!\/)/i, 'file:///')
  const head = /^([A-Za-z][A-Za-z0-9+.-]*):\/\/([^/?]*)/.exec(text)
  if (head === null) throw invalid('The URI is not of the form scheme://authority/path.', 'uri')
  const [start, givenScheme = '', givenAuthority = ''] = head
  const scheme = givenScheme.toLowerCase()
  if (givenAuthority.includes('@'))
    throw invalid('The URI has userinfo (a name or password before @). Remove it.', 'uri')
  if (!/^[A-Za-z0-9._~!$&'()*+,;=:[\]-]*$/.test(givenAuthority))
    throw invalid('The authority of the URI contains a character that is not allowed there.', 'uri')
  const host = givenAuthority.toLowerCase()
  const isWindowsFile = scheme === 'file' && platform === 'win32'
  const isLocalFile = scheme === 'file' && (host === '' || host === 'localhost')
  if (scheme === 'file' && !isLocalFile && !isWindowsFile)
    throw invalid('A file URI must have no host other than localhost. Write file:///path.', 'uri')
  const authority = isLocalFile ? '' : host

  const rest = text.slice(start.length)
  const mark = rest.indexOf('?')
  const query = mark === -1 ? undefined : escapeLonePercents(rest.slice(mark + 1))
  const path = mark === -1 ? rest : rest.slice(0, mark)
  if (path === '' && authority === '') throw invalid('The URI has neither an authority nor a path.', 'uri')
  const parts = path === '' ? [] : path.slice(1).split('/')
  const directory = parts.at(-1) === ''
  if (directory) parts.pop()
  const segments = parts.map(decodeSegment)
  const [drive = ''] = segments
  if (isWindowsFile && isLocalFile && /^[a-z]:$/.test(drive)) segments[0] = drive.toUpperCase()
  return { scheme, authority, segments, directory, ...(query === undefined ? {} : { query }) }
}

function decodeSegment(raw: string): string {
  if (/%2f/i.test(raw)) throw invalid('The path of the URI holds an encoded slash (%2F).', 'uri')
  const segment = raw.includes('%') ? decode(raw) : raw
  const fault = segmentFault(segment)
  if (fault !== undefined) throw invalid(`A segment of the path of the URI is not valid: ${fault}.`, 'uri')
  return segment
}

/** Percent-decodes once. A `%` that begins no escape is itself; an overlong form or an encoded surrogate throws. */
function decode(raw: string): string {
  try {
    return decodeURIComponent(escapeLonePercents(raw))
  } catch {
    throw invalid('The URI holds escapes (%) that are not valid UTF-8.', 'uri')
  }
}

/** Percent-decodes strictly: `undefined` for a lone `%`, an overlong form or an encoded surrogate. */
export function decodeComponent(text: string): string | undefined {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}

/** Returns a text percent-decoded, or as it is if {@link decodeComponent} cannot decode it. */
export function decodeIfValid(text: string): string {
  return decodeComponent(text) ?? text
}

/** Returns a URI percent-decoded and without slashes at the end, for comparison. */
export function comparableUri(uri: string): string {
  return decodeIfValid(uri.replace(/\/+$/, ''))
}

/** Returns the decoded path of a URI in a mount, with `/` between its segments. For an invalid URI, the whole URI. */
export function pathInMount(uri: string, mount: string): string {
  try {
    const { segments } = parseUri(uri)
    return segments.slice(parseAddress(mount).segments.length).join('/')
  } catch {
    return uri
  }
}

function escapeLonePercents(text: string): string {
  return text.replace(/%(?![0-9A-Fa-f]{2})/g, '%25')
}

/** Encodes one segment canonically: only characters that RFC 3986 does not allow in a segment (`pchar`) are escaped. */
export function encodeSegment(segment: string): string {
  if (/^[\w.~!$&'()*+,;=:@-]*$/.test(segment)) return segment
  return encodeURIComponent(segment).replace(/%(?:2[4BC]|26|3[ABD]|40)/g, decodeURIComponent)
}

export function encodePath(path: string): string {
  if (/^[\w.~!$&'()*+,;=:@/-]*$/.test(path)) return path
  return path.split('/').map(encodeSegment).join('/')
}

/** The address of a mount: a URI prefix. Everything in the mount is at `text`, or below `text/`. */
export interface Address extends Pick<ParsedUri, 'scheme' | 'authority' | 'segments'> {
  /** Canonical spelling: scheme and host in lower case, no final `/`. */
  readonly text: string
}

/**
 * Parses the address of a mount: `file:///srv/docs`, `git://app`, `postgres://localhost/shop`. A final `/` makes no difference.
 *
 * @throws ResourceError `invalid` for a URI that {@link parseUri} refuses, and for an address with a query.
 */
export function parseAddress(text: string): Address {
  const { scheme, authority, segments, query } = parseUri(text)
  if (query !== undefined) throw invalid('An address must not have a query (?).', 'uri')
  if (segments.length === 0 && authority === '' && scheme !== 'file')
    throw invalid('An address must have an authority or a path after its scheme.', 'uri')
  if (scheme === 'data') return { text: `data:${segments.join()}`, scheme, authority, segments }
  return { text: [`${scheme}://${authority}`, ...segments.map(encodeSegment)].join('/'), scheme, authority, segments }
}

/** Whether the scheme or host of an address is not in canonical spelling: in capitals, or another form of `file:///`. */
export function isHeadRespelled(text: string): boolean {
  const { scheme, authority } = parseAddress(text)
  return scheme !== 'data' && !`${text}/`.startsWith(`${scheme}://${authority}/`)
}

/** Returns the name of a mount without a title: the last segment of its address, or else the host; for `data:`, the media type. */
export function nameOfAddress({ scheme, authority, segments }: Address): string {
  const last = segments.at(-1)
  if (scheme === 'data') return (last ?? '').split(/[;,]/)[0] || 'text/plain'
  return last ?? (authority || scheme)
}

/** Whether one address lies at or under another. A `data:` URI has nothing under it, regardless of the slashes in its data. */
export function isOverlapping(a: Address, b: Address): boolean {
  const isBelow = (one: Address, other: Address) => one.scheme !== 'data' && one.text.startsWith(`${other.text}/`)
  return a.text === b.text || isBelow(a, b) || isBelow(b, a)
}

/** Returns the canonical `file://` address of an absolute path of this machine (RFC 8089); of a share, with the name of its server. */
export function fileAddress(absolutePath: string, platform: NodeJS.Platform = process.platform): string {
  requireArgument('fileAddress(absolutePath)', 'absolutePath', absolutePath, 'a string')
  if (platform !== 'win32') return `file:///${encodedSegments(absolutePath.split('/'))}`
  const path = absolutePath
    .replaceAll('\\', '/')
    .replace(/^\/\/[?.]\/(?:(UNC)\/|(?=[a-z]:))/i, (_, unc) => (unc ? '//' : ''))
  const [, server, share = ''] = /^\/\/([^/?.][^/]*)\/(.*)$/s.exec(path) ?? []
  if (server !== undefined) return `file://${server.toLowerCase()}/${encodedSegments(share.split('/'))}`
  return `file:///${encodedSegments(path.replace(/^[a-z]:/, (drive) => drive.toUpperCase()).split('/'))}`
}

function encodedSegments(segments: readonly string[]): string {
  return segments
    .filter((part) => part !== '')
    .map(encodeSegment)
    .join('/')
}

/** Returns the canonical URI of a path in a mount. The empty path is the address itself. */
export function formatUri(address: Address, path: string): string {
  return path === '' ? address.text : `${address.text}/${encodePath(path)}`
}

export function formatTemplate(address: Address, template: string): string {
  return /^[?&#;/.]|^\{[?&#;/.]/.test(template) ? `${address.text}${template}` : `${address.text}/${template}`
}

/**
 * Parses a query to its decoded parameters. `+` is itself, as in RFC 3986 and RFC 6570.
 *
 * @throws ResourceError `invalid` for an empty query or name, a parameter given twice, a faulty escape, or a control character.
 */
export function parseQuery(query: string): ReadonlyMap<string, string> {
  const params = new Map<string, string>()
  for (const part of query.split('&')) {
    const equals = part.indexOf('=')
    const name = decode(equals === -1 ? part : part.slice(0, equals))
    const value = equals === -1 ? '' : decode(part.slice(equals + 1))
    if (name === '') throw invalid('The URI has a query parameter without a name.', 'query')
    if (params.has(name)) throw invalid('The URI has a query parameter twice.', 'query')
    if (/\p{Cc}/u.test(name + value)) throw invalid('The query of the URI holds a control character.', 'uri')
    params.set(name, value)
  }
  return params
}

/** Adds one parameter to the query of a URI. Neither name nor value may need an escape. */
export function withParameter(uri: string, name: string, value: string): string {
  return `${uri}${uri.includes('?') ? '&' : '?'}${name}=${value}`
}

/** Whether a host, a name or an address without a port, is reachable only from this machine. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(?:\.\d{1,3}){3}$/.test(host)
}
