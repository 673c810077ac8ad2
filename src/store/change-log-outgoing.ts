import { sleep } from '../core/kit/sleep.ts'
import type { Log } from '../core/log.ts'
import type { Change } from '../core/provider.ts'
import { rowValueOf } from './change-log-rows.ts'
import type { Collection, NewRow } from './store.ts'

interface OutgoingOptions {
  readonly rows: Collection
  /** The name of this process: the keys of its rows begin with it. */
  readonly origin: string
  readonly log: Log
  readonly signal: AbortSignal
}

/** Minimum time from one row to the next, in milliseconds: changes in between go into one row. */
const spacingMs = 20
/** How long `publish` waits for a row, and `close` for the last one, in milliseconds. */
const patienceMs = 2000
const retryMs = { first: 100, longest: 2000 }
/** Maximum number of waiting changes of a source. Beyond it, everything of the source counts as changed. */
const maxWaiting = 10_000

/** The changes that go into the next row. */
interface Batch {
  readonly changes: Map<string, readonly Change[]>
  readonly written: Promise<void>
  readonly done: () => void
}

function createBatch(): Batch {
  let done = () => {}
  const written = new Promise<void>((resolve) => {
    done = resolve
  })
  return { changes: new Map(), written, done }
}

/** Writes the changes of this process to the log: in their order, joined, and again until the store has taken them. */
export function createOutgoing({ rows, origin, log, signal }: OutgoingOptions) {
  let waiting: Batch | undefined
  let last: Promise<void> = Promise.resolve()
  let count = 0
  let isWriting = false
  let failing = false

  const add = (source: string, changes: readonly Change[]): Batch => {
    waiting ??= createBatch()
    const known = waiting.changes.get(source) ?? []
    const isEverything = known.length + changes.length > maxWaiting
    waiting.changes.set(source, isEverything ? [{}] : [...known, ...changes])
    last = waiting.written
    return waiting
  }
  const put = async (row: NewRow): Promise<void> => {
    for (let wait: number = retryMs.first; !signal.aborted; wait = Math.min(wait * 2, retryMs.longest)) {
      try {
        await rows.put(row)
        failing = false
        return
      } catch (error) {
        if (!failing) log('warn', 'the other replicas cannot be told of changes just now', { error })
        failing = true
        await sleep(wait * (0.5 + Math.random()), signal)
      }
    }
  }
  const write = async (): Promise<void> => {
    isWriting = true
    for (let batch = waiting; batch !== undefined && !signal.aborted; batch = waiting) {
      waiting = undefined
      await put({ key: `${origin}/${++count}`, value: rowValueOf(batch.changes) })
      batch.done()
      await sleep(spacingMs, signal)
    }
    isWriting = false
  }

  return {
    publish: async (source: string, changes: readonly Change[]): Promise<boolean> => {
      if (changes.length === 0) return true
      const { written } = add(source, changes)
      if (!isWriting) void write()
      return withinPatience(written)
    },
    close: async (): Promise<void> => void (await withinPatience(last)),
  }
}

function withinPatience(done: Promise<void>): Promise<boolean> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(false), patienceMs)
    timer.unref()
    void done.then(() => {
      clearTimeout(timer)
      resolve(true)
    })
  })
}
