import { invalid } from '../core/errors.ts'
import { untilAborted } from '../core/kit/abort.ts'
import type { CallOptions, ChangeListener, Subscription } from '../core/view.ts'
import type { Link } from './connection.ts'
import { createNames } from './feed.ts'
import { createSteadyFeed } from './steady.ts'
import type { Wire } from './wire.ts'

/** The subscriptions of all listeners of one server. They share one feed. */
export interface RemoteChanges {
  open(listener: ChangeListener): Subscription
  close(): void
}

/** Maximum number of URIs that all subscriptions of a view listen to together. */
const maxUris = 10_000
/** Changes within this time are joined into one notification, without duplicates: servers repeat themselves. */
const joinMs = 10

interface Listening {
  readonly listener: ChangeListener
  readonly uris: Set<string>
  list: boolean
  prompts: boolean
  tools: boolean
}

/**
 * Creates the subscriptions of a view of a server. When changes may have been missed because a connection was lost, every
 * listener is notified that everything it listens to has changed.
 *
 * @param maxFailures The connection is over after this many failures in a row.
 */
export function createRemoteChanges(link: Link, maxFailures: number): RemoteChanges {
  const all = new Set<Listening>()
  const names = createNames()
  const changed = new Set<string>()
  let listed = false
  let prompted = false
  let tooled = false
  let timer: NodeJS.Timeout | undefined

  const tell = (): void => {
    timer = undefined
    const batch = { uris: [...changed], listed, prompted, tooled }
    changed.clear()
    ;[listed, prompted, tooled] = [false, false, false]
    for (const listening of [...all]) {
      const change = changeFor(listening, batch)
      if (change === undefined) continue
      try {
        listening.listener(change)
      } catch (error) {
        link.log('error', 'a change could not be told', { error })
      }
    }
  }
  const collect = (uris: Iterable<string>, list: boolean, { prompts = false, tools = false } = {}): void => {
    for (const uri of uris) changed.add(uri)
    listed ||= list
    prompted ||= prompts
    tooled ||= tools
    timer ??= setTimeout(tell, joinMs)
  }
  const feed = createSteadyFeed(link, {
    wanted: () => ({ uris: new Set(names.all()), ...wantedKinds([...all]) }),
    hear: (method: string, { uri }: Wire) => {
      const kind = changedKind(method)
      if (kind !== undefined) collect([], kind.list === true, kind)
      if (method === 'notifications/resources/updated' && typeof uri === 'string') collect(names.of(uri), false)
    },
    onGap: () => collect(names.all(), true, { prompts: true, tools: true }),
    maxFailures,
  })
  /** Asks the server to stop notifying about what nobody listens to any more. */
  const shrink = () => {
    if (!link.closing.aborted)
      feed.ask().catch((error: unknown) => link.log('debug', 'a server cannot be asked to tell less', { error }))
  }

  const open = (listener: ChangeListener): Subscription => {
    const own: Listening = { listener, uris: new Set(), list: false, prompts: false, tools: false }
    all.add(own)
    const drop = (uri: string): boolean => {
      if (!own.uris.delete(uri)) return false
      names.remove(uri)
      return true
    }
    const addKind = async (kind: 'list' | 'prompts' | 'tools', options: CallOptions | undefined): Promise<boolean> => {
      options?.signal?.throwIfAborted()
      if (!all.has(own)) return false
      const before = own[kind]
      own[kind] = true
      try {
        const agreed = await untilAborted(feed.ask(), options?.signal)
        own[kind] = agreed[kind]
        return agreed[kind]
      } catch (error) {
        own[kind] = before
        throw error
      }
    }
    return {
      get uris() {
        return [...own.uris].filter((uri) => feed.agreed.uris.has(uri))
      },
      add: async (given, options) => {
        options?.signal?.throwIfAborted()
        if (!all.has(own)) return []
        const uris = [...new Set(given)]
        const fresh = uris.filter((uri) => !own.uris.has(uri))
        if (names.size + fresh.length > maxUris)
          throw invalid(`There may be at most ${maxUris} URIs in all.`, 'too-many-subscriptions', { limit: maxUris })
        // Count the URIs as wanted from now on: if the connection is lost meanwhile, the new one subscribes to them too.
        for (const uri of fresh) {
          own.uris.add(uri)
          names.add(uri)
        }
        try {
          // The agreed set can be trusted only for URIs that were wanted all along: others may be unsubscribed at this moment.
          const isAgreed = fresh.length === 0 && uris.every((uri) => feed.agreed.uris.has(uri))
          const agreed = isAgreed ? feed.agreed : await untilAborted(feed.ask(), options?.signal)
          for (const uri of fresh) if (!agreed.uris.has(uri)) drop(uri)
          return uris.filter((uri) => own.uris.has(uri) && agreed.uris.has(uri))
        } catch (error) {
          for (const uri of fresh) drop(uri)
          throw error
        }
      },
      addList: (options) => addKind('list', options),
      addPrompts: (options) => addKind('prompts', options),
      addTools: (options) => addKind('tools', options),
      remove: (uri) => {
        if (drop(uri)) shrink()
      },
      close: () => {
        if (!all.delete(own)) return
        for (const uri of [...own.uris]) drop(uri)
        shrink()
      },
    }
  }

  return {
    open,
    close: () => {
      clearTimeout(timer)
      all.clear()
      feed.close()
    },
  }
}

/** Changes that were notified within a short time. */
interface Batch {
  readonly uris: readonly string[]
  readonly listed: boolean
  readonly prompted: boolean
  readonly tooled: boolean
}

/** The part of a batch that a listener asked for; undefined if there is none. */
function changeFor({ uris, list, prompts, tools }: Listening, batch: Batch) {
  const ofPrompts = batch.prompted && prompts
  const told = { uris: batch.uris.filter((uri) => uris.has(uri)), listed: batch.listed && list }
  const ofTools = batch.tooled && tools
  if (told.uris.length === 0 && !told.listed && !ofPrompts && !ofTools) return undefined
  return { ...told, ...(ofPrompts ? { prompts: true } : {}), ...(ofTools ? { tools: true } : {}) }
}

/** The list that a notification is about. */
function changedKind(method: string) {
  if (method === 'notifications/resources/list_changed') return { list: true }
  if (method === 'notifications/prompts/list_changed') return { prompts: true }
  return method === 'notifications/tools/list_changed' ? { tools: true } : undefined
}

/** The lists that any listener wants to hear of. */
function wantedKinds(all: readonly Listening[]) {
  return {
    list: all.some(({ list }) => list),
    prompts: all.some(({ prompts }) => prompts),
    tools: all.some(({ tools }) => tools),
  }
}
