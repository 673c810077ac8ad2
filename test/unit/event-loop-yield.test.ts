import { describe, expect, test } from 'vitest'
import { eventLoopYield } from '../../src/core/kit/event-loop-yield.ts'

/** Works longer than the slice of a turn. */
function work(): void {
  const end = performance.now() + 12
  while (performance.now() < end);
}

const nextTurn = () => new Promise((resolve) => setImmediate(resolve))

describe('long work in time slices', () => {
  test('yields when its slice of one turn of the event loop is used up, and then gets a new slice', async () => {
    await nextTurn()
    expect(eventLoopYield.due()).toBe(false)
    work()
    expect([eventLoopYield.due(), eventLoopYield.due()]).toEqual([true, true])
    await eventLoopYield.take()
    expect(eventLoopYield.due()).toBe(false)
  })

  test('does not yield after it has waited for something else', async () => {
    eventLoopYield.due()
    await new Promise((resolve) => setTimeout(resolve, 30))
    expect(eventLoopYield.due()).toBe(false)
  })

  test('continues at most once in one turn of the event loop, however often it yields', async () => {
    let turn = 0
    let counting = true
    const count = () => {
      turn++
      if (counting) setImmediate(count)
    }
    setImmediate(count)
    const turns: number[] = []
    for (let step = 0; step < 8; step++) {
      work()
      expect(eventLoopYield.due()).toBe(true)
      await eventLoopYield.take()
      turns.push(turn)
    }
    counting = false
    // Never twice in one turn, however often it has yielded.
    expect(new Set(turns).size).toBe(turns.length)
  })

  test('of several tasks continues in the order in which they yielded, with as many tasks in one turn as fit into a slice', async () => {
    let turn = 0
    let counting = true
    const count = () => {
      turn++
      if (counting) setImmediate(count)
    }
    setImmediate(count)
    const resumed: (readonly [string, number])[] = []
    const task = async (name: string, long: boolean) => {
      await eventLoopYield.take()
      resumed.push([name, turn])
      if (long) work()
    }
    await Promise.all([...['a', 'b', 'c'].map((name) => task(name, false)), task('d', true), task('e', true)])
    counting = false
    expect(resumed.map(([name]) => name).join('')).toBe('abcde')
    const turns = resumed.map((each) => each[1])
    expect(new Set(turns.slice(0, 4)).size).toBe(1)
    expect(turns[4]).toBeGreaterThan(turns[3] ?? 0)
  })

  test('yields to other work that already waits, and continues after it', async () => {
    await nextTurn()
    const order: string[] = []
    const first = eventLoopYield.take().then(() => order.push('first'))
    expect(eventLoopYield.due()).toBe(true)
    const second = eventLoopYield.take().then(() => order.push('second'))
    await Promise.all([first, second])
    expect(order).toEqual(['first', 'second'])
    expect(eventLoopYield.due()).toBe(false)
  })

  test('does not yield at each of its small steps while other work yields again and again', async () => {
    await nextTurn()
    let rounds = 0
    let isOver = false
    const others = Array.from({ length: 8 }, async () => {
      while (!isOver) {
        rounds++
        await eventLoopYield.take()
      }
    })
    await eventLoopYield.take()
    for (let step = 0; step < 1000; step++) if (eventLoopYield.due()) await eventLoopYield.take()
    isOver = true
    await Promise.all(others)
    expect(rounds).toBeLessThan(1000)
  })
})
