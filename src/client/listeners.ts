import { invalid } from '../core/errors.ts'
import { untilAborted } from '../core/kit/abort.ts'
import { decodeComponent } from '../core/uri.ts'
import type { CallOptions, Subscription, ViewChange } from '../core/view.ts'

export interface ChangeSet {
  readonly uris: ReadonlySet<string>
  readonly list: boolean
  readonly prompts: boolean
  readonly tools: boolean
}

export const emptyChangeSet: ChangeSet = { uris: new Set(), list: false, prompts: false, tools: false }

export function isEmptyChangeSet({ uris, list, prompts, tools }: ChangeSet): boolean {
  return uris.size === 0 && !list && !prompts && !tools
}

/** Changes that were notified within a short time. */
export interface NotificationBatch extends Omit<ViewChange, 'below'> {
  /** Set if notifications were missed, so that everything in the batch may have changed. */
  readonly missed?: true
}

/** The listeners of one server, each with the changes that it asked for. */
export type Listeners = ReturnType<typeof createListeners>

interface ListenersOptions {
  /** Requests the wanted set from the server. Resolves to the set that the server agreed to. */
  ask(): Promise<ChangeSet>
  /** Returns the set that the server has agreed to so far. */
  agreed(): ChangeSet
  shrink(): void
  /** Maximum number of URIs of all listeners together. */
  readonly maxUris: number
  /** Called with the error that a listener throws. The other listeners are still notified. */
  onFault(error: unknown): void
}

type Listener = (change: ViewChange & Pick<NotificationBatch, 'missed'>) => void

interface Listening {
  readonly listener: Listener
  readonly uris: Set<string>
  list: boolean
  prompts: boolean
  tools: boolean
}

