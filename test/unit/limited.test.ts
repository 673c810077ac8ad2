import { getEventListeners } from 'node:events'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { notFound, ResourceError, unavailable } from '../../src/core/errors.ts'
import type { Context, Entry, Provider } from '../../src/core/provider.ts'
import { limited } from '../../src/wrap/limited.ts'
import { createBreaker } from '../../src/wrap/slots.ts'
import { pathsOf } from '../support/folder.ts'
import { until } from '../support/live.ts'
import { memory } from '../support/memory.ts'

const context = (signal = new AbortController().signal): Context => ({ principal: { id: 'a', roles: [] }, signal })
const down = () => new ResourceError('unavailable', 'connection refused')
const read = (provider: Provider, path = 'a', signal?: AbortSignal) =>
  provider.read({ path, params: new Map() }, context(signal))
const never = new Promise<never>(() => {})
/** A provider of which one method does what is given. */
const reading = (work: (path: string, signal: AbortSignal) => Promise<string>): Provider => ({
  ...memory({ a: 'a' }),
  read: async ({ path }, { signal }) => [{ text: await work(path, signal) }],
})
describe('the circuit breaker', () => {
  const create = () => {
    const clock = { now: 0 }
    const options = { failures: 3, pauseMs: 1000, maxPauseMs: 4000, now: () => clock.now, random: () => 0.5 }
    return { clock, breaker: createBreaker(options) }
  }

  test('opens after the configured number of failures in a row', () => {
    const { breaker } = create()
    for (const event of ['failed', 'failed', 'succeeded', 'failed', 'failed'] as const) breaker[event]()
    expect(breaker.admit()).toBe(0)
    breaker.failed()
    expect(breaker.admit()).toBe(1000)
    expect(breaker.open).toBe(true)
  })

  test('lets one request through when the pause is over, and no others until its outcome is known', () => {
    const { breaker, clock } = create()
    for (let i = 0; i < 3; i++) breaker.failed()
    clock.now = 999
    expect(breaker.admit()).toBe(1)
    clock.now = 1000
    expect(breaker.admit()).toBe(0)
    expect(breaker.admit()).toBeGreaterThan(0)
    breaker.succeeded()
    expect([breaker.admit(), breaker.admit(), breaker.open]).toEqual([0, 0, false])
  })

  test('doubles the pause while the source fails, up to the maximum', () => {
    const { breaker, clock } = create()
    for (let i = 0; i < 3; i++) breaker.failed()
    for (const pause of [2000, 4000, 4000]) {
      clock.now += 4000
      expect(breaker.admit()).toBe(0)
      breaker.failed()
      expect(breaker.admit()).toBe(pause)
    }
  })

  test('is not held open by a caller that left, nor extended by answers that were already under way', () => {
    const { breaker, clock } = create()
    for (let i = 0; i < 3; i++) breaker.failed()
    clock.now = 500
    breaker.failed()
    clock.now = 1000
    expect(breaker.admit()).toBe(0)
    breaker.abandoned()
    expect(breaker.admit()).toBe(0)
  })
})

