import { decodeComponent } from '../../../../core/uri.ts'

interface LinkTarget {
  /** The URI without its fragment. */
  readonly uri: string
  readonly fragment?: string
}

/** The pieces of a URI reference (RFC 3986, appendix B). */
function splitUriReference(text: string) {
  const [, scheme, authority, path = '', query, fragment] =
    /^(?:([A-Za-z][A-Za-z0-9+.-]*):)?(?:\/\/([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#(.*))?$/s.exec(text) ?? []
  return { scheme, authority, path, query, fragment }
}

/**
 * Resolves a reference in a document (RFC 3986, section 5.2), for URIs of any scheme. Characters that a URI may not contain are escaped,
 * since documents often have them. Undefined if the reference has no target.
 */
export function resolveReference(base: string, reference: string): LinkTarget | undefined {
  const text = escapeUri(reference.trim())
  const to = splitUriReference(text)
  const from = splitUriReference(base)
  if (from.scheme === undefined) return undefined
  const tail = to.fragment === undefined ? {} : { fragment: to.fragment }
  if (to.scheme !== undefined) return { uri: text.replace(/#.*$/s, ''), ...tail }
  const at = (authority: string | undefined, path: string, query: string | undefined) => ({
    uri: `${from.scheme}:${authority === undefined ? '' : `//${authority}`}${path}${query === undefined ? '' : `?${query}`}`,
    ...tail,
  })
  if (to.authority !== undefined) return at(to.authority, withoutDots(to.path), to.query)
  if (to.path === '') return at(from.authority, from.path, to.query ?? queryWithout(from.query, ['lines', 'bytes']))
  if (to.path.startsWith('/')) return at(from.authority, withoutDots(to.path), to.query)
  if (from.authority === undefined && !from.path.includes('/')) return undefined
  const folder = from.path.slice(0, from.path.lastIndexOf('/') + 1)
  const merged = from.authority !== undefined && folder === '' ? `/${to.path}` : folder + to.path
  return at(from.authority, withoutDots(merged), to.query)
}

/** The kind of a link: `inside`, opened in the explorer; `outside`, opened in a new tab; or `none`, not followed. */
export function classifyLink(
  base: string,
  reference: string,
): { readonly kind: 'inside' | 'outside' | 'none'; readonly target?: LinkTarget } {
  const target = resolveReference(base, reference)
  if (target === undefined) return { kind: 'none' }
  const scheme = /^[^:]*/.exec(target.uri)?.[0].toLowerCase() ?? ''
  const isOwn = scheme === splitUriReference(base).scheme?.toLowerCase()
  const isAbsolute = splitUriReference(reference.trim()).scheme !== undefined
  if (['javascript', 'vbscript', 'data', 'blob', 'about'].includes(scheme)) return { kind: 'none' }
  if (isAbsolute && /^(https?|mailto)$/.test(scheme) && !isOwn) return { kind: 'outside', target }
  return { kind: 'inside', target }
}

/** Removes `.` and `..` (RFC 3986, section 5.2.4). Nothing leads above the first segment. */
function withoutDots(path: string): string {
  const fieldValues: string[] = []
  const segments = path.split('/')
  for (const [index, segment] of segments.entries()) {
    const isLast = index === segments.length - 1
    if (segment === '..') {
      if (fieldValues.length > 1) fieldValues.pop()
      if (isLast) fieldValues.push('')
    } else if (segment === '.') {
      if (isLast) fieldValues.push('')
    } else fieldValues.push(segment)
  }
  return fieldValues.join('/')
}

export function escapeUri(text: string): string {
  return text.replace(/%(?![0-9A-Fa-f]{2})|[^\x21-\x7e]|["<>\\^`{|}]/gu, (character) =>
    character.isWellFormed() ? encodeURIComponent(character) : '%EF%BF%BD',
  )
}

function queryWithout(query: string | undefined, names: readonly string[], ...added: readonly string[]) {
  const pairs = (query ?? '').split('&').filter((pair) => pair !== '' && !names.includes(pair.split('=')[0] ?? ''))
  return pairs.length + added.length === 0 ? undefined : [...pairs, ...added].join('&')
}

/** Returns the URI of another part of a resource, or of the whole resource. `query` selects the part: `lines=1-200`. */
export function withPart(uri: string, query: string | undefined): string {
  const { uri: bare, rest } = splitQuery(uri)
  const without = queryWithout(rest, ['lines', 'bytes', 'tail'], ...(query === undefined ? [] : [query]))
  return without === undefined ? bare : `${bare}?${without}`
}

/** Returns the URI with one more parameter, which replaces a parameter with the same name. */
export function uriWithParameter(uri: string, name: string, value: string): string {
  const { uri: bare, rest } = splitQuery(uri)
  return `${bare}?${queryWithout(rest, [name], `${name}=${encodeURIComponent(value)}`)}`
}

export function parameterOf(uri: string, name: string): string | undefined {
  const { rest = '' } = splitQuery(uri)
  const value = rest.split('&').find((pair) => pair.startsWith(`${name}=`))
  return value === undefined ? undefined : decodeComponent(value.slice(name.length + 1))
}

/** Returns the lines that a URI selects, from 1, both inclusive. Without `last`, up to the end. `undefined`: the URI selects no lines. */
export function lineRangeIn(uri: string): { readonly first: number; readonly last?: number } | undefined {
  const [, first, dash, last] = /^(\d{1,9})(-(\d{1,9})?)?$/.exec(parameterOf(uri, 'lines') ?? '') ?? []
  if (first === undefined) return undefined
  if (dash === undefined) return { first: Number(first), last: Number(first) }
  return { first: Number(first), ...(last === undefined ? {} : { last: Number(last) }) }
}

/** The directory that contains a resource, with its `/` at the end. `undefined` if there is none. */
export function parentOf(uri: string): string | undefined {
  const { uri: bare } = splitQuery(uri)
  const [, root = '', path = ''] = /^([A-Za-z][A-Za-z0-9+.-]*:(?:\/\/[^/]*)?)(.*)$/s.exec(bare) ?? []
  const trimmed = path.replace(/\/+$/, '')
  const slash = trimmed.lastIndexOf('/')
  return slash === -1 || trimmed === '' ? undefined : `${root}${trimmed.slice(0, slash + 1)}`
}

function splitQuery(uri: string): { readonly uri: string; readonly rest?: string } {
  const bare = uri.replace(/#.*$/s, '')
  const at = bare.indexOf('?')
  return at === -1 ? { uri: bare } : { uri: bare.slice(0, at), rest: bare.slice(at + 1) }
}

/**
 * Whether a URI has the same scheme and authority as the URI of a document. The document may then show the resource without asking
 * the user.
 */
export function isSameOrigin(base: string, uri: string): boolean {
  const [from, to] = [splitUriReference(base), splitUriReference(uri)]
  const nameOf = ({ scheme, authority }: typeof from) => `${scheme?.toLowerCase()}://${authority?.toLowerCase() ?? ''}`
  return from.scheme !== undefined && nameOf(from) === nameOf(to)
}
