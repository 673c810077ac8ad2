import { createHash } from 'node:crypto'
import { isPath, segmentFault } from './path.ts'
import { decodeComponent, encodePath, encodeSegment } from './uri.ts'

/**
 * Maps URIs of other servers to paths of a mount, and back. Any text has exactly one path, which never changes:
 *
 * | URI | path |
 * |---|---|
 * | `file:///srv/docs/a%20b.md` | `file/srv/docs/a b.md` |
 * | `notes://a/b?x=1` | `notes/a/b?x=1` |
 * | `note:today` | `note:/today` |
 * | `notes://a/b%2Fc` | `notes/a/=b%2Fc` |
 * | `notes://a//b/` | `notes/a/=/b/=` |
 *
 * Segments are decoded. A segment that would not be re-encoded to the same spelling, or that no path may have, is kept unchanged
 * after an `=`. `=file/…` is a `file:` URI with a host, `=/…` a text that is not a URI. A text that no path can hold (control characters,
 * thousands of characters) is `==/` and its hash: only a caller that knows the URI can map it back.
 */

/** Maximum length of an encoded path, in characters. It leaves room for the address of the mount in a URI. */
const maxPath = 6144

export function pathOfForeign(uri: string): string {
  const path = spelled(uri)
  return path !== undefined && isPath(path) && encodePath(path).length <= maxPath ? path : hashed(uri)
}

function spelled(uri: string): string | undefined {
  if (uri.length > maxPath || !uri.isWellFormed()) return undefined
  const [, scheme, slashes, rest = ''] = split(uri) ?? []
  if (scheme === undefined) return `=/${encodePieces(uri)}`
  if (slashes === undefined) return `${scheme}:/${encodePieces(rest)}`
  if (scheme !== 'file') return `${scheme}/${encodePieces(rest)}`
  return rest.startsWith('/') ? `file/${encodePieces(rest.slice(1))}` : `=file/${encodePieces(rest)}`
}

function split(text: string): RegExpExecArray | null {
  return /^([A-Za-z][A-Za-z0-9+.-]*):(\/\/)?(.*)$/s.exec(text)
}

function hashed(uri: string): string {
  // In UTF-8 all lone surrogates would be the same character.
  const encoding = uri.isWellFormed() ? 'utf8' : 'utf16le'
  return `==/${createHash('sha256').update(uri, encoding).digest('base64url')}`
}

/** Returns the URI of a path; undefined when the path has none, or is only a hash. For a directory (with a final `/`), the URI ends in `/`. */
export function foreignUriOf(path: string): string | undefined {
  if (path.endsWith('/')) {
    const root = rootOf(path)
    return root ?? withSlash(foreignUriOf(path.slice(0, -1)))
  }
  const slash = path.indexOf('/')
  if (slash === -1) return undefined
  const rest = decodePieces(path.slice(slash + 1))
  const uri = headOf(path.slice(0, slash), rest)
  // Accept only the path that `pathOfForeign` returns: a second path of the same URI could bypass an access rule.
  return uri !== undefined && pathOfForeign(uri) === path ? uri : undefined
}

function withSlash(uri: string | undefined): string | undefined {
  return uri === undefined ? undefined : `${uri}/`
}

function rootOf(path: string): string | undefined {
  const head = path.slice(0, -1)
  if (head.includes('/') || !isScheme(head)) return undefined
  return head === 'file' ? 'file:///' : `${head}://`
}

function headOf(head: string, rest: string): string | undefined {
  if (head === '=') return rest
  if (head === '=file') return `file://${rest}`
  if (head === 'file') return `file:///${rest}`
  if (isScheme(head)) return `${head}://${rest}`
  return head.endsWith(':') && isScheme(head.slice(0, -1)) ? `${head}${rest}` : undefined
}

function isScheme(text: string): boolean {
  return /^[A-Za-z][A-Za-z0-9+.-]*$/.test(text)
}

/**
 * Whether a path has the usual spelling: no segment except `=file` begins with `=`, there is no `?` or `#`, and scheme
 * and host are in lower case. A server may treat other spellings as equivalent, which would bypass rules on paths.
 */
export function hasUsualSpelling(path: string): boolean {
  const [head = '', ...rest] = path.split('/')
  const hasHost = head !== 'file' && !head.endsWith(':')
  if (hasHost && /[A-Z]/.test(rest[0] ?? '')) return false
  return /^(?:[a-z][a-z0-9+.-]*:?|=file)$/.test(head) && rest.every((piece) => !/^=|[?#]/.test(piece))
}

/** Whether a path begins with the scheme and host of a template, as they are spelled there, and otherwise has the usual spelling. */
export function isOfTemplate(path: string, template: string): boolean {
  const [, head = '', host = ''] = /^([^/{]*)\/([^/{?#]+)\//.exec(template) ?? []
  const start = `${head}/${host}/`
  return (
    host !== '' &&
    path.startsWith(start) &&
    hasUsualSpelling(`${head}/${host.toLowerCase()}/${path.slice(start.length)}`)
  )
}

/** Adds percent-encoded parameters to a URI that has no query. */
export function withQueryParams(uri: string, params: ReadonlyMap<string, string>): string {
  const query = [...params].map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`)
  return query.length === 0 ? uri : `${uri}?${query.join('&')}`
}

/**
 * Converts a URI template of another server to a template of a mount, which expands to the paths of the URIs. Undefined when that
 * is impossible, as for a template that begins with a variable.
 */
export function templateOfForeign(template: string): string | undefined {
  const [, scheme, slashes, rest = ''] = split(template) ?? []
  if (scheme === undefined) return undefined
  const isLocal = scheme === 'file' && slashes !== undefined && rest.startsWith('/')
  const head = slashes === undefined ? `${scheme}:` : scheme === 'file' && !isLocal ? '=file' : scheme
  const body = piecesOfTemplate(isLocal ? rest.slice(1) : rest)
  return body === undefined ? undefined : `${head}/${body}`
}

/** Undefined if the part of the template before its query has an empty segment, or is spelled differently in paths. */
function piecesOfTemplate(body: string): string | undefined {
  const parts = body.split(/(\{[^{}]*\})/)
  const query = parts.findIndex((part, index) => (index % 2 === 1 ? /^\{[?&#]/.test(part) : /[?#]/.test(part)))
  const path = query === -1 ? parts : parts.slice(0, query)
  const literals = path.filter((_, index) => index % 2 === 0).flatMap((text) => text.split('/'))
  const isPlain = literals.every((text) => text === '' || encodePiece(text) === decodeComponent(text))
  const isWhole = !path.join('').includes('//') && path.join('') !== '' && !path.join('').endsWith('/')
  return isPlain && (isWhole || (query !== -1 && path.join('') !== '')) ? body : undefined
}

function encodePieces(text: string): string {
  return text.split('/').map(encodePiece).join('/')
}

function decodePieces(path: string): string {
  return path
    .split('/')
    .map((piece) => (piece.startsWith('=') ? piece.slice(1) : encodeInUsualForm(piece)))
    .join('/')
}

function encodePiece(raw: string): string {
  const plain = decodeComponent(raw)
  const isPlain = plain !== undefined && !plain.startsWith('=') && segmentFault(plain) === undefined
  return isPlain && encodeInUsualForm(plain) === raw ? plain : `=${raw}`
}

/** Encodes a segment in the usual spelling of URIs. Characters that begin a query or a fragment stay unescaped. */
function encodeInUsualForm(plain: string): string {
  return plain
    .split(/([?#])/)
    .map((part, index) => (index % 2 === 1 ? part : encodeSegment(part)))
    .join('')
}
