import { describe, expect, test } from 'vitest'
import { breath } from '../../src/core/kit/breath.ts'

/** Works longer than the slice of a turn. */
function work(): void {
  const end = performance.now() + 12
  while (performance.now() < end);
}

const nextTurn = () => new Promise((resolve) => setImmediate(resolve))

describe('long work in time slices', () => {
  test('yields when all tasks in one turn of the event loop have used one slice together', async () => {
    await nextTurn()
    expect(breath.due()).toBe(false)
    work()
    expect([breath.due(), breath.due()]).toEqual([true, true])
    await breath.take()
    expect(breath.due()).toBe(false)
  })

  test('does not yield after it has waited for something else', async () => {
    breath.due()
    await new Promise((resolve) => setTimeout(resolve, 30))
    expect(breath.due()).toBe(false)
  })

  test('leaves every other turn to other work', async () => {
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
      expect(breath.due()).toBe(true)
      await breath.take()
      turns.push(turn)
    }
    counting = false
    // Never twice in one turn, however often it has yielded.
    expect(new Set(turns).size).toBe(turns.length)
  })

  test('continues in the order in which it yielded, with as many tasks in a turn as fit into a slice', async () => {
    let turn = 0
    let counting = true
    const count = () => {
      turn++
      if (counting) setImmediate(count)
    }
    setImmediate(count)
    const resumed: (readonly [string, number])[] = []
    const task = async (name: string, long: boolean) => {
      await breath.take()
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

  test('that becomes due while other work waits is queued after it', async () => {
    await nextTurn()
    const order: string[] = []
    const first = breath.take().then(() => order.push('first'))
    expect(breath.due()).toBe(true)
    const second = breath.take().then(() => order.push('second'))
    await Promise.all([first, second])
    expect(order).toEqual(['first', 'second'])
    expect(breath.due()).toBe(false)
  })

  test('of many small steps ends while other work yields again and again', async () => {
    await nextTurn()
    let rounds = 0
    let isOver = false
    const others = Array.from({ length: 8 }, async () => {
      while (!isOver) {
        rounds++
        await breath.take()
      }
    })
    await breath.take()
    for (let step = 0; step < 1000; step++) if (breath.due()) await breath.take()
    isOver = true
    await Promise.all(others)
    expect(rounds).toBeLessThan(1000)
  })
})
