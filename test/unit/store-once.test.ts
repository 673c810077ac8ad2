import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { type OnceOptions, once, openStore, type Store } from '../../src/store/index.ts'
import { eventually } from '../support/watching.ts'

// Each takes a second or less; on a machine that is busy with other things, whatever that makes of it.
vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 })

let folder: string
/** Two stores with the same rows: what two processes have. */
let one: Store
let other: Store

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'hikidashi-once-'))
  const open = () => openStore({ sqlite: { file: join(folder, 'store.sqlite') } })
  ;[one, other] = [await open(), await open()]
})
afterAll(async () => {
  await Promise.all([one?.close(), other?.close()])
  rmSync(folder, { recursive: true, force: true })
})

const bytes = (text: string) => Buffer.from(text)
const textOf = ({ value }: { readonly value: Uint8Array }) => Buffer.from(value).toString()
let made = 0
let key = ''
beforeEach(() => {
  key = `${++made}`
})

/** A computation that is finished by hand. */
function computation() {
  const runs: { readonly signal: AbortSignal; finish(text: string): void; fail(error: unknown): void }[] = []
  const compute = (signal: AbortSignal) =>
    new Promise<{ value: Uint8Array; terms: readonly string[] }>((resolve, reject) => {
      runs.push({ signal, finish: (text) => resolve({ value: bytes(text), terms: ['t'] }), fail: reject })
    })
  const ask = (store: Store, options: OnceOptions = {}) => once(store, 'c', key, compute, options)
  const begun = (n: number) => eventually(() => runs.length === n, `computation ${n} has begun`, 40_000)
  return { runs, ask, begun }
}

describe('a value that is computed once', () => {
  test('is computed once for all simultaneous callers of two open stores, and then stored', async () => {
    const { runs, ask, begun } = computation()
    const asked = Array.from({ length: 50 }, (_, i) => ask(i % 2 === 0 ? one : other, { ttlMs: 60_000 }))
    await begun(1)
    runs[0]?.finish('value')
    const outcomes = await Promise.all(asked)
    expect(new Set(outcomes.map(textOf))).toEqual(new Set(['value']))
    expect(outcomes.filter(({ computed }) => computed)).toHaveLength(25)
    expect(runs).toHaveLength(1)
    const later = await ask(other)
    expect(later).toMatchObject({ computed: false, row: { key, terms: ['t'] } })
    expect(textOf(later)).toBe('value')
    // Whoever waited was woken: nobody had to wait for a lease to be over.
    expect(runs).toHaveLength(1)
  })

  test('is computed by the next caller at once after a failure', async () => {
    const { runs, ask, begun } = computation()
    const first = [ask(one, { ttlMs: 600_000 }), ask(one)]
    await begun(1)
    const second = ask(other, { ttlMs: 600_000 })
    runs[0]?.fail(new Error('no model answers'))
    for (const asked of first) await expect(asked).rejects.toThrow('no model answers')
    await begun(2)
    runs[1]?.finish('second')
    expect(textOf(await second)).toBe('second')
    expect(textOf(await ask(one))).toBe('second')
  })

  test('is computed further for other callers when one cancels, and stopped when all do', async () => {
    const { runs, ask, begun } = computation()
    const [leaving, staying] = [new AbortController(), new AbortController()]
    const asked = [ask(one, { signal: leaving.signal }), ask(one, { signal: staying.signal })]
    await begun(1)
    leaving.abort(new Error('leaving'))
    await expect(asked[0]).rejects.toThrow('leaving')
    expect(runs[0]?.signal.aborted).toBe(false)
    staying.abort(new Error('staying no more'))
    await expect(asked[1]).rejects.toThrow('staying no more')
    expect(runs[0]?.signal.aborted).toBe(true)
    // Whoever comes next begins anew, once the first has ended.
    const next = ask(one)
    runs[0]?.fail(new Error('aborted'))
    await begun(2)
    runs[1]?.finish('next')
    expect(textOf(await next)).toBe('next')
    await expect(ask(one, { signal: AbortSignal.abort(new Error('never')) })).rejects.toThrow('never')
  })

  test('is waited for up to a time-out', async () => {
    const { runs, ask, begun } = computation()
    const first = ask(one)
    await begun(1)
    await expect(ask(other, { waitMs: 300 })).rejects.toMatchObject({ kind: 'unavailable', detail: { fault: 'busy' } })
    runs[0]?.finish('late')
    expect(textOf(await first)).toBe('late')
  })

  test('is not waited for by a caller that cancels', async () => {
    const { runs, ask, begun } = computation()
    const first = ask(one)
    await begun(1)
    const leaving = new AbortController()
    const second = ask(other, { signal: leaving.signal })
    await new Promise((resolve) => setTimeout(resolve, 100))
    leaving.abort(new Error('leaving'))
    await expect(second).rejects.toThrow('leaving')
    runs[0]?.finish('value')
    await first
    expect(runs).toHaveLength(1)
  })

  test('is the one that was stored first, if another is stored while it is computed', async () => {
    const { runs, ask, begun } = computation()
    const first = ask(one)
    await begun(1)
    await other.collection('c').put({ key, value: bytes('there first') })
    runs[0]?.finish('late')
    expect(textOf(await first)).toBe('there first')
  })

  test('is refused if the store cannot hold it, and may then be computed again', async () => {
    const compute = async () => ({ value: bytes(''), terms: [''] })
    await expect(once(one, 'c', key, compute)).rejects.toMatchObject({ kind: 'invalid' })
    await expect(once(one, '', key, compute)).rejects.toMatchObject({ kind: 'invalid' })
    await expect(once(one, 'c', '', compute)).rejects.toMatchObject({ kind: 'invalid' })
    // And others may try.
    expect(textOf(await once(other, 'c', key, async () => ({ value: bytes('good') }), { ttlMs: 600_000 }))).toBe('good')
  })

  test('is computed with a closed store as well, once in this process', async () => {
    const store = await openStore({ sqlite: { file: join(folder, 'closed.sqlite') } })
    await store.close()
    const { runs, ask, begun } = computation()
    const asked = Array.from({ length: 10 }, () => ask(store))
    await begun(1)
    runs[0]?.finish('value')
    for (const outcome of await Promise.all(asked)) expect(outcome).toMatchObject({ computed: true, row: undefined })
    expect(runs).toHaveLength(1)
  })
})
