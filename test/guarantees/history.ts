/**
 * What happened in a run, as its clients and writers saw it, in one order: the place of a fact in the list is its time.
 * Everything runs in one process, so nothing happens between a write and the fact that tells of it.
 */
export type Fact =
  /** A read sees it from now on. `listed`: the entry came or went; `absent`: it went. */
  | { readonly kind: 'write'; uri: string; version: number; listed: boolean; absent: boolean }
  /** A source lost its watch: from now on, anything may be told again. */
  | { readonly kind: 'lost' }
  /** A way to be told things: one `subscriptions/listen`, or a session of an older revision. */
  | { readonly kind: 'open'; stream: number; client: number; principal: string; modern: boolean }
  /** The client asks to be told. It reads what it follows again whenever it is told of it. */
  | { readonly kind: 'ask'; stream: number; uris: readonly string[]; list: boolean; follows: readonly string[] }
  | { readonly kind: 'ack'; stream: number; uris: readonly string[]; list: boolean }
  /** The client asks not to be told any more; `gone`: nothing more may come. */
  | { readonly kind: 'left' | 'gone'; stream: number; uri: string }
  | { readonly kind: 'updated'; stream: number; uri: string }
  | { readonly kind: 'listed'; stream: number }
  /** The connection below it broke, and the client goes on with another: it may be told again. */
  | { readonly kind: 'resumed'; stream: number }
  | { readonly kind: 'end'; stream: number; how: 'result' | 'cut' | 'client' }
  /** A message that belongs to nothing that was asked. */
  | { readonly kind: 'stray'; client: number; text: string }
  /** `started`: how many facts there were when it was sent. */
  | { readonly kind: 'read'; client: number; uri: string; version: number | 'absent' | 'torn'; started: number }
  /** A read that was answered with an error that says nothing of the resource. */
  | { readonly kind: 'failed'; client: number; uri: string; text: string }
  | { readonly kind: 'list'; client: number; principal: string; uris: readonly string[] }
  /** All that was published has come to these streams; nothing is on its way. */
  | { readonly kind: 'quiet'; streams: readonly number[] }
  /** The service of these streams begins to end. */
  | { readonly kind: 'closing'; streams: readonly number[] }
  /** Something that must come had not come when the patience ended. */
  | { readonly kind: 'overdue'; what: string }
  /** What is still held when everybody has gone. */
  | { readonly kind: 'remains'; what: string; count: number }

export type FactOf<K extends Fact['kind']> = Extract<Fact, { readonly kind: K }>

export interface History {
  readonly facts: readonly Fact[]
  add(fact: Fact): void
  newStream(): number
}

export function createHistory(): History {
  const facts: Fact[] = []
  let streams = 0
  return { facts, add: (fact) => void facts.push(fact), newStream: () => streams++ }
}

/**
 * Waits until something holds, as long as the patience allows; what takes longer is a fact, with `details`. When one thing
 * has, there is little patience left for others.
 */
export function createPatience(history: History, patience: number) {
  let left = patience
  return async (what: string, holds: () => boolean, step = 5, details = () => ''): Promise<void> => {
    const end = performance.now() + left
    while (!holds() && performance.now() < end) await new Promise((resolve) => setTimeout(resolve, step))
    if (holds()) return
    history.add({ kind: 'overdue', what: `${what}${details()}` })
    left = patience / 10
  }
}

/** Numbers from 0 to 1, always the same for a seed (mulberry32). */
export interface Random {
  (): number
  below(limit: number): number
  pick<T>(values: readonly T[]): T
  some<T>(values: readonly T[], count: number): readonly T[]
}

export function createRandom(seed: number): Random {
  let state = seed | 0
  const next = () => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296
  }
  const below = (limit: number) => Math.floor(next() * limit)
  const pick = <T>(values: readonly T[]): T => {
    const value = values[below(values.length)]
    if (value === undefined) throw new Error('nothing to pick from')
    return value
  }
  const some = <T>(values: readonly T[], count: number): readonly T[] => {
    const left = [...values]
    return Array.from({ length: Math.min(count, left.length) }, () => left.splice(below(left.length), 1)).flat()
  }
  return Object.assign(next, { below, pick, some })
}
