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
 * One mount as what indexes it reads it: everything in it, whoever may see it, and what of that whom. It is for the server's own
 * work: what it says goes to no client but through {@link MountReader.allows}.
 */
export interface MountReader {
  /** In canonical spelling. */
  readonly address: string
  readonly title?: string
  uriOf(path: string): string
  /** The path of a URI that `uriOf` made. */
  pathOf(uri: string): string
  list(query: ListQuery, signal: AbortSignal): AsyncIterable<Entry>
  find(path: string, signal: AbortSignal): Promise<Entry | undefined>
  read(request: ReadRequest, signal: AbortSignal): Promise<readonly Content[]>
  templates(signal: AbortSignal): Promise<readonly Template[]>
  /** The parts of an entry: `Provider.parts`. Left out where no entry has any. */
  readonly parts?: (path: string, signal: AbortSignal) => Promise<AsyncIterable<EntryPart> | undefined>
  /**
   * Tells of every change until `signal` aborts; one without a path: everything may have changed. It shares the watch of those
   * who listen. Resolves to whether it works by now: where it does not, it begins as soon as it can, and says so with a
   * change of everything. Left out where the source cannot tell of changes.
   */
  readonly watch?: (hear: (changes: readonly Change[]) => void, signal: AbortSignal) => Promise<boolean>
  degraded(): Degradation | undefined
  /**
   * Resolves to whether it is known who may see what. Left out where the rules alone say so; where the source has a say too, it may
   * have to be asked first, and until it has answered `allows` means nothing.
   */
  readonly knows?: (signal: AbortSignal) => Promise<boolean>
  /** What a principal may see of the mount, as far as the rules alone tell. */
  reach(principal: Principal): Reach
  /**
   * Principals with the same one may see the same paths of the mount, now and later. `undefined`: what they may see can differ, and
   * change at any time.
   */
  callers(principal: Principal): string | undefined
  /** Whether the rules let a principal see what is at a path. */
  allows(principal: Principal, path: string): boolean
}

/** Who reads what is indexed: this very object, so that nobody can pass for it. A source that looks at who asks shows it all. */
export const indexer: Principal = { id: 'hikidashi-index', roles: [] }
const principal = indexer
/** What is served under several paths is indexed under its own one alone: for that one it is known who may see it. */
const allows = () => false

export function createMountReader(mount: Mounted, watch: MountWatch | undefined): MountReader {
  const { provider, root } = mount
  return {
    address: mount.address.text,
    ...(root.title === undefined ? {} : { title: root.title }),
    uriOf: mount.uriOf,
    pathOf: (uri) => parseUri(uri).segments.slice(mount.address.segments.length).join('/'),
    list: (query, signal) => provider.list(query, { principal, signal, allows }),
    find: (path, signal) => mount.findAny(path, { principal, signal, allows }),
    read: (request, signal) => provider.read(request, { principal, signal, allows, bare: true }),
    templates: async (signal) => (await provider.templates?.({ principal, signal, allows })) ?? [],
    ...(provider.parts === undefined
      ? {}
      : { parts: async (path, signal) => provider.parts?.(path, { principal, signal, allows }) }),
    ...(watch === undefined ? {} : { watch: (hear, signal) => listen(watch, hear, signal) }),
    degraded: () => (watch === undefined ? provider.degraded?.() : watch.degraded()),
    ...(provider.sees === undefined ? {} : { knows: (signal) => answers(mount, signal) }),
    reach: (asking) => mount.reach(asking, ''),
    callers: mount.callers,
    allows: mount.access,
  }
}

/** Whether the source answers, when it is asked for anything. */
async function answers(mount: Mounted, signal: AbortSignal): Promise<boolean> {
  try {
    await mount.findAny('hikidashi-index', { principal, signal })
    return true
  } catch {
    signal.throwIfAborted()
    return false
  }
}

async function listen(watch: MountWatch, hear: (changes: readonly Change[]) => void, signal: AbortSignal) {
  // What is told of changes comes later than this: none is missed in between.
  const armed = await watch.arm(signal)
  if (signal.aborted) return false
  signal.addEventListener('abort', watch.addWhole(hear), { once: true })
  return armed
}
