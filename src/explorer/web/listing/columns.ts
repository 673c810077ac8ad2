import { isBelow, isFolder } from '../../../browse/tree.ts'
import { isResourceError } from '../../../core/errors.ts'
import { foldText } from '../../../core/kit/matching.ts'
import { decodeIfValid } from '../../../core/uri.ts'
import type { Page, Resource, View } from '../../../core/view.ts'

/**
 * Resources in columns, so that very many can be filtered at a key press. `resources`, `texts`, `mountAt` and `typeAt` have one item for
 * each resource, in the order of the server.
 */
export interface Columns {
  readonly resources: readonly Resource[]
  /** Folded texts for the filter: title, name and readable URI. */
  readonly texts: readonly string[]
  /** Index of the resource's mount in `mounts`; -1: none. */
  readonly mountAt: readonly number[]
  /** Index of the resource's type in `types`; -1: none. */
  readonly typeAt: readonly number[]
  readonly mounts: readonly Resource[]
  readonly types: readonly string[]
}

export function createColumns(mounts: readonly Resource[]) {
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
    // Check the mount of the previous resource first, because the resources of a mount follow each other.
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
    add: (newResources: readonly Resource[]) => {
      for (const resource of newResources) {
        resources.push(resource)
        texts.push(filterableText(resource))
        mountAt.push(mountOf(resource.uri))
        typeAt.push(typeOf(resource.mimeType))
      }
    },
  }
}

function filterableText({ uri, name, title }: Resource): string {
  const readable = readableUri(uri)
  // Leave out a name with which the URI ends anyway, as most do.
  return foldText(`${title ?? ''}\n${readable.endsWith(name) ? '' : name}\n${readable}`)
}

/** The title that is shown after the name of a resource. `undefined`: there is no title, or it equals the name, ignoring case. */
export function distinctTitle({ name, title }: Pick<Resource, 'name' | 'title'>): string | undefined {
  return title?.toLowerCase() === name.toLowerCase() ? undefined : title
}

/** A URI with its valid escapes of non-ASCII characters and of spaces decoded. */
export function readableUri(uri: string): string {
  if (!uri.includes('%')) return uri
  return uri.replace(/(?:%20|%[89A-Fa-f][0-9A-Fa-f])+/g, decodeIfValid)
}

export const sortKeys = ['name', 'type', 'size', 'modified', 'priority'] as const
export type SortKey = (typeof sortKeys)[number]

/** Parses `sort` of the permalink, such as `size`, or `-size` for descending. `undefined`: the order of the server. */
export function parseSort(text: string | undefined): { readonly by: SortKey; readonly down: boolean } | undefined {
  const by = sortKeys.find((sort) => sort === text?.replace(/^-/, ''))
  return by === undefined ? undefined : { by, down: text?.startsWith('-') === true }
}

/** Returns the indexes of the rows in the order of `sort` of the permalink. Rows without a value come last. */
export function sortedIndexes(columns: Columns, sort: string | undefined): Uint32Array {
  const order = Uint32Array.from(columns.resources, (_, row) => row)
  const sorting = parseSort(sort)
  if (sorting === undefined) return order
  const { by, down } = sorting
  const sign = down ? -1 : 1
  if (by === 'name' || by === 'type') {
    const keys = columns.resources.map((resource) => (by === 'name' ? nameKey(resource.name) : resource.mimeType))
    return order.sort((a, b) => compareTexts(keys[a], keys[b], sign) || a - b)
  }
  const keys = Float64Array.from(columns.resources, (resource) => resource[by] ?? Number.NaN)
  return order.sort((a, b) => compareNumbers(keys[a], keys[b], sign) || a - b)
}

/** Returns the sort key of a name. Numbers in names are compared as numbers: `part 9` comes before `part 10`. */
function nameKey(name: string): string {
  return foldText(name).replace(/\d+/g, (digits) => {
    const number = digits.replace(/^0+(?=\d)/, '')
    // Prefix each number with its number of digits, so that texts compare as numbers.
    return `${String.fromCharCode(48 + Math.min(number.length, 70))}${number}`
  })
}

function compareTexts(a: string | undefined, b: string | undefined, sign: number): number {
  if (a === b) return 0
  if (a === undefined) return 1
  if (b === undefined) return -1
  return a < b ? -sign : sign
}

