import { invalid, isResourceError, notFound, unavailable } from '../../core/errors.ts'
import { compileGlobs } from '../../core/glob.ts'
import { type HttpUrl, httpUrlBelow } from '../../core/http-url.ts'
import { defined, requireKeys } from '../../core/kit/object.ts'
import { comparePaths, isPath } from '../../core/path.ts'
import type { Context, Description, Entry, Provider } from '../../core/provider.ts'
import { encodePath } from '../../core/uri.ts'
import { polled } from '../../wrap/polled.ts'
import { contentFromBytes, createFetch, createOriginClient, mediaTypeOf, type OriginOptions } from '../http/fetched.ts'
import { type LinkedPage, parseLlmsTxt } from './llms.ts'

export interface WebOptions extends OriginOptions {
  /** The listed pages, by their paths below `url`. The empty path is `url` itself. */
  readonly pages?: readonly (Description & { readonly path: string })[]
  /** Path of an `llms.txt` below `url`: the pages that it names there are listed too. Default none. */
  readonly llms?: string
  /** Globs of paths: other pages that may be read. Default none. */
  readonly match?: readonly string[]
  /** Whether pages are read through this server; else they are only listed, for clients to fetch. Default true. */
  readonly fetch?: boolean
  /** Globs of the media types that are served, such as `text/*`. Default {@link defaultMediaTypes}. */
  readonly types?: readonly string[]
  /** Interval at which listed pages are checked for changes, in milliseconds. By default never. */
  readonly poll?: number
}

/** MIME types served by default: those that a model or a person can read or view. */
export const defaultMediaTypes: readonly string[] = [
  'text/*',
  'image/*',
  'application/*json',
  'application/*xml',
  'application/*yaml',
  'application/pdf',
  'application/javascript',
  'application/vnd.openxmlformats-officedocument.*',
  'application/vnd.oasis.opendocument.*',
  'application/epub+zip',
]

/** Time for which a list of pages (`llms`) is cached, in milliseconds. */
const listMs = 60_000
/** Time until a list that could not be fetched again is tried once more, in milliseconds. */
const retryMs = 5000

const atOnce = 4

/**
 * Provider of web pages, at the URL of each, or at an address of your own. It lists the named pages, and those in the list `llms`; pages
 * that `match` matches can be read, too.
 *
 * @throws ResourceError `invalid` for an invalid option.
 */
