import type { Reach } from './glob.ts'
import type { Mounted } from './mount.ts'
import type { MountWatch } from './mount-watch.ts'
import type {
  Change,
  Content,
  Degradation,
  Entry,
  EntryPart,
  ListQuery,
  Principal,
  ReadRequest,
  Template,
} from './provider.ts'

import { parseUri } from './uri.ts'

/**
 * One mount as the indexer sees it: its entries without access rules, together with the decision who may see them. Its
 * results must pass {@link MountReader.allows} before they reach a client.
 */
export interface MountReader {
  readonly address: string
  readonly title?: string
  uriOf(path: string): string
  /** Returns the path of a URI that `uriOf` made. */
  pathOf(uri: string): string
  list(query: ListQuery, signal: AbortSignal): AsyncIterable<Entry>
  find(path: string, signal: AbortSignal): Promise<Entry | undefined>
  read(request: ReadRequest, signal: AbortSignal): Promise<readonly Content[]>
  templates(signal: AbortSignal): Promise<readonly Template[]>
  /** Returns the parts of an entry (`Provider.parts`). Undefined when no entry has any. */
  readonly parts?: (path: string, signal: AbortSignal) => Promise<AsyncIterable<EntryPart> | undefined>
  /**
   * Notifies about changes of what is listed until `signal` aborts; a change without a path means that everything may
   * have changed. Resolves to whether the watch runs: otherwise it begins as soon as it can, and then reports a change
   * of everything. Undefined when the source cannot notify about changes.
   */
  readonly watch?: (hear: (changes: readonly Change[]) => void, signal: AbortSignal) => Promise<boolean>
  /**
   * Looks at the source now, and notifies about the changes so far ({@link MountWatch.catchUp}). Undefined without
   * `watch`.
   */
  readonly catchUp?: (signal: AbortSignal) => Promise<boolean>
  /** When the watch last looked at a source that is polled, in milliseconds since 1970 (`Provider.lookedAt`). */
  lookedAt(): number | undefined
  degraded(): Degradation | undefined
  /** Returns why the source did not answer the last request; undefined when it did. */
  failing(): string | undefined
  /**
   * Resolves to whether `allows` can decide yet. A source that decides too may have to answer a request before.
   * Undefined when the rules alone decide.
   */
  readonly knows?: (signal: AbortSignal) => Promise<boolean>
  reach(principal: Principal): Reach
  /**
   * Returns a key for a principal. Principals with the same key may see the same paths of the mount, now and later.
   * Undefined when no key can promise that, because the decisions of the source can change at any time.
   */
  callers(principal: Principal): string | undefined
  /** Whether a principal may see a path, by the rules and by the source. */
  allows(principal: Principal, path: string): boolean
}

/**
 * The principal that reads for the index, compared by identity. A source with its own access rules shows it everything.
 */
export const indexerPrincipal: Principal = { id: 'hikidashi-index', roles: [] }
const principal = indexerPrincipal
/** Denies the other paths of an entry to the indexer, so that an entry with several paths is indexed under its own path only. */
const denied = () => false
/**
 * Does the same as {@link denied} for a mount without rules. A source recognises it by identity, and then need not ask
 * it about any path.
 */
export const allowsInOpenMount = () => false

export function createMountReader(mount: Mounted, watch: MountWatch | undefined): MountReader {
  const { provider, root } = mount
  const allows = mount.restricted ? denied : allowsInOpenMount
  const isListed = ({ path }: Change) => path === undefined || provider.isListed?.(path) !== false
  return {
    address: mount.address.text,
    ...(root.title === undefined ? {} : { title: root.title }),
    uriOf: mount.uriOf,
    pathOf: (uri) => parseUri(uri).segments.slice(mount.address.segments.length).join('/'),
    list: (query, signal) => provider.list(query, { principal, signal, allows }),
    find: (path, signal) => mount.findAny(path, { principal, signal, allows }),
    read: (request, signal) => provider.read(request, { principal, signal, allows }),
    templates: async (signal) => (await provider.templates?.({ principal, signal, allows })) ?? [],
    ...(provider.parts && { parts: async (path, signal) => provider.parts?.(path, { principal, signal, allows }) }),
    ...(watch && {
      watch: (hear, signal) => addWatchListener(watch, (changes) => hear(changes.filter(isListed)), signal),
      catchUp: watch.catchUp,
    }),
    lookedAt: () => provider.lookedAt?.(),
    degraded: () => (watch === undefined ? provider.degraded?.() : watch.degraded()),
    failing: () => provider.failing?.(),
    ...(provider.sees === undefined ? {} : { knows: (signal) => answers(mount, signal) }),
    reach: (asking) => mount.reach(asking, ''),
    callers: mount.callers,
    allows: mount.access,
  }
}

async function answers(mount: Mounted, signal: AbortSignal): Promise<boolean> {
  try {
    await mount.findAny('hikidashi-index', { principal, signal })
    return true
  } catch {
    signal.throwIfAborted()
    return false
  }
}

async function addWatchListener(watch: MountWatch, hear: (changes: readonly Change[]) => void, signal: AbortSignal) {
  // A timer delivers the changes. It cannot run before the listener is added below, so none is missed.
  const armed = await watch.arm(signal)
  if (signal.aborted) return false
  signal.addEventListener('abort', watch.addWhole(hear), { once: true })
  return armed
}
