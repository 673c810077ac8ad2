import { completeFromValues } from '../../core/completion.ts'
import { invalid, notFound } from '../../core/errors.ts'
import { compileGlobs } from '../../core/glob.ts'
import { type HttpUrl, httpUrlBelow } from '../../core/http-url.ts'
import { untilAborted } from '../../core/kit/abort.ts'
import { defined, requireKeys } from '../../core/kit/object.ts'
import type { Log } from '../../core/log.ts'
import { comparePaths } from '../../core/path.ts'
import type { CompletionRequest, Entry, Params, Provider, Template } from '../../core/provider.ts'
import { createScrubber } from '../../core/scrub.ts'
import { polled } from '../../wrap/polled.ts'
import { contentFromBytes, createFetch, createOriginClient, mediaTypeOf, type OriginOptions } from '../http/fetched.ts'
import { listRoute, type RouteItem } from './listing.ts'
import { compileRoute, type Route, type RouteOptions } from './route.ts'

export type { RouteList, RouteOptions } from './route.ts'

export interface ApiOptions extends OriginOptions {
  readonly routes: readonly RouteOptions[]
  /** Headers sent with every request to the origin of `url`, and to no other. */
  readonly headers?: Readonly<Record<string, string>>
  /** Secret values in the headers: they are removed from the answers of the API. */
  readonly secrets?: readonly string[]
  /** The media types that are served. Default: only JSON. */
  readonly types?: readonly string[]
  /** Maximum age of a cached listing, in milliseconds. Default 10,000. */
  readonly keepMs?: number
  /** Maximum number of listed entries of each route. Default 10,000. */
  readonly maxEntries?: number
  /** Interval of polls for changes of the listing, in milliseconds. Default: no polls. */
  readonly poll?: number
  readonly log?: Log
}

const jsonTypes: readonly string[] = ['application/json', 'application/*+json', 'text/json']

/**
 * Provider of a JSON API: each route maps a URI template of resources to a template of URLs of the API. It sends GET requests, and encodes
 * each value for its position.
 *
 * @throws ResourceError `invalid` for an invalid option.
 */
export function api(options: ApiOptions): Provider {
  requireKeys('api({ url, routes })', options, { url: 'a string', routes: 'an array' })
  const { base, get } = createOriginClient(options)
  const { headers = {}, secrets = [], types = jsonTypes, keepMs = 10_000, maxEntries = 10_000, poll } = options
  const { log = () => {} } = options
  const routes = options.routes.map(compileRoute)
  const isWanted = compileGlobs(types)
  const scrubber = createScrubber(secrets)
  const { fetch, renew: renewAnswers } = createFetch(get)

  const accept = (contentType: string | undefined) => {
    const { mimeType } = mediaTypeOf(contentType)
    if (mimeType !== undefined && !isWanted(mimeType))
      throw invalid('The answer of the API has a media type that "types" of the mount does not allow.', 'refused')
  }

  const load = (url: HttpUrl, signal: AbortSignal, fresh: boolean) =>
    fetch({ url, accept, signal, fresh, headers: { Accept: 'application/json' }, own: headers })

  const listAll = async (signal: AbortSignal, fresh: boolean): Promise<ReadonlyMap<string, RouteItem>> => {
    const items: RouteItem[] = []
    for (const route of routes) items.push(...(await listRoute(route, { base, load, maxEntries, log }, signal, fresh)))
    // The first of two routes that list the same path serves it.
    const byPath = new Map(items.reverse().map((item) => [item.entry.path, item]))
    return new Map([...byPath].map(([path, { entry, ...item }]) => [path, { ...item, entry: clean(entry) }]))
  }

  const clean = ({ title, description, ...entry }: Entry): Entry => ({
    ...entry,
    ...(title === undefined ? {} : { title: scrubber.scrub(title) }),
    ...(description === undefined ? {} : { description: scrubber.scrub(description) }),
  })

  const { get: getListing, clear } = remembered(listAll, keepMs)

  /** Makes later calls revalidate the cached answers, and load the listing again. */
  const renew = () => {
    renewAnswers()
    clear()
  }

  const routeOf = (path: string, params: Params) => {
    for (const route of routes) {
      const values = route.match(path, params)
      if (values !== undefined) return { route, values }
    }
    throw notFound('no route of the API has this path')
  }

  const loadAt = async (path: string, params: Params, signal: AbortSignal) => {
    signal.throwIfAborted()
    const { route, values } = routeOf(path, params)
    return { route, fetched: await load(httpUrlBelow(base, route.urlOf(values)), signal, false) }
  }

  const provider: Provider = {
    list: async function* ({ prefix = '', after }, { signal }) {
      signal.throwIfAborted()
      const items = await getListing(signal)
      for (const path of [...items.keys()].sort(comparePaths)) {
        signal.throwIfAborted()
        const entry = items.get(path)?.entry
        if (entry === undefined || !path.startsWith(prefix)) continue
        if (after === undefined || comparePaths(path, after) > 0) yield entry
      }
    },
    stat: async (path, { signal }) => {
      signal.throwIfAborted()
      const { route } = routeOf(path, new Map())
      const item = route.list === undefined ? undefined : (await getListing(signal)).get(path)
      if (item !== undefined) return item.entry
      const { mimeType } = (await loadAt(path, new Map(), signal)).fetched
      return { path, mimeType: mimeType ?? 'application/json' }
    },
    read: async ({ path, params }, { signal }) => {
      const { route, fetched } = await loadAt(path, params, signal)
      const { body, version, charset } = fetched
      const mimeType = fetched.mimeType ?? route.options.mimeType ?? 'application/json'
      const content = contentFromBytes(body, { mimeType, charset })
      if ('text' in content) return [{ ...content, version, text: scrubber.scrub(content.text) }]
      return [{ mimeType, version, bytes: scrubber.scrubBytes(body) }]
    },
    templates: async () => routes.map(templateOf),
    renew,
    complete: async (request, { signal }) => {
      const route = routes.find(({ options: { template } }) => template === request.template)
      if (route === undefined) return undefined
      if (route.list === undefined || !route.inPath.includes(request.argument.name)) return { values: [] }
      return completeVariable(request, [...(await getListing(signal)).values()])
    },
  }
  if (poll === undefined) return provider
  const look = async function* (signal: AbortSignal): AsyncGenerator<Entry> {
    const items = await listAll(signal, true)
    // An entry that was notified as changed must not be read from an older answer.
    renew()
    for (const [path, { stamp }] of items) yield { path, version: stamp }
  }
  return polled(provider, { intervalMs: poll, look })
}

