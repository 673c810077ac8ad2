import type { Cost } from '../../browse/basket.ts'
import { listAgain, walkBelow } from '../../browse/tree.ts'
import { searchesOf } from '../../config/plan.ts'
import { assemble, measure } from '../../context/index.ts'
import type { Catalog } from '../../core/catalog.ts'
import { withResolvers } from '../../core/kit/abort.ts'
import { defined } from '../../core/kit/object.ts'
import { doneOnce } from '../../core/kit/once.ts'
import { parseFound } from '../../core/search-answer.ts'
import type { Resource, View } from '../../core/view.ts'
import { searchMountsOf, textAt } from '../commands/search.ts'
import { readPart, readShown } from './reading.ts'
import { type Basket, type Counted, type Event, isFolder, levelOf, type State } from './state.ts'
import type { Want } from './wants.ts'

/** Fetches the wants of a state: contents, pages, search results and counts. */
export type Loader = ReturnType<typeof createLoader>

/** Maximum number of resources of a directory that go into the basket at once. */
const maxGathered = 500

/**
 * @param reasonOf Returns the message of an error.
 * @param catalog Catalog of a local source.
 * @param at The address of the search to use, if several are mounted.
 */
export function createLoader(view: View, reasonOf: (error: unknown) => string, catalog?: Catalog, at?: string) {
  const searchMounts = doneOnce(() => searchMountsOf(view))
  const { promise: indexed, resolve } = withResolvers<void>()
  const feed = doneOnce(async () => {
    if (await indexing(catalog)) resolve()
  })

  const search = async (query: string, after: string | undefined): Promise<readonly Event[]> => {
    const all = await searchMounts()
    const mount = at === undefined ? all[0] : all.find(({ address }) => address === at.replace(/\/$/, ''))
    if (mount === undefined && all.length > 0) {
      const names = all.map(({ address }) => address).join(', ')
      return [{ kind: 'unsearched', query, message: `There is no search at ${at}. There is one at: ${names}.` }]
    }
    if (mount === undefined) return [{ kind: 'searches', areThere: false }]
    void feed()
    const found = parseFound(await textAt(view, mount.uriOf({ query, ...defined({ after }) })))
    if (found === undefined)
      return [{ kind: 'unsearched', query, message: `${mount.address} does not answer like a search.` }]
    const { hits, notes, next, fallback } = found
    const isLoose = fallback === undefined ? undefined : true
    return [
      { kind: 'searches', areThere: true },
      { kind: 'hits', query, found: { hits, notes, ...defined({ isLoose, next }) }, ...defined({ after }) },
    ]
  }

  const fetched = async (want: Want, state: State, signal: AbortSignal): Promise<readonly Event[]> => {
    switch (want.kind) {
      case 'mounts':
        return [{ kind: 'mounts', roots: await view.mounts({ signal }) }]
      case 'page': {
        const { uri, cursor } = want
        const page = await view.directory({ uri, ...(cursor === '' ? {} : { cursor }) }, { signal })
        return [{ kind: 'page', uri, cursor, page }]
      }
      case 'relist':
        return [await relist(view, want.uri, want.least, signal)]
      case 'preview': {
        const shown = await readShown(view, want.uri, listedIn(state, want.uri), signal)
        return [{ kind: 'shown', uri: want.uri, shown }]
      }
      case 'part':
        return [{ ...want, shown: await readPart(view, want.uri, want.part, signal) }]
      case 'search':
        return search(want.query, want.after)
      case 'count':
        return [{ kind: 'counted', ...(await countOne(view, want.item.resource, want.format, signal)) }]
    }
  }

  return {
    /** Resolves when the mounts of a local search are indexed. Before a search, or without a local one, it does not resolve. */
    indexed,
    /** Fetches one want. Returns no events if the signal aborts. */
    fetch: async (want: Want, state: State, signal: AbortSignal): Promise<readonly Event[]> => {
      try {
        return await fetched(want, state, signal)
      } catch (error) {
        if (signal.aborted) return []
        return [failureOf(want, reasonOf(error))]
      }
    },
    /** Lists the resources below a directory, for the basket. */
    gather: async (uri: string): Promise<Event> => {
      // Request one more file than allowed, to learn whether there are more.
      const { files, isPart } = await walkBelow(view, uri, { files: maxGathered + 1, isFolder })
      const taken = files.slice(0, maxGathered)
      return { kind: 'gathered', files: taken, isAll: !isPart && files.length === taken.length }
    },
    /** Assembles the context of a basket. */
    context: async ({ items, budget, format }: Basket): Promise<{ readonly text: string; readonly tokens: number }> => {
      const pins = items.map((item) => ({ uri: item.resource.uri, level: levelOf(item) }))
      const options = { pins, pinsOnly: true, budget, reserve: 0, format, now: Date.now() } as const
      const { text, tokens } = await assemble(view, options)
      return { text, tokens }
    },
  }
}

function failureOf(want: Want, message: string): Event {
  switch (want.kind) {
    case 'mounts':
      return { kind: 'notice', text: message, isError: true }
    case 'page':
    case 'relist':
      return { kind: 'unlisted', uri: want.uri, message }
    case 'preview':
    case 'part':
      return { kind: 'unreadable', uri: want.uri, message }
    case 'search':
      return { kind: 'unsearched', query: want.query, message }
    case 'count': {
      const { format, item } = want
      return { kind: 'counted', uri: item.resource.uri, format, cost: uncounted(message) }
    }
  }
}

function uncounted(failure: string): Cost {
  return { levels: {}, missing: false, notes: [], failure }
}

/** Counts a resource at each level, as it would be in a context. */
async function countOne(
  view: View,
  { uri }: Resource,
  format: Basket['format'],
  signal: AbortSignal,
): Promise<Counted> {
  const { items, frame } = await measure(view, { pins: [uri], format, now: 0, signal })
  const [item] = items
  if (item === undefined) return { uri, format, cost: uncounted('It is left out.') }
  if (item.missing) return { uri, format, cost: uncounted('It does not exist, or you may not read it.') }
  const { levels, missing, notes } = item
  return { uri, format, cost: { levels, missing, notes }, frame }
}

/** Lists a directory again, with at least as many entries as were listed before. */
async function relist(view: View, uri: string, least: number, signal: AbortSignal): Promise<Event> {
  const listed = await listAgain((cursor) => view.directory({ uri, ...defined({ cursor }) }, { signal }), least)
  return { kind: 'relisted', uri, ...listed }
}

/** Returns the facts of a URI from the listings. */
function listedIn({ tree }: State, uri: string): Pick<Resource, 'size' | 'mimeType'> {
  for (const items of [tree.roots ?? [], ...[...tree.folders.values()].map((folder) => folder.items)])
    for (const item of items) if (item.uri === uri) return item
  return {}
}

/** Indexes the mounts that the searches of a configuration cover. Resolves at the end to whether there was anything to index. */
async function indexing(catalog: Catalog | undefined): Promise<boolean> {
  const searches = catalog === undefined ? [] : searchesOf(catalog)
  for (const { provider } of searches) provider.feed()
  for (let left = searches; left.length > 0; ) {
    await new Promise((resolve) => setTimeout(resolve, 300).unref())
    const states = await Promise.all(left.map(({ provider }) => provider.feedStatus()))
    left = left.filter(
      (_, index) => states[index]?.mounts.every(({ state }) => state === 'current' || state === 'unavailable') !== true,
    )
  }
  return searches.length > 0
}