export function createListeners({ ask, agreed, shrink, maxUris, onFault }: ListenersOptions) {
  const all = new Set<Listening>()
  const names = createUriCounts()

  const open = (listener: Listener): Subscription => {
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
        const changeSet = await untilAborted(ask(), options?.signal)
        own[kind] = changeSet[kind]
        return changeSet[kind]
      } catch (error) {
        own[kind] = before
        throw error
      }
    }
    return {
      get uris() {
        return [...own.uris].filter((uri) => agreed().uris.has(uri))
      },
      add: async (newUris, options) => {
        options?.signal?.throwIfAborted()
        if (!all.has(own)) return []
        const uris = [...new Set(newUris)]
        const fresh = uris.filter((uri) => !own.uris.has(uri))
        if (names.size + fresh.length > maxUris)
          throw invalid(`The limit of ${maxUris} URIs is reached. Unsubscribe from some.`, 'too-many', {
            limit: maxUris,
          })
        // Count the URIs as wanted from now on: if the connection is lost meanwhile, the new one subscribes to them too.
        for (const uri of fresh) {
          own.uris.add(uri)
          names.add(uri)
        }
        try {
          // The agreed set can be trusted for URIs that were wanted all along: others may be unsubscribed at this moment.
          const isAgreed = fresh.length === 0 && uris.every((uri) => agreed().uris.has(uri))
          const changeSet = isAgreed ? agreed() : await untilAborted(ask(), options?.signal)
          for (const uri of fresh) if (!changeSet.uris.has(uri)) drop(uri)
          return uris.filter((uri) => own.uris.has(uri) && changeSet.uris.has(uri))
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
    wanted: (): ChangeSet => ({
      uris: new Set(names.all()),
      list: [...all].some(({ list }) => list),
      prompts: [...all].some(({ prompts }) => prompts),
      tools: [...all].some(({ tools }) => tools),
    }),
    /** Returns the subscribed URIs that a change of `uri` affects: other spellings of it, and of the directories above it. */
    concernedBy: names.of,
    tell: (batch: NotificationBatch) => {
      for (const listening of [...all]) {
        const change = changeFor(listening, batch)
        if (change === undefined || !all.has(listening)) continue
        try {
          listening.listener(change)
        } catch (error) {
          onFault(error)
        }
      }
    },
    clear: () => all.clear(),
  }
}

function changeFor({ uris, list, prompts, tools }: Listening, batch: NotificationBatch) {
  const change = { uris: batch.uris.filter((uri) => uris.has(uri)), listed: batch.listed && list }
  const ofPrompts = batch.prompts === true && prompts
  const ofTools = batch.tools === true && tools
  if (change.uris.length === 0 && !change.listed && !ofPrompts && !ofTools) return undefined
  return {
    ...change,
    ...(ofPrompts ? { prompts: true } : {}),
    ...(ofTools ? { tools: true } : {}),
    ...(batch.missed ? { missed: true as const } : {}),
  }
}

/** Counts the listeners of each URI, as the listeners spell it; {@link uriKey} finds the other spellings of a changed URI. */
export function createUriCounts() {
  const counts = new Map<string, number>()
  const spellings = new Map<string, Set<string>>()
  return {
    get size(): number {
      return counts.size
    },
    all: (): Iterable<string> => counts.keys(),
    add: (uri: string) => {
      counts.set(uri, (counts.get(uri) ?? 0) + 1)
      const key = uriKey(uri)
      const forms = spellings.get(key) ?? new Set<string>()
      spellings.set(key, forms.add(uri))
    },
    remove: (uri: string) => {
      const remaining = (counts.get(uri) ?? 0) - 1
      if (remaining > 0) return void counts.set(uri, remaining)
      counts.delete(uri)
      const key = uriKey(uri)
      const forms = spellings.get(key)
      forms?.delete(uri)
      if (forms?.size === 0) spellings.delete(key)
    },
    /** Returns the URIs that a change of `uri` concerns: its own spellings, and those of the directories above it. */
    of: function* (uri: string): Iterable<string> {
      for (let key = uriKey(uri); ; key = key.slice(0, key.lastIndexOf('/'))) {
        yield* spellings.get(key) ?? []
        if (!key.includes('/')) return
      }
    },
  }
}

/** Returns a key that all spellings of a URI share: servers differ in the characters that they escape, and in a final slash. */
export function uriKey(uri: string): string {
  const bare = uri.endsWith('/') ? uri.slice(0, -1) : uri
  return bare
    .replace(/^[^:/?#]+:(?:\/\/[^/?#]*)?/, (start) => start.toLowerCase())
    .replace(/(?:%[0-9A-Fa-f]{2})+/g, (escaped) => decodeComponent(escaped) ?? escaped.toUpperCase())
}

/** A stream of changes (2026-07-28), which is opened with a fixed set of changes. */
export interface ChangeStream {
  /** Number of requested URIs. */
  readonly asked: number
  readonly told: ChangeSet
  /** Resolves when the stream ends, for any reason. */
  readonly ended: Promise<unknown>
  close(): void
}

/**
 * Manages the one stream that carries the changes of a server. Another set of changes needs a new stream, which replaces the old.
 *
 * @param open Opens a stream. Resolves to undefined when the server sends no notifications.
 * @param onLost Called when the current stream ends although this client did not close it.
 * @param spare A stream of up to 2 × wanted + `spare` URIs is kept.
 */
export function createChangeStreamManager(
  open: (wanted: ChangeSet) => Promise<ChangeStream | undefined>,
  onLost: () => void,
  spare = 8,
) {
  let current: ChangeStream | undefined
  const replace = (next: ChangeStream | undefined) => {
    const previous = current
    current = next
    previous?.close()
  }
  return {
    get told(): ChangeSet | undefined {
      return current?.told
    },
    /**
     * Opens a stream for a set of changes, unless the current one covers it. Resolves to the set that the server agreed to.
     *
     * @throws ResourceError when the stream cannot be opened; then the old stream stays.
     */
    ask: async (changeSet: ChangeSet): Promise<ChangeSet> => {
      if (current !== undefined && suffices(current, changeSet, spare)) return current.told
      const next = isEmptyChangeSet(changeSet) ? undefined : await open(changeSet)
      // The old stream has carried the changes until now, so none is missed.
      replace(next)
      void next?.ended.then(() => {
        if (current !== next) return
        current = undefined
        onLost()
      })
      return next?.told ?? emptyChangeSet
    },
    close: () => replace(undefined),
  }
}

/** Whether a stream covers the wanted changes, and not many others. */
function suffices({ asked, told }: ChangeStream, changeSet: ChangeSet, spare: number): boolean {
  if (isEmptyChangeSet(changeSet) || asked > 2 * changeSet.uris.size + spare) return false
  const kinds = ['list', 'prompts', 'tools'] as const
  return kinds.every((kind) => told[kind] || !changeSet[kind]) && [...changeSet.uris].every((uri) => told.uris.has(uri))
}
