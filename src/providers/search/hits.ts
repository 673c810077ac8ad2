import { isResourceError } from '../../core/errors.ts'
import { followFor } from '../../core/kit/abort.ts'
import { defined } from '../../core/kit/defined.ts'
import type { MountReader } from '../../core/mount-reader.ts'
import type { Principal } from '../../core/provider.ts'
import type { Allows, MountVisibility, SearchHit, SearchIndex } from '../../search/search-index.ts'
import type { Asked } from './query.ts'

export interface Finding {
  /** Those that were asked for. */
  readonly hits: readonly SearchHit[]
  /** Of the best hit of all that may be seen. */
  readonly best: number
  /** How many there are in all, where that is known. */
  readonly total?: number
  readonly more: boolean
  readonly notes: readonly string[]
  /** As in `Found`. */
  readonly fallback?: string
}

export interface Searched {
  readonly index: SearchIndex
  readonly mounts: ReadonlyMap<string, MountReader>
  /** Whether what is indexed of a mount is known to be what is there. */
  isCurrent(address: string): boolean
}

/** Maximum number of hits examined for one answer, and maximum time in milliseconds. */
const mostLooks = 20_000
const mostMs = 10_000
/** How long is waited to hear whether something is still there. */
const patienceMs = 1000

export const stoppedNote = 'Not everything was looked at: ask for something that is less frequent.'

/** Returns the check whether a principal may see an indexed document by the current rules. */
export function allowsFor(mounts: Searched['mounts'], principal: Principal): Allows {
  const known = new Map(
    [...mounts].map(([address, mount]): [string, MountVisibility] => {
      const callers = mount.callers(principal)
      return [address, { reach: mount.reach(principal), ...defined({ callers }) }]
    }),
  )
  const allows = ({ uri, mount }: Parameters<Allows>[0]): boolean => {
    const reach = known.get(mount)?.reach
    if (reach === 'all') return true
    const reader = reach === 'some' ? mounts.get(mount) : undefined
    return reader?.allows(principal, reader.pathOf(uri)) ?? false
  }
  return Object.assign(allows, { mounts: known })
}

/** The mounts of which it is known who may see what: where that is not, nobody sees anything. */
export async function knownMounts(mounts: Searched['mounts'], signal: AbortSignal): Promise<Searched['mounts']> {
  const known = await Promise.all(
    [...mounts.values()].map(async ({ knows }) => {
      if (knows === undefined) return true
      const waiting = followFor(signal, patienceMs * 5)
      return knows(waiting.signal)
        .catch(() => false)
        .finally(waiting.release)
    }),
  )
  signal.throwIfAborted()
  return new Map([...mounts].filter((_, place) => known[place]))
}

/** Finds the hits that somebody may see, and that are still there. */
export async function findHits(
  { index, mounts, isCurrent }: Searched,
  { text, where, limit, after }: Asked,
  allows: Allows,
  signal: AbortSignal,
): Promise<Finding> {
  const notes: string[] = []
  const degraded = (why: string) => void notes.push(why)
  let why: string | undefined
  const fallback = (told: string) => {
    why = told
  }
  const there = createPresence(mounts, isCurrent, signal)
  const hits: SearchHit[] = []
  const wanted = after + limit
  const end = performance.now() + mostMs
  let [looked, seen, best, ended] = [0, 0, 0, true]
  // One more than is wanted tells whether there are more.
  for await (const hit of index.search({ text, where, limit, allows, degraded, fallback, signal })) {
    signal.throwIfAborted()
    if (++looked > mostLooks || performance.now() > end) {
      notes.push(stoppedNote)
      ended = false
      break
    }
    if (!allows(hit) || !(await there(hit))) continue
    if (seen === 0) best = hit.score
    seen++
    if (seen > wanted) {
      ended = false
      break
    }
    if (seen > after) hits.push(hit)
  }
  const told = why === undefined || hits.length === 0 ? {} : { fallback: why }
  return { hits, best, ...(ended ? { total: seen } : {}), more: seen > wanted, notes, ...told }
}

/** Tells whether a document is still there, where the index may not know yet: each is asked for once. */
function createPresence(mounts: Searched['mounts'], isCurrent: Searched['isCurrent'], signal: AbortSignal) {
  const known = new Map<string, Promise<boolean>>()
  /** Those that did not answer: they are not waited for again. */
  const silent = new Set<string>()
  const look = async ({ uri, mount }: SearchHit): Promise<boolean> => {
    const reader = mounts.get(mount)
    if (reader === undefined || silent.has(mount)) return reader !== undefined
    const waiting = followFor(signal, patienceMs)
    try {
      return (await reader.find(reader.pathOf(uri), waiting.signal)) !== undefined
    } catch (error) {
      signal.throwIfAborted()
      if (isResourceError(error, 'not-found')) return false
      // A source that does not answer keeps what is indexed of it.
      silent.add(mount)
      return true
    } finally {
      waiting.release()
    }
  }
  return (hit: SearchHit): Promise<boolean> => {
    if (isCurrent(hit.mount)) return Promise.resolve(true)
    const answer = known.get(hit.uri) ?? look(hit)
    known.set(hit.uri, answer)
    return answer
  }
}
