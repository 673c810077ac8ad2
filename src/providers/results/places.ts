import { idPattern, nameOf, segmentOf } from './names.ts'

/** Parsed path of the mount. */
export type Place =
  | { readonly kind: 'recent' | 'lookup' }
  | { readonly kind: 'tag'; readonly tag: string }
  | { readonly kind: 'record'; readonly id: string }
  | { readonly kind: 'report'; readonly id: string }
  | { readonly kind: 'vote'; readonly id: string; readonly provider: string }

export const folders = { tags: 'by-tag/', records: 'results/', votes: 'votes/' } as const

export const recordPath = (id: string): string => `${folders.records}${id}`
export const reportPath = (id: string): string => `${recordPath(id)}/report`
export const votePath = (id: string, provider: string): string =>
  `${recordPath(id)}/${folders.votes}${segmentOf(provider)}`
export const tagPath = (tag: string): string => `${folders.tags}${segmentOf(tag)}`

/** `undefined`: nothing can be at such a path. */
export function parsePlace(path: string): Place | undefined {
  if (path === 'recent' || path === 'lookup') return { kind: path }
  const [folder, first = '', second, third, ...others] = path.split('/')
  if (others.length > 0) return undefined
  if (folder === 'by-tag') {
    const tag = second === undefined && first !== '' ? nameOf(first) : undefined
    return tag === undefined ? undefined : { kind: 'tag', tag }
  }
  if (folder !== 'results' || !idPattern.test(first)) return undefined
  if (second === undefined) return { kind: 'record', id: first }
  if (second === 'report') return third === undefined ? { kind: 'report', id: first } : undefined
  const provider = second === 'votes' && third !== undefined && third !== '' ? nameOf(third) : undefined
  return provider === undefined ? undefined : { kind: 'vote', id: first, provider }
}
