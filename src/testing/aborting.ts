import type { Context } from '../core/provider.ts'
import type { Listed } from './listing.ts'
import { show } from './metadata.ts'
import { late, type Run, within } from './run.ts'

/** Maximum number of buffered entries (a page) that a listing may still yield after its abort. */
const inHand = 1000

/** Calls methods with an aborted signal, and aborts a listing midway. */
export async function checkAborts(run: Run, listed: Listed): Promise<void> {
  const { provider } = run
  const path = listed.entries[0]?.path
  if (path === undefined || run.broken('list-ends')) return
  const calls: readonly (readonly [string, (context: Context) => PromiseLike<unknown>])[] = [
    ['list', (context) => provider.list({}, context)[Symbol.asyncIterator]().next()],
    ['read', (context) => provider.read({ path, params: new Map() }, context)],
    ...(provider.stat === undefined
      ? []
      : [['stat', async (context: Context) => provider.stat?.(path, context)] as const]),
  ]
  for (const [name, call] of calls) {
    const seen = await settled(run, () => call(contextOf(run, AbortSignal.abort())))
    if (seen === 'late') run.fail('abort-before', `${name} did not settle within ${run.bounds.timeoutMs} ms`, path)
    else if (seen !== undefined && (seen.value as { done?: boolean } | undefined)?.done !== true)
      run.fail('abort-before', `${name} answered ${show(seen.value)}`, path)
  }
  await checkAbortDuring(run, path)
}

async function checkAbortDuring(run: Run, path: string): Promise<void> {
  const abort = new AbortController()
  const entries = run.provider.list({}, contextOf(run, abort.signal))[Symbol.asyncIterator]()
  await settled(run, () => entries.next())
  abort.abort()
  for (let count = 0; ; count++) {
    const seen = await settled(run, () => entries.next())
    if (seen === 'late') return run.fail('abort-during', `it was still waiting after ${run.bounds.timeoutMs} ms`, path)
    // An abort may end it in any way.
    if (seen === undefined || seen.value.done === true) return
    if (count < inHand) continue
    await settled(run, async () => entries.return?.())
    return run.fail('abort-during', `it yielded more than ${inHand} entries after the abort`, path)
  }
}

function contextOf(run: Run, signal: AbortSignal): Context {
  return { principal: run.bounds.principal, signal: AbortSignal.any([signal, run.bounds.signal]) }
}

/** Returns the value of a call, `undefined` when it throws, or `late` when it does not settle before the time-out. */
export async function settled<T>(
  { bounds }: Run,
  work: () => PromiseLike<T>,
): Promise<{ readonly value: T } | 'late' | undefined> {
  try {
    const value = await within(bounds, work)
    return value === late ? 'late' : { value }
  } catch {
    bounds.signal.throwIfAborted()
    return undefined
  }
}
