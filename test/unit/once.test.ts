import { expect, test } from 'vitest'
import { coalesceRuns, doneOnce } from '../../src/core/kit/once.ts'

test('work that is done once is shared by simultaneous callers, and is run again after a failure, or when its result was forgotten', async () => {
  let runs = 0
  const once = doneOnce(async () => {
    runs++
    if (runs === 1) throw new Error('not now')
    return runs
  })
  await expect(Promise.all([once(), once()])).rejects.toThrow('not now')
  expect(await Promise.all([once(), once()])).toEqual([2, 2])
  once.forget()
  expect(await once()).toBe(3)
})

test('work that is asked for during a run is run once more, unless its signal has aborted', async () => {
  const stop = new AbortController()
  let runs = 0
  const run = coalesceRuns(async () => {
    runs++
    await undefined
  }, stop.signal)
  await Promise.all([run(), run(), run()])
  expect(runs).toBe(2)
  const last = run()
  void run()
  stop.abort()
  await last
  expect(runs).toBe(3)
})
