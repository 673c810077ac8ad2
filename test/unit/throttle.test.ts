import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createCatalog } from '../../src/core/catalog.ts'
import { type Clock, createThrottle } from '../../src/core/changes.ts'
import type { ViewChange } from '../../src/core/view.ts'
import { live, until } from '../support/live.ts'

/** A clock that stands still until it is set forward. */
function handClock() {
  let now = 0
  const waiting = new Set<{ readonly at: number; readonly run: () => void }>()
  const clock: Clock = {
    now: () => now,
    after: (ms, run) => {
      const entry = { at: now + ms, run }
      waiting.add(entry)
      return () => void waiting.delete(entry)
    },
  }
  const forward = (ms: number) => {
    const end = now + ms
    for (;;) {
      const [next] = [...waiting].filter(({ at }) => at <= end).sort((a, b) => a.at - b.at)
      if (next === undefined) break
      waiting.delete(next)
      now = next.at
      next.run()
    }
    now = end
  }
  return { clock, forward, waiting }
}

describe('a throttle', () => {
  test('runs the first call at once, at most once in the interval, and always after the last call', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 5000 }), { minLength: 1, maxLength: 50 }), (pauses) => {
        const { clock, forward } = handClock()
        const ran: number[] = []
        const throttle = createThrottle(2000, () => ran.push(clock.now()), clock)
        let last = 0
        for (const [index, pause] of pauses.entries()) {
          forward(pause)
          if (throttle.admit()) ran.push(clock.now())
          last = clock.now()
          if (index === 0) expect(ran).toEqual([last])
        }
        forward(2000)
        expect(ran.at(-1)).toBeGreaterThanOrEqual(last)
        for (const [index, at] of ran.entries())
          if (index > 0) expect(at - (ran[index - 1] ?? 0)).toBeGreaterThanOrEqual(2000)
      }),
    )
  })

  test('runs nothing after it is closed', () => {
    const { clock, forward, waiting } = handClock()
    let ran = 0
    const throttle = createThrottle(2000, () => ran++, clock)
    expect([throttle.admit(), throttle.admit()]).toEqual([true, false])
    throttle.close()
    forward(10_000)
    expect([ran, waiting.size]).toEqual([0, 0])
  })
})

describe('under constant change,', () => {
  test('a client is notified at most once in 2 seconds of the list, at once of each resource, and of the last change', async () => {
    const { clock, forward } = handClock()
    const provider = live({ followed: '' })
    const catalog = createCatalog({ mounts: [{ address: 'mem://m', provider }], clock })
    const heard: ViewChange[] = []
    const subscription = catalog.view({ id: 'a', roles: [] }).subscribe?.((change) => heard.push(change))
    await subscription?.add(['mem://m/followed'])
    await subscription?.addList()
    const lists = () => heard.filter(({ listed }) => listed).length
    const news = () => heard.filter(({ uris }) => uris.length > 0).length
    // As long as the clock stands still, only the first change of the list is told.
    for (let round = 1; round <= 5; round++) {
      provider.set(`new-${round}`, { text: '' })
      provider.set('followed', { text: String(round) })
      await until(() => news() >= round)
    }
    expect(lists()).toBe(1)
    forward(1999)
    expect(lists()).toBe(1)
    forward(1)
    // The end of the interval tells of all that came within it, once.
    expect(lists()).toBe(2)
    forward(100_000)
    expect(lists()).toBe(2)
    provider.set('new-6', { text: '' })
    await until(() => lists() === 3)
    subscription?.close()
    await catalog.close()
  })
})
