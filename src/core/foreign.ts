import { createHash } from 'node:crypto'
import { isPath, segmentFault } from './path.ts'
import { encodePath, encodeSegment } from './uri.ts'

/**
 * URIs of other servers as paths of a mount, and back. Any text has exactly one path, the same one for ever:
 *
 * | URI | path |
 * |---|---|
 * | `file:///srv/docs/a%20b.md` | `file/srv/docs/a b.md` |
 * | `notes://a/b?x=1` | `notes/a/b?x=1` |
 * | `note:today` | `note:/today` |
 * | `notes://a/b%2Fc` | `notes/a/=b%2Fc` |
 * | `notes://a//b/` | `notes/a/=/b/=` |
 *
 * Between slashes stands what is there, decoded. A segment that would not come back as it was spelled, or that no path may
 * have, is kept as it is behind an `=`. `=file/…` is a file of a host, `=/…` is not a URI, and what no path can hold (control
 * characters, thousands of characters) is `==/` and its hash, from which only who knows the URI finds back.
 */

/** The longest path, encoded: below an address it is still a URI that can be asked for. */
const maxPath = 6144

/** The path of a URI. */
export function pathOfForeign(uri: string): string {
  const path = spelled(uri)
  return path !== undefined && isPath(path) && encodePath(path).length <= maxPath ? path : hashed(uri)
}

function spelled(uri: string): string | undefined {
  // What is longer than this has no path that is short enough.
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
  return `==/${createHash('sha256').update(uri).digest('base64url')}`
}

/**
 * The URI that a path is of. `undefined`: none is at this path, or only its hash. Of a directory (with a `/` at the end), the
 * URI with a `/` at its end.
 */
export function foreignOf(path: string): string | undefined {
  if (path.endsWith('/')) {
    const root = rootOf(path)
    return root ?? withSlash(foreignOf(path.slice(0, -1)))
  }
  const slash = path.indexOf('/')
  if (slash === -1) return undefined
  const rest = decodePieces(path.slice(slash + 1))
  const uri = headOf(path.slice(0, slash), rest)
  // Two paths of one URI would be two ways around a rule.
  return uri !== undefined && pathOfForeign(uri) === path ? uri : undefined
}

function withSlash(uri: string | undefined): string | undefined {
  return uri === undefined ? undefined : `${uri}/`
}

/** The URI of the directory in which everything of a scheme lies. */
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
 * Whether a path is spelled as it usually is: no segment is kept as it was, nothing is behind a `?` or `#`, and scheme and host
 * are in lower case. Other spellings can mean the same to a server, so that rules on paths would not hold: they are good only for
 * what the server itself spells so.
 */
export function isUsual(path: string): boolean {
  const [head = '', ...rest] = path.split('/')
  const hasHost = head !== 'file' && !head.endsWith(':')
  if (hasHost && /[A-Z]/.test(rest[0] ?? '')) return false
  return /^(?:[a-z][a-z0-9+.-]*:?|=file)$/.test(head) && rest.every((piece) => !/^=|[?#]/.test(piece))
}

/** Whether a path has the host of a template, in capitals or not, and is as usual else: the server itself spells it so. */
export function isOfTemplate(path: string, template: string): boolean {
  const [, head = '', host = ''] = /^([^/{]*)\/([^/{?#]+)\//.exec(template) ?? []
  const start = `${head}/${host}/`
  return host !== '' && path.startsWith(start) && isUsual(`${head}/${host.toLowerCase()}/${path.slice(start.length)}`)
}

/** A URI with the parameters of a query, each escaped as in RFC 6570. */
export function withParams(uri: string, params: ReadonlyMap<string, string>): string {
  const query = [...params].map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`)
  return query.length === 0 ? uri : `${uri}?${query.join('&')}`
}

/**
 * A template of another server as one of a mount: what it expands to here is the path of what it expands to there.
 * `undefined` where there is none, as for one that begins with a variable.
 */
export function templateOfForeign(template: string): string | undefined {
  const [, scheme, slashes, rest = ''] = split(template) ?? []
  if (scheme === undefined) return undefined
  const isLocal = scheme === 'file' && slashes !== undefined && rest.startsWith('/')
  const head = slashes === undefined ? `${scheme}:` : scheme === 'file' && !isLocal ? '=file' : scheme
  const body = piecesOfTemplate(isLocal ? rest.slice(1) : rest)
  return body === undefined ? undefined : `${head}/${body}`
}

/** Every literal has to be spelled as it is in the path; what is behind a `?` stays as it is. */
function piecesOfTemplate(body: string): string | undefined {
  const parts = body.split(/(\{[^{}]*\})/)
  const query = parts.findIndex((part, index) => (index % 2 === 1 ? /^\{[?&#]/.test(part) : /[?#]/.test(part)))
  const path = query === -1 ? parts : parts.slice(0, query)
  const literals = path.filter((_, index) => index % 2 === 0).flatMap((text) => text.split('/'))
  const isPlain = literals.every((text) => text === '' || encodePiece(text) === decode(text))
  // Empty segments are none of a path's.
  const isWhole = !path.join('').includes('//') && path.join('') !== '' && !path.join('').endsWith('/')
  return isPlain && (isWhole || (query !== -1 && path.join('') !== '')) ? body : undefined
}

function encodePieces(text: string): string {
  return text.split('/').map(encodePiece).join('/')
}

function decodePieces(path: string): string {
  return path
    .split('/')
    .map((piece) => (piece.startsWith('=') ? piece.slice(1) : spell(piece)))
    .join('/')
}

function encodePiece(raw: string): string {
  const plain = decode(raw)
  const isPlain = plain !== undefined && !plain.startsWith('=') && segmentFault(plain) === undefined
  return isPlain && spell(plain) === raw ? plain : `=${raw}`
}

/** A segment as it is usually spelled in a URI. What begins a query or a fragment begins it still. */
function spell(plain: string): string {
  return plain
    .split(/([?#])/)
    .map((part, index) => (index % 2 === 1 ? part : encodeSegment(part)))
    .join('')
}

function decode(raw: string): string | undefined {
  try {
    return decodeURIComponent(raw)
  } catch {
    return undefined
  }
}