function templateOf({ options }: Route): Template {
  const { template, title, description, mimeType = 'application/json', priority, audience } = options
  return {
    template,
    name: title ?? template,
    mimeType,
    ...defined({ title, description, priority, audience }),
  }
}

function completeVariable({ template, argument, arguments: filled }: CompletionRequest, items: readonly RouteItem[]) {
  const fits = ({ values, template: from }: RouteItem) =>
    from === template &&
    values.get(argument.name)?.startsWith(argument.value) === true &&
    [...filled].every(([name, value]) => name === argument.name || (values.get(name) ?? value) === value)
  const completions = [...new Set(items.filter(fits).map(({ values }) => values.get(argument.name) ?? ''))].sort(
    comparePaths,
  )
  return completeFromValues(completions)
}

interface SharedCall<T> {
  readonly result: Promise<T>
  readonly ended: AbortController
  waiting: number
}

/** Caches the result of `work`. Concurrent callers share one run, which is aborted when the last of them aborts. */
function remembered<T>(work: (signal: AbortSignal, fresh: boolean) => Promise<T>, keepMs: number) {
  let cachedValue: { readonly value: T; readonly until: number } | undefined
  let running: SharedCall<T> | undefined

  const start = (): SharedCall<T> => {
    const endController = new AbortController()
    const run: SharedCall<T> = { result: work(endController.signal, false), ended: endController, waiting: 0 }
    const end = () => {
      if (running === run) running = undefined
    }
    run.result.then((value) => {
      if (running === run) cachedValue = { value, until: performance.now() + keepMs }
      end()
    }, end)
    return run
  }
  /** Drops the result. A run that has begun still answers its callers, but its result is not cached. */
  const clear = () => {
    cachedValue = undefined
    running = undefined
  }

  const get = async (signal: AbortSignal): Promise<T> => {
    signal.throwIfAborted()
    if (cachedValue !== undefined && performance.now() < cachedValue.until) return cachedValue.value
    running ??= start()
    const mine = running
    mine.waiting++
    try {
      return await untilAborted(mine.result, signal)
    } finally {
      if (--mine.waiting === 0) {
        if (running === mine) running = undefined
        mine.ended.abort()
      }
    }
  }
  return { get, clear }
}
