import { isBelow } from '../../../browse/folders.ts'
import { fold } from '../../../browse/matching.ts'
import type { Resource } from '../../../core/view.ts'

/**
 * Very many resources, in columns: what is asked of all of them with every key that is pressed lies ready. Each column has an item for
 * each resource, in the order in which the server lists them.
 */
export interface Columns {
  readonly resources: readonly Resource[]
  /** Folded texts for the filter: title, name and readable URI. */
  readonly texts: readonly string[]
  /** Which of `mounts` it is in; -1: none. */
  readonly mountAt: readonly number[]
  /** Which of `types` it has; -1: none. */
  readonly typeAt: readonly number[]
  readonly mounts: readonly Resource[]
  readonly types: readonly string[]
}

export interface GrowingColumns extends Columns {
  add(resources: readonly Resource[]): void
}

export function createColumns(mounts: readonly Resource[]): GrowingColumns {
  const resources: Resource[] = []
  const texts: string[] = []
  const mountAt: number[] = []
  const typeAt: number[] = []
  const types: string[] = []
  const typeNumbers = new Map<string, number>()
  const addresses = mounts.map(({ uri }) => uri.replace(/\/$/, ''))
  let lastMount = -1

  const mountOf = (uri: string): number => {
    const isIn = (address: string | undefined) => address !== undefined && (uri === address || isBelow(uri, address))
    // They come one mount after the other.
    if (!isIn(addresses[lastMount])) lastMount = addresses.findIndex(isIn)
    return lastMount
  }
  const typeOf = (type: string | undefined): number => {
    if (type === undefined) return -1
    let number = typeNumbers.get(type)
    if (number === undefined) {
      number = types.length
      types.push(type)
      typeNumbers.set(type, number)
    }
    return number
  }

  return {
    resources,
    texts,
    mountAt,
    typeAt,
    mounts,
    types,
    add: (added) => {
      for (const resource of added) {
        resources.push(resource)
        texts.push(textOf(resource))
        mountAt.push(mountOf(resource.uri))
        typeAt.push(typeOf(resource.mimeType))
      }
    },
  }
}

function textOf({ uri, name, title }: Resource): string {
  const readable = readableUri(uri)
  // The name is most often the end of the URI.
  return fold(`${title ?? ''}\n${readable.endsWith(name) ? '' : name}\n${readable}`)
}

/** A URI with its escapes of characters beyond ASCII and of spaces decoded, where that is what they are. */
export function readableUri(uri: string): string {
  if (!uri.includes('%')) return uri
  return uri.replace(/(?:%20|%[89A-Fa-f][0-9A-Fa-f])+/g, (escaped) => {
    try {
      return decodeURIComponent(escaped)
    } catch {
      return escaped
    }
  })
}
