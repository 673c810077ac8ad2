import { expect, test } from 'vitest'
import { notFound, ResourceError } from '../../src/core/errors.ts'
import type { Context, Provider } from '../../src/core/provider.ts'
import { deferred } from '../../src/wrap/deferred.ts'
import { pathsOf } from '../support/folder.ts'
import { memory } from '../support/memory.ts'

const context = (signal = new AbortController().signal): Context => ({ principal: { id: 'a', roles: [] }, signal })
const none = { watch: false, prompts: false, sees: false }
const read = (provider: Provider, path = 'a', signal?: AbortSignal) =>
  provider.read({ path, params: new Map() }, context(signal))
const down = () => new ResourceError('unavailable', 'connection refused')

/** A provider that counts how often it is opened, and fails as often as it is told to. */
function counted({ failures = 0, inner = memory({ a: 'A', b: 'B' }) }: { failures?: number; inner?: Provider } = {}) {
  const state = { opened: 0, closed: 0, left: failures }
  const open = async (): Promise<Provider> => {
    state.opened++
    if (state.left-- > 0) throw down()
    return { ...inner, close: async () => void state.closed++ }
  }
  return { state, open }
}

test('a deferred mount is opened at its first use, once for all callers', async () => {
  const { state, open } = counted()
  const provider = deferred(open, { abilities: none })
  expect(state.opened).toBe(0)
  const [contents, paths] = await Promise.all([read(provider), pathsOf(provider.list({}, context()))])
  expect(contents).toEqual([expect.objectContaining({ text: 'A' })])
  expect(paths).toEqual(['a', 'b'])
  expect(state.opened).toBe(1)
})

test('a deferred mount without use is never opened, not even to be closed', async () => {
  const { state, open } = counted()
  await deferred(open, { abilities: none }).close?.()
  expect(state).toMatchObject({ opened: 0, closed: 0 })
})

test('closing a deferred mount waits for its opening, and closes it', async () => {
  const { state, open } = counted()
  const provider = deferred(open, { abilities: none })
  const reading = read(provider)
  await provider.close?.()
  await reading
  expect(state).toMatchObject({ opened: 1, closed: 1 })
})

test('a deferred mount that fails is unavailable, is tried again after a pause that doubles, and logs its fault once', async () => {
  const clock = { now: 0 }
  const { state, open } = counted({ failures: 2 })
  const logged: string[] = []
  const log = (level: string, message: string) => void logged.push(`${level} ${message}`)
  const provider = deferred(open, { abilities: none, log, now: () => clock.now })
  await expect(read(provider)).rejects.toMatchObject({ kind: 'unavailable' })
  expect(provider.degraded?.()).toBe('unavailable')
  await expect(read(provider)).rejects.toMatchObject({ kind: 'unavailable', detail: { retryAfter: 1 } })
  expect(state.opened).toBe(1)
  clock.now = 1000
  await expect(read(provider)).rejects.toMatchObject({ kind: 'unavailable' })
  await expect(read(provider)).rejects.toMatchObject({ detail: { retryAfter: 2 } })
  clock.now = 3000
  expect(await read(provider)).toEqual([expect.objectContaining({ text: 'A' })])
  expect(state.opened).toBe(3)
  expect(provider.degraded?.()).toBeUndefined()
  // The same fault is told once, and its end.
  expect(logged).toEqual(['warn the mount cannot be opened; it is tried again', 'info the mount is open now'])
})

test('the reason why a deferred mount failed does not reach the caller', async () => {
  const provider = deferred(async () => Promise.reject(new ResourceError('invalid', '/secret/path is missing')), {
    abilities: none,
  })
  const error = await read(provider).catch((thrown: unknown) => thrown)
  expect(error).toMatchObject({ kind: 'unavailable', message: 'The source cannot be opened.' })
})

test('an abort ends the wait of a caller for a deferred mount, which still opens for others', async () => {
  let finish = (_: Provider) => {}
  const provider = deferred(() => new Promise<Provider>((resolve) => (finish = resolve)), { abilities: none })
  const leaving = new AbortController()
  const left = read(provider, 'a', leaving.signal)
  const stays = read(provider)
  leaving.abort(new Error('gone'))
  await expect(left).rejects.toThrow('gone')
  finish(memory({ a: 'A' }))
  expect(await stays).toEqual([expect.objectContaining({ text: 'A' })])
})

test('a deferred mount has stat, completion and templates whether its source has them or not', async () => {
  const { list, read: reads } = memory({ a: 'A', 'b/c': 'C' })
  const provider = deferred(async () => ({ list, read: reads }), { abilities: none })
  expect(await provider.stat?.('b/c', context())).toMatchObject({ path: 'b/c' })
  await expect(provider.stat?.('b', context())).rejects.toEqual(notFound('the source lists nothing at this path'))
  expect(await provider.templates?.(context())).toEqual([])
  const request = { template: '{x}', argument: { name: 'x', value: '' }, arguments: new Map() }
  expect(await provider.complete?.(request, context())).toBeUndefined()
})

test('a deferred mount has the methods watch, prompts and sees only if they are declared', () => {
  const { open } = counted()
  expect(deferred(open, { abilities: none })).not.toHaveProperty('watch')
  expect(deferred(open, { abilities: none })).not.toHaveProperty('prompts')
  expect(deferred(open, { abilities: none })).not.toHaveProperty('sees')
  const whole = deferred(open, { abilities: { watch: true, prompts: true, sees: true } })
  expect(whole).toMatchObject({ watch: expect.anything(), prompts: expect.anything(), sees: expect.anything() })
})

test('a deferred mount whose source reports no changes is watched until the watch ends', async () => {
  const { list, read: reads } = memory({ a: 'A' })
  const provider = deferred(async () => ({ list, read: reads }), { abilities: { ...none, watch: true } })
  const watching = new AbortController()
  const changes = await provider.watch?.(watching.signal)
  const next = changes?.[Symbol.asyncIterator]().next()
  watching.abort()
  expect(await next).toEqual({ done: true, value: undefined })
})

test('a deferred mount that is opened explicitly keeps to the pause after a failure, and is not opened once it is closed', async () => {
  const clock = { now: 0 }
  const { state, open } = counted({ failures: 1 })
  const provider = deferred(open, { abilities: none, now: () => clock.now })
  await expect(provider.open()).rejects.toMatchObject({ kind: 'unavailable' })
  await expect(provider.open()).rejects.toMatchObject({ detail: { retryAfter: 1 } })
  expect(state.opened).toBe(1)
  await provider.close?.()
  clock.now = 5000
  await expect(provider.open()).rejects.toMatchObject({ kind: 'unavailable' })
  expect(state.opened).toBe(1)
})
