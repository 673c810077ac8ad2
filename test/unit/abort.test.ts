import { getEventListeners } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { followAbort, followAbortFor } from '../../src/core/kit/abort.ts'

const listenersOf = (signal: AbortSignal) => getEventListeners(signal, 'abort').length
const aborted = (signal: AbortSignal) =>
  new Promise<unknown>((resolve) => signal.addEventListener('abort', () => resolve(signal.reason), { once: true }))

describe('a follower of abort signals', () => {
  test('aborts with the first of its signals, and with the reason of that signal', () => {
    const [first, second] = [new AbortController(), new AbortController()]
    const follower = followAbort(first.signal, second.signal)
    second.abort('second')
    first.abort('first')
    expect(follower.signal.reason).toBe('second')
    expect(followAbort(new AbortController().signal, first.signal).signal.reason).toBe('first')
  })

  test('has no listener left on its signals once it is released', () => {
    const controllers = [new AbortController(), new AbortController()]
    const signals = controllers.map(({ signal }) => signal)
    const followers = [followAbort(...signals), followAbortFor(signals, 60_000)]
    expect(signals.map(listenersOf)).toEqual([2, 2])
    for (const { release } of followers) release()
    expect(signals.map(listenersOf)).toEqual([0, 0])
    for (const controller of controllers) controller.abort()
    expect(followers.map(({ signal }) => signal.aborted)).toEqual([false, false])
  })

  test('with a time-out aborts when the time is over, with or without a signal to follow', async () => {
    for (const signals of [new AbortController().signal, []])
      expect(await aborted(followAbortFor(signals, 1).signal)).toMatchObject({ name: 'TimeoutError' })
  })
})

test('no file of src uses both AbortSignal.any and AbortSignal.timeout, which Node 20 may collect while a caller waits', () => {
  const source = join(import.meta.dirname, '../../src')
  const files = readdirSync(source, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'))
  const pairs = files.filter((file) => {
    const code = readFileSync(join(source, file), 'utf8').replace(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, '')
    return code.includes('AbortSignal.any(') && code.includes('AbortSignal.timeout(')
  })
  expect(pairs).toEqual([])
})