describe('the limits of a mount', () => {
  test('do not affect a source that answers', async () => {
    const inner = memory({ a: 'a', 'b/c': 'c' })
    const provider = limited(inner)
    expect(await pathsOf(provider.list({}, context()))).toEqual(['a', 'b/c'])
    expect(await pathsOf(provider.list({ prefix: 'b/' }, context()))).toEqual(['b/c'])
    expect(await provider.stat?.('a', context())).toEqual({ path: 'a' })
    expect(await read(provider)).toEqual([{ text: 'a' }])
    expect(await provider.templates?.(context())).toEqual([{ template: '{+path}', name: 'All' }])
    expect(provider.complete).toBeUndefined()
    expect(provider.watch).toBeUndefined()
    expect(provider.degraded?.()).toBeUndefined()
  })

  test('end a read or a listing that takes too long, and abort the call of the source', async () => {
    const signals: AbortSignal[] = []
    const provider = limited(
      {
        ...reading((_, signal) => {
          signals.push(signal)
          return never
        }),
        list: (_, { signal }) => {
          signals.push(signal)
          return (async function* (): AsyncGenerator<Entry> {
            yield { path: 'a' }
            await never
          })()
        },
      },
      { timeoutMs: 40 },
    )
    await expect(read(provider)).rejects.toMatchObject({ kind: 'unavailable' })
    const listing = provider.list({}, context())[Symbol.asyncIterator]()
    expect((await listing.next()).value).toEqual({ path: 'a' })
    await expect(listing.next()).rejects.toMatchObject({ kind: 'unavailable' })
    expect(signals.map((signal) => signal.aborted)).toEqual([true, true])
  })

  test('do not count the time of a slow reader of a listing', async () => {
    const provider = limited(memory({ a: '', b: '' }), { timeoutMs: 40 })
    const listing = provider.list({}, context())[Symbol.asyncIterator]()
    await listing.next()
    await new Promise((resolve) => setTimeout(resolve, 120))
    expect((await listing.next()).value).toEqual({ path: 'b' })
  })

  test('end a call at once when its caller leaves, which is not a failure of the source', async () => {
    const provider = limited(
      reading(() => never),
      { failures: 1 },
    )
    for (let i = 0; i < 3; i++) {
      const controller = new AbortController()
      const reason = new Error('gone')
      const answer = read(provider, 'a', controller.signal)
      controller.abort(reason)
      await expect(answer).rejects.toBe(reason)
    }
    expect(provider.degraded?.()).toBeUndefined()
  })

  test('leave a failing source alone, state when to retry, and find out when it answers again', async () => {
    // However busy the machine is, the pause lasts until the test says otherwise.
    vi.useFakeTimers({ toFake: ['performance'] })
    onTestFinished(() => void vi.useRealTimers())
    let isDown = true
    let asked = 0
    const said: string[] = []
    const inner = reading(async () => {
      asked++
      if (isDown) throw down()
      return 'back'
    })
    const provider = limited(inner, { failures: 3, pauseMs: 30, log: (_, message) => said.push(message) })
    for (let i = 0; i < 3; i++) await expect(read(provider)).rejects.toThrow('connection refused')
    await expect(read(provider)).rejects.toMatchObject({ kind: 'unavailable', detail: { retryAfter: 1 } })
    expect(asked).toBe(3)
    expect(provider.degraded?.()).toBe('unavailable')
    // Listings are kept away too.
    await expect(pathsOf(provider.list({}, context()))).rejects.toMatchObject({ detail: { retryAfter: 1 } })
    isDown = false
    await expect(read(provider)).rejects.toMatchObject({ kind: 'unavailable' })
    // A quarter longer than the pause at most.
    vi.advanceTimersByTime(38)
    const [text] = await read(provider)
    expect(text).toEqual({ text: 'back' })
    expect(provider.degraded?.()).toBeUndefined()
    expect(said).toEqual([
      'a source failed several times in a row: it gets no requests for a moment',
      'the source answers again',
    ])
  })

  test('try the source again after it asked for a pause in the trial', async () => {
    vi.useFakeTimers({ toFake: ['performance'] })
    onTestFinished(() => void vi.useRealTimers())
    const answers = [down(), unavailable('too many requests', { retryAfter: 3 })]
    const inner = reading(async () => {
      const error = answers.shift()
      if (error !== undefined) throw error
      return 'back'
    })
    const provider = limited(inner, { failures: 1, pauseMs: 30 })
    await expect(read(provider)).rejects.toThrow('connection refused')
    vi.advanceTimersByTime(38)
    await expect(read(provider)).rejects.toMatchObject({ detail: { retryAfter: 3 } })
    expect(await read(provider)).toEqual([{ text: 'back' }])
    expect(provider.degraded?.()).toBeUndefined()
  })

  test('count "not found" and "too large" as answers, and not as failures', async () => {
    const provider = limited(
      reading(async (path) => {
        throw path === 'a' ? notFound() : new ResourceError('too-large', 'too large')
      }),
      { failures: 1 },
    )
    for (const path of ['a', 'b', 'a']) await read(provider, path).catch(() => {})
    expect(provider.degraded?.()).toBeUndefined()
  })

  test('allow a number of simultaneous calls and waiting calls, and refuse more', async () => {
    const waiting: (() => void)[] = []
    const provider = limited(
      reading(async (path) => {
        await new Promise<void>((resolve) => waiting.push(resolve))
        return path
      }),
      { concurrent: 2, waiting: 1 },
    )
    const first = [read(provider, '1'), read(provider, '2'), read(provider, '3')]
    await until(() => waiting.length === 2)
    await expect(read(provider, '4')).rejects.toMatchObject({ kind: 'unavailable', detail: { retryAfter: 1 } })
    for (let i = 0; i < 3; i++) {
      await until(() => waiting.length > 0)
      waiting.shift()?.()
    }
    expect((await Promise.all(first)).flat()).toEqual([{ text: '1' }, { text: '2' }, { text: '3' }])
    // The places are free again, whoever held them.
    const again = read(provider, '5')
    await until(() => waiting.length === 1)
    waiting.shift()?.()
    expect(await again).toEqual([{ text: '5' }])
  })

  test('free the place of a caller that left while it waited for a slot', async () => {
    let resolve = (_: string) => {}
    const provider = limited(
      reading(
        () =>
          new Promise((settle) => {
            resolve = settle
          }),
      ),
      { concurrent: 1 },
    )
    const first = read(provider)
    const controller = new AbortController()
    const second = read(provider, 'b', controller.signal)
    controller.abort(new Error('gone'))
    await expect(second).rejects.toThrow('gone')
    resolve('1')
    expect(await first).toEqual([{ text: '1' }])
    resolve = () => {}
    let text: unknown
    void read(provider).then(([content]) => {
      text = content
    })
    await until(() => {
      resolve('3')
      return text !== undefined
    })
    expect(text).toEqual({ text: '3' })
  })

  test('apply to a source whose promises have only the method "then"', async () => {
    // Only `then`, as Promises/A+ has it.
    const then = (found: (templates: []) => void) => void (isAnswering && found([]))
    let isAnswering = true
    const templates = () => ({ then }) as unknown as Promise<[]>
    const provider = limited({ ...reading(async () => 'a'), templates }, { timeoutMs: 20 })
    const context = { principal: { id: 'a', roles: [] }, signal: new AbortController().signal }
    expect(await provider.templates?.(context)).toEqual([])
    isAnswering = false
    await expect(provider.templates?.(context)).rejects.toMatchObject({ kind: 'unavailable' })
  })

  test('end a call at once that is aborted when it gets its slot, without calling the source', async () => {
    const asked: string[] = []
    let answer = () => {}
    const provider = limited(
      reading((path) => {
        asked.push(path)
        return path === 'b' ? never : new Promise((resolve) => (answer = () => resolve(path)))
      }),
      { concurrent: 1, observe: () => queueMicrotask(() => controller.abort(reason)) },
    )
    const controller = new AbortController()
    const reason = new Error('gone')
    // The abort runs after the first request has handed its slot on, and before the second one goes on with it.
    const first = read(provider, 'a')
    const second = read(provider, 'b', controller.signal)
    await expect.poll(() => asked).toEqual(['a'])
    answer()
    await first
    await expect(second).rejects.toBe(reason)
    // The slot is free again.
    const third = read(provider, 'c')
    await expect.poll(() => asked).toEqual(['a', 'c'])
    answer()
    expect(await third).toEqual([{ text: 'c' }])
    expect(asked).toEqual(['a', 'c'])
  })

  test('end a stream that stops in the middle', async () => {
    const provider = limited(
      {
        ...memory({}),
        read: async () => [
          {
            length: 2,
            stream: (async function* () {
              yield Buffer.from('a')
              await never
            })(),
          },
        ],
      },
      { timeoutMs: 40 },
    )
    const [content] = await read(provider)
    if (content === undefined || !('stream' in content)) throw new Error('no stream')
    const pieces: Uint8Array[] = []
    await expect(
      (async () => {
        for await (const piece of content.stream) pieces.push(piece)
      })(),
    ).rejects.toMatchObject({ kind: 'unavailable' })
    expect(Buffer.concat(pieces).toString()).toBe('a')
  })
})