export function web(options: WebOptions): Provider {
  requireKeys('web({ url })', options, { url: 'a string' })
  const { base, get } = createOriginClient(options)
  const { pages = [], llms, match = [], fetch = true, types = defaultMediaTypes, poll } = options
  const matches = compileGlobs(match)
  const isWanted = compileGlobs(types)
  const { fetch: load, renew: renewAnswers } = createFetch(get)
  const pageTable = createPageTable(pages)
  const bad = [...pages, ...(llms === undefined ? [] : [{ path: llms }])].find(
    ({ path }) => !isPath(path) || path.endsWith('/'),
  )
  if (bad !== undefined)
    throw invalid(
      `${JSON.stringify(bad.path)} is not the path of a page. Write one such as "docs/intro", without a slash at either end.`,
      'configuration',
    )
  if (pageTable.size < pages.length) throw invalid('"pages" has a page twice. Remove one of the two.', 'configuration')

  const requireWanted = (mimeType: string | undefined) => {
    if (mimeType !== undefined && !isWanted(mimeType))
      throw invalid('The page has a media type that "types" of the mount does not allow.', 'refused')
  }
  const accept = (contentType: string | undefined) => requireWanted(mediaTypeOf(contentType).mimeType)

  const list = llms === undefined ? undefined : createPageList(load, { base, llms, pages })
  const renew = () => {
    renewAnswers()
    list?.renew()
  }
  const table = async (signal: AbortSignal, fresh = false) =>
    list === undefined ? pageTable : list.table(signal, fresh)
  const isNamed = async (path: string, signal: AbortSignal) =>
    pageTable.has(path) || matches(path) || (llms !== undefined && (path === llms || (await table(signal)).has(path)))

  const loadPage = async (path: string, { signal }: Context, fresh = false) => {
    signal.throwIfAborted()
    if (!isPath(path) || path.endsWith('/') || !(await isNamed(path, signal)))
      throw notFound('no page that the configuration names')
    if (!fetch)
      throw invalid('This server does not read pages ("fetch" is false). Fetch the page from its URI.', 'refused')
    const document = await load({ url: httpUrlBelow(base, encodePath(path)), accept, signal, fresh })
    // The list of the pages is cached whatever its media type is, so `accept` does not check it again.
    requireWanted(document.mimeType)
    return document
  }

  /** Yields the listed pages with their current versions. The version of a missing page is the kind of its error. */
  const look = async function* (context: Context): AsyncGenerator<Entry> {
    const versionOf = async (path: string): Promise<string> => {
      try {
        return (await loadPage(path, context, true)).version
      } catch (error) {
        if (isResourceError(error, 'unavailable') || !isResourceError(error)) throw error
        return error.kind
      }
    }
    const entries = [...(await table(context.signal, true)).values()]
    for (let at = 0; at < entries.length; at += atOnce) {
      const some = entries.slice(at, at + atOnce)
      const versions = await Promise.all(some.map(({ path }) => versionOf(path)))
      for (const [index, { path }] of some.entries()) yield { path, version: versions[index] ?? '' }
    }
  }

  const provider: Provider = {
    list: async function* ({ prefix = '', after }, { signal }) {
      for (const entry of (await table(signal)).values()) {
        signal.throwIfAborted()
        if (entry.path.startsWith(prefix) && (after === undefined || comparePaths(entry.path, after) > 0)) yield entry
      }
    },
    stat: async (path, context) => {
      context.signal.throwIfAborted()
      const entry = pageTable.get(path) ?? (await table(context.signal)).get(path)
      if (entry !== undefined) return entry
      const { mimeType, version } = await loadPage(path, context)
      return { path, ...defined({ mimeType }), version }
    },
    renew,
    read: async ({ path }, context) => {
      const { body, version, mimeType, charset } = await loadPage(path, context)
      return [{ ...contentFromBytes(body, { mimeType, charset }), version }]
    },
    ...(match.length === 0
      ? {}
      : {
          templates: async () => [
            {
              template: '{+path}',
              name: 'Page',
              title: 'A page of the web',
              description: `A page by its path. These may be read: ${match.join(', ')}.`,
            },
          ],
        }),
  }
  if (poll === undefined || !fetch) return provider
  return polled(provider, { intervalMs: poll, look: (signal) => look({ principal: watcher, signal }) })
}

function createPageList(
  load: ReturnType<typeof createFetch>['fetch'],
  { base, llms, pages }: { readonly base: HttpUrl; readonly llms: string; readonly pages: readonly LinkedPage[] },
) {
  let cachedTable: { readonly table: PageTable; readonly until: number } | undefined
  /** The number of the last load of the list, and that of the first load whose result may be cached. */
  let [startedAt, newest] = [0, 0]
  return {
    renew: () => {
      newest = startedAt + 1
      if (cachedTable !== undefined) cachedTable = { ...cachedTable, until: 0 }
    },
    /** A list that cannot be fetched again stays unchanged. */
    table: async (signal: AbortSignal, fresh: boolean): Promise<PageTable> => {
      if (cachedTable !== undefined && !fresh && performance.now() < cachedTable.until) return cachedTable.table
      const url = httpUrlBelow(base, encodePath(llms))
      const own = ++startedAt
      try {
        const { body } = await load({ url, signal, fresh })
        const linkedPages = parseLlmsTxt(body.toString('utf8'), url, base)
        const table = createPageTable([...linkedPages, { path: llms, title: 'The list of the pages' }, ...pages])
        if (own < newest) return table
        newest = own
        cachedTable = { table, until: performance.now() + listMs }
        return table
      } catch (error) {
        signal.throwIfAborted()
        if (!isResourceError(error)) throw error
        if (cachedTable === undefined)
          throw unavailable('The list of the pages cannot be fetched. Check "llms" of the mount.', {}, error)
        if (own >= newest) cachedTable = { ...cachedTable, until: performance.now() + retryMs }
        return cachedTable.table
      }
    },
  }
}

type PageTable = ReadonlyMap<string, LinkedPage>

/** Returns the pages by path, in path order. Of pages with the same path, the last one is used. */
function createPageTable(pages: readonly LinkedPage[]): PageTable {
  const byPath = new Map(pages.map((page) => [page.path, page]))
  return new Map([...byPath].sort(([a], [b]) => comparePaths(a, b)))
}

const watcher = { id: 'hikidashi-poll', roles: [] }
