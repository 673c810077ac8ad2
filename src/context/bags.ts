import { extname, join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import { createHost, workerLimits } from '../core/kit/workers.ts'
import { type Bag, bagOf } from '../text/words.ts'

/** Counts the words of texts. Returns a bag for each, in their order. */
type CountBags = (texts: readonly string[]) => Promise<readonly Bag[]>

/** Number of UTF-16 units examined before the task yields to the event loop. */
const slice = 65_536

export const bagsHere: CountBags = async (texts) => {
  const bags: Bag[] = []
  let units = 0
  for (const text of texts) {
    bags.push(bagOf(text))
    units += text.length
    if (units < slice) continue
    units = 0
    await turn()
  }
  return bags
}

const never = new AbortController().signal

/**
 * Counts in a thread, or on this one when the thread fails.
 *
 * @param file The file that the thread runs; tests use one that dies.
 */
export function createThreadCount(file = join(import.meta.dirname, `words-worker${extname(import.meta.filename)}`)) {
  const host = createHost<readonly string[], readonly Bag[]>(file, workerLimits.words)
  const count: CountBags = async (texts) => {
    const outcome = texts.length === 0 ? { result: [] } : await host.run(texts, never)
    return 'result' in outcome ? outcome.result : bagsHere(texts)
  }
  return { count, close: host.close }
}

let thread: ReturnType<typeof createThreadCount> | undefined

/** Counts in the thread of this process, which starts at the first text, and ends when it is idle. */
export const bagsInThread: CountBags = (texts) => {
  thread ??= createThreadCount()
  return thread.count(texts)
}