function compareNumbers(a = Number.NaN, b = Number.NaN, sign: number): number {
  if (Number.isNaN(a)) return Number.isNaN(b) ? 0 : 1
  if (Number.isNaN(b)) return -1
  return (a - b) * sign
}

/** Maximum number of loaded entries of a sorted folder. A larger folder keeps the order of the server. */
const maxOrdered = 2000

/**
 * Sorts folders first, then by name, with numbers as numbers and without regard to case. More than {@link maxOrdered} entries keep their
 * order.
 */
export function sortNaturally(entries: readonly Resource[]): readonly Resource[] {
  if (entries.length > maxOrdered) return entries
  return entries
    .map((entry) => ({ entry, rank: isFolder(entry) ? 0 : 1, key: nameKey(entry.name) }))
    .sort((a, b) => a.rank - b.rank || (a.key < b.key ? -1 : a.key > b.key ? 1 : 0))
    .map(({ entry }) => entry)
}

/** All resources of a view that have been loaded so far. */
export type ResourceList = ReturnType<typeof createResourceList>

interface ListedOptions {
  onChange(): void
  onPage?(resources: readonly Resource[]): void
  /** Lets the page draw and handle input between two pieces of work. */
  yieldToPage?(): Promise<void>
}

const piece = 1000

export function createResourceList(view: View, options: ListedOptions) {
  const { onChange, onPage = () => {}, yieldToPage = async () => {} } = options
  let columns = createColumns([])
  let state: 'idle' | 'loading' | 'loaded' | 'failed' = 'idle'
  let error: unknown
  let unavailable: readonly string[] = []
  let running: AbortController | undefined
  /** Cursor at which the first load continues after a failure. */
  let cursor: string | undefined
  let isWhole = false

  const startOver = () => {
    cursor = undefined
    if (!isWhole) columns = createColumns([])
  }

  const run = async (isAnew: boolean) => {
    running?.abort()
    const controller = new AbortController()
    running = controller
    const { signal } = controller
    state = 'loading'
    error = undefined
    onChange()
    try {
      const mounts = isAnew || columns.mounts.length === 0 ? await view.mounts({ signal }) : columns.mounts
      // A complete list stays visible until the next one is complete. Without a complete list, the growing one is shown.
      const isHeldBack = isAnew && isWhole
      const growing = isAnew || columns.mounts.length === 0 ? createColumns(mounts) : columns
      if (!isHeldBack) columns = growing
      let at = isAnew ? undefined : cursor
      const missing = new Set(isAnew ? [] : unavailable)
      do {
        const page: Page<Resource> = await view.list(at === undefined ? {} : { cursor: at }, { signal })
        for (let from = 0; from < page.items.length; from += piece) {
          growing.add(page.items.slice(from, from + piece))
          await yieldToPage()
          signal.throwIfAborted()
        }
        onPage(page.items)
        for (const address of page.unavailable ?? []) missing.add(address)
        at = page.nextCursor
        if (isHeldBack) continue
        cursor = at
        unavailable = [...missing]
        onChange()
      } while (at !== undefined)
      columns = growing
      unavailable = [...missing]
      cursor = undefined
      isWhole = true
      state = 'loaded'
    } catch (thrown) {
      if (signal.aborted) return
      error = thrown
      // The server answered with an error, so the cursor may be invalid.
      if (!isResourceError(thrown, 'unavailable')) startOver()
      // If loading fails, a complete list stays.
      state = isWhole ? 'loaded' : 'failed'
    }
    if (running === controller) running = undefined
    onChange()
  }

  return {
    /** The listed resources. Each list is a new object. */
    get columns(): Columns {
      return columns
    },
    get state() {
      return state
    },
    get error() {
      return error
    },
    /** The addresses of mounts that did not answer. */
    get unavailable() {
      return unavailable
    },
    /**
     * Loads the list, if it is neither loaded nor loading. After a failure, loading continues where it stopped, if the cursor may still be
     * valid.
     */
    load: () => {
      if (state === 'idle' || state === 'failed') void run(false)
    },
    /** Loads the list again, unless `load` was never called. A complete list is shown until the new one is complete. */
    reload: async () => {
      if (state !== 'idle') await run(true)
    },
    stop: () => {
      if (running === undefined) return
      running.abort()
      running = undefined
      // A page may have been added only in part.
      startOver()
      state = isWhole ? 'loaded' : 'idle'
    },
  }
}
