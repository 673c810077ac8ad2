import { randomUUID } from 'node:crypto'
import type { Engine } from './engine.ts'
import type { Lease } from './store.ts'

type Leasing = Pick<Engine, 'takeLease' | 'renewLease' | 'dropLease'>

/**
 * Takes a lease and renews it at a third of its time. The time since the last successful renewal is measured by a monotonic
 * clock, from the start of the request: this process gives the lease up before the store frees it.
 */
export async function holdLease(engine: Leasing, name: string, ttlMs: number): Promise<Lease | undefined> {
  const holder = randomUUID()
  let renewed = performance.now()
  if (!(await engine.takeLease(name, holder, ttlMs))) return undefined
  const lost = new AbortController()
  let ended = false
  let timer: NodeJS.Timeout | undefined
  let end: NodeJS.Timeout | undefined

  const stop = () => {
    ended = true
    clearTimeout(timer)
    clearTimeout(end)
  }
  const lose = () => {
    if (ended) return
    stop()
    lost.abort()
    // It may have been renewed after all, by what was asked last.
    engine.dropLease(name, holder).catch(() => {})
  }
  const wait = (ms: number) => {
    timer = setTimeout(renew, ms)
    timer.unref()
  }
  const expect = () => {
    clearTimeout(end)
    end = setTimeout(lose, renewed + ttlMs - performance.now())
    end.unref()
  }
  const renew = async () => {
    const asked = performance.now()
    const held = await engine.renewLease(name, holder, ttlMs).catch(() => undefined)
    if (ended) return
    if (held === false) return lose()
    if (held === true) {
      renewed = asked
      expect()
    }
    wait(held === true ? ttlMs / 3 : Math.min(ttlMs / 10, 1000))
  }
  expect()
  wait(ttlMs / 3)

  return {
    signal: lost.signal,
    release: async () => {
      if (ended) return
      stop()
      await engine.dropLease(name, holder)
    },
  }
}
