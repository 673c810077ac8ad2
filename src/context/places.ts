import { baseName } from '../core/path.ts'
import { parseAddress } from '../core/uri.ts'
import { termsIn } from '../text/terms.ts'

/** The canonical spelling of a URI without its query; an invalid URI stays unchanged. */
export function canonical(uri: string): string {
  try {
    const { text } = parseAddress(uri)
    return uri.endsWith('/') ? `${text}/` : text
  } catch {
    return uri
  }
}

/** Whether a URI is one of these, or lies below one that ends in `/`. All spellings of a resource are equal. */
export function matcherOf(uris: readonly string[]): (uri: string) => boolean {
  if (uris.length === 0) return () => false
  const all = uris.map(canonical)
  const exact = new Set(all)
  const folders = all.filter((uri) => uri.endsWith('/'))
  return (raw) => {
    const uri = canonical(raw)
    // A part or a form of a resource counts as that resource.
    const [bare = uri] = uri.split(/[?#]/)
    const isBelow = (one: string) => folders.some((folder) => one.startsWith(folder) || `${one}/` === folder)
    return [uri, canonical(bare)].some((one) => exact.has(one) || isBelow(one))
  }
}

/** The first of these addresses that contains a URI. */
export function withinOf(addresses: readonly string[]): (uri: string) => string | undefined {
  const places = addresses.map((address) => {
    const place = address.endsWith('/') ? address.slice(0, -1) : address
    return { address, place, prefix: `${place}/` }
  })
  return (uri) => places.find(({ place, prefix }) => uri.startsWith(prefix) || uri === place)?.address
}

/** The folder of a URI, with its `/`. */
export function folderOf(uri: string): string {
  const [path = ''] = uri.split(/[?#]/)
  return path.slice(0, path.lastIndexOf('/') + 1)
}

/** Returns the decoded path of a URI, for people to read. */
export function pathOf(uri: string): string {
  const [path = ''] = uri.split(/[?#]/)
  try {
    return decodeURIComponent(path)
  } catch {
    return path
  }
}

const histories = /^(?:change(?:s|log)?|history|news|releases?|release[-_]?notes)(?:[-_.].*)?$/i
/** Names without an ending, and those of prose: `changes.ts` is a source. */
const prose = /^[^.]+$|\.(?:md|mdx|markdown|rst|txt|adoc)$/i

/** Whether a resource is a text about all changes, and none of the terms names it. */
export function isHistory(uri: string, terms: ReadonlySet<string>): boolean {
  if (terms.size === 0) return false
  const name = baseName(pathOf(uri))
  if (!histories.test(name) || !prose.test(name)) return false
  return !termsIn(name.replace(/\.[^.]*$/, '')).some((term) => terms.has(term))
}