describe('the signal of a caller', () => {
  const listenersOf = (signal: AbortSignal) => getEventListeners(signal, 'abort').length
  const streamed = (chunks: () => AsyncIterable<Uint8Array>): Provider => ({
    ...memory({}),
    read: async () => [{ stream: chunks(), length: 2 }],
  })

  test('keeps no listener of finished calls', async () => {
    const { signal } = new AbortController()
    const provider = limited(memory({ a: 'a', b: 'b' }))
    await read(provider, 'a', signal)
    await read(provider, 'none', signal).catch(() => {})
    await provider.stat?.('a', context(signal))
    await pathsOf(provider.list({}, context(signal)))
    for await (const _ of provider.list({}, context(signal))) break
    const piece = async function* () {
      yield new Uint8Array(2)
    }
    const [content] = await read(limited(streamed(piece)), 'a', signal)
    if (content !== undefined && 'stream' in content) for await (const _ of content.stream) break
    expect(listenersOf(signal)).toBe(0)
  })

  test('ends its calls, and a stream that continues after the answer', async () => {
    const gone = new AbortController()
    const asked = read(
      limited(reading((_, signal) => new Promise((_resolve, reject) => signal.addEventListener('abort', reject)))),
      'a',
      gone.signal,
    )
    let continued: Promise<unknown> | undefined
    const seen = new Promise<AbortSignal>((resolve) => {
      const provider = limited({
        ...memory({}),
        read: async (_, { signal }) => {
          resolve(signal)
          return [{ stream: (async function* () {})(), length: 1 }]
        },
      })
      continued = read(provider, 'a', gone.signal)
    })
    const own = await seen
    await continued
    gone.abort(new Error('gone'))
    await expect(asked).rejects.toThrow('gone')
    expect(own.reason).toMatchObject({ message: 'gone' })
    await expect(read(limited(memory({ a: 'a' })), 'a', gone.signal)).rejects.toThrow('gone')
  })
})
