export type ResultPath =
  | { readonly kind: 'recent' | 'lookup' }
  | { readonly kind: 'tag'; readonly tag: string }
  | { readonly kind: 'record'; readonly id: string }
  | { readonly kind: 'report'; readonly id: string }
  | { readonly kind: 'vote'; readonly id: string; readonly provider: string }

export const resultFolders = { tags: 'by-tag/', records: 'results/', votes: 'votes/' } as const

export const recordPath = (id: string): string => `${resultFolders.records}${id}`
export const reportPath = (id: string): string => `${recordPath(id)}/report`
export const votePath = (id: string, provider: string): string =>
  `${recordPath(id)}/${resultFolders.votes}${escapeName(provider)}`
export const tagPath = (tag: string): string => `${resultFolders.tags}${escapeName(tag)}`

export function parsePath(path: string): ResultPath | undefined {
  if (path === 'recent' || path === 'lookup') return { kind: path }
  const [folder, first = '', second, third, ...others] = path.split('/')
  if (others.length > 0) return undefined
  if (folder === 'by-tag') {
    const tag = second === undefined && first !== '' ? unescapeName(first) : undefined
    return tag === undefined ? undefined : { kind: 'tag', tag }
  }
  if (folder !== 'results' || !idPattern.test(first)) return undefined
  if (second === undefined) return { kind: 'record', id: first }
  if (second === 'report') return third === undefined ? { kind: 'report', id: first } : undefined
  const provider = second === 'votes' && third !== undefined && third !== '' ? unescapeName(third) : undefined
  return provider === undefined ? undefined : { kind: 'vote', id: first, provider }
}

/**
 * Converts a name from outside (a tag, the name of a provider) to one path segment, one to one: `~` is written `~0` and `/` is
 * written `~1`, as in RFC 6901. The names `.` and `..`, which are invalid segments, begin with `~2` instead of their first dot.
 */
export function escapeName(name: string): string {
  const escaped = name.replaceAll('~', '~0').replaceAll('/', '~1')
  return escaped === '.' || escaped === '..' ? `~2${escaped.slice(1)}` : escaped
}

const escapes: Readonly<Record<string, string>> = { '~0': '~', '~1': '/', '~2': '.' }

/** Converts a path segment back to its name; `undefined` for a segment that {@link escapeName} does not return. */
export function unescapeName(segment: string): string | undefined {
  const name = segment.replace(/~[012]/g, (pair) => escapes[pair] ?? pair)
  return escapeName(name) === segment ? name : undefined
}

const controls = /[\p{Cc}\u2028\u2029]/u

/** Returns the fault of a name that becomes a path segment, apart from its length. */
export function nameFault(name: string): string | undefined {
  if (controls.test(name)) return 'It contains a control character.'
  if (!name.isWellFormed()) return 'It contains a lone surrogate, which is not valid Unicode.'
  if (name.trim() !== name) return 'It begins or ends with white space.'
  return undefined
}

export const idPattern = /^[A-Za-z0-9][A-Za-z0-9._~-]{0,127}$/
