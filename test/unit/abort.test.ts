import { getEventListeners } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { LateAbort, WithLateSignal, withSignalOf } from '../../src/core/call.ts'
import { followAbort, followFor } from '../../src/core/kit/abort.ts'

const listenersOf = (signal: AbortSignal) => getEventListeners(signal, 'abort').length
const aborted = (signal: AbortSignal) =>
  new Promise<unknown>((resolve) => signal.addEventListener('abort', () => resolve(signal.reason), { once: true }))

describe('a follower', () => {
  test('aborts with the first of its signals, and with its reason', () => {
    const [first, second] = [new AbortController(), new AbortController()]
    const follower = followAbort(first.signal, second.signal)
    second.abort('second')
    first.abort('first')
    expect(follower.signal.reason).toBe('second')
    expect(followAbort(new AbortController().signal, first.signal).signal.reason).toBe('first')
  })

  test('leaves nothing at its signals once it is released', () => {
    const controllers = [new AbortController(), new AbortController()]
    const signals = controllers.map(({ signal }) => signal)
    const followers = [followAbort(...signals), followFor(signals, 60_000)]
    expect(signals.map(listenersOf)).toEqual([2, 2])
    for (const { release } of followers) release()
    expect(signals.map(listenersOf)).toEqual([0, 0])
    for (const controller of controllers) controller.abort()
    expect(followers.map(({ signal }) => signal.aborted)).toEqual([false, false])
  })

  test('of a time aborts when it is over, with or without a signal to follow', async () => {
    for (const signals of [new AbortController().signal, []])
      expect(await aborted(followFor(signals, 1).signal)).toMatchObject({ name: 'TimeoutError' })
  })
})

test('no source waits with AbortSignal.any and AbortSignal.timeout: Node 20 may collect them while somebody waits', () => {
  const source = join(import.meta.dirname, '../../src')
  const files = readdirSync(source, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'))
  const pairs = files.filter((file) => {
    const code = readFileSync(join(source, file), 'utf8').replace(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, '')
    return code.includes('AbortSignal.any(') && code.includes('AbortSignal.timeout(')
  })
  expect(pairs).toEqual([])
})

describe('a late abort', () => {
  test.each(['before', 'after'])('has a signal, asked for %s it aborts', (when) => {
    const abort = new LateAbort()
    const early = when === 'before' ? abort.signal : undefined
    expect(early?.aborted).not.toBe(true)
    abort.abort('first')
    abort.abort('second')
    expect(abort).toMatchObject({ aborted: true, reason: 'first', signal: { aborted: true, reason: 'first' } })
    if (early !== undefined) expect(abort.signal).toBe(early)
  })

  test('aborts with an AbortError by default', () => {
    const abort = new LateAbort()
    abort.abort()
    expect(abort.signal.reason).toMatchObject({ name: 'AbortError' })
  })

  test('tells its listeners once, also those that come later, and not those that have gone', () => {
    const abort = new LateAbort()
    const told: string[] = []
    const gone = () => told.push('gone')
    abort.listen((reason) => told.push(`first ${String(reason)}`))
    abort.listen(gone)
    abort.unlisten(gone)
    abort.abort('over')
    abort.abort('again')
    abort.listen((reason) => told.push(`late ${String(reason)}`))
    expect(told).toEqual(['first over', 'late over'])
  })

  test('has the same signal in every object that is made with it, and in their copies', () => {
    const abort = new LateAbort()
    const object = new WithLateSignal(abort)
    const options = withSignalOf(object, { room: 1 })
    const copy = { ...options }
    expect(WithLateSignal.abortOf(options)).toBe(abort)
    expect(WithLateSignal.abortOf(copy)).toBeUndefined()
    expect([object.signal, options.signal, copy.signal]).toEqual([abort.signal, abort.signal, abort.signal])
    expect(copy.room).toBe(1)
    const { signal } = new AbortController()
    expect(withSignalOf({ signal }, { room: 1 })).toEqual({ signal, room: 1 })
  })
})
