import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { ResourceError } from '../../src/core/errors.ts'
import type { Change } from '../../src/core/provider.ts'
import type { SharedChanges } from '../../src/core/shared.ts'
import { type ChangeLogOptions, createChangeLog, openStore, type Store } from '../../src/store/index.ts'

/** The log by which replicas tell each other of changes, in two stores over one file as two processes have them. */

const eventually = (check: () => void) => vi.waitFor(check, { timeout: 20_000, interval: 20 })

let folder: string
const ends: (() => Promise<void>)[] = []

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'hikidashi-log-'))
})
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end()
  rmSync(folder, { recursive: true, force: true })
})

interface Replica {
  readonly log: SharedChanges
  readonly store: Store
  /** Whether the store does not answer, and says nothing of what is written. */
  down: boolean
}

const gone = () => Promise.reject(new ResourceError('unavailable', 'The store does not answer.'))

async function replica(options: Partial<ChangeLogOptions> = {}): Promise<Replica> {
  const store = await openStore({ sqlite: { file: join(folder, 'store.sqlite') } })
  const one: { log?: SharedChanges; store: Store; down: boolean } = { store, down: false }
  const faulty: Store = {
    ...store,
    collection: (name) => {
      const rows = store.collection(name)
      return {
        ...rows,
        put: (row, condition) => (one.down ? gone() : rows.put(row, condition)),
        list: (query) => (one.down ? gone() : rows.list(query)),
      }
    },
    lease: (name, ttlMs) => (one.down ? gone() : store.lease(name, ttlMs)),
    watch: async (name, signal) => {
      const news = await store.watch(name, signal)
      return (async function* () {
        for await (const keys of news) if (!one.down) yield keys
      })()
    },
  }
  const log = createChangeLog({ store: faulty, ...options })
  ends.push(async () => {
    one.down = false
    await log.close()
    await store.close()
  })
  return Object.assign(one, { log })
}

async function heard(log: SharedChanges, source: string): Promise<Change[]> {
  const changes: Change[] = []
  await log.follow(source, (some) => void changes.push(...some))
  return changes
}

describe('the log of changes', () => {
  test('passes the changes of one replica to the others, in order, by source', async () => {
    const [one, other] = [await replica(), await replica()]
    const own = await heard(one.log, 'docs:///')
    const docs = await heard(other.log, 'docs:///')
    const code = await heard(other.log, 'code:///')
    const change = { path: 'b.md', listed: true, aliases: ['c.md'] }
    expect(await one.log.publish('docs:///', [{ path: 'a.md' }, change])).toBe(true)
    expect(await one.log.publish('code:///', [{ of: 'tools', path: 'x' }])).toBe(true)
    expect(await one.log.publish('docs:///', [{}])).toBe(true)
    await eventually(() => expect(docs).toEqual([{ path: 'a.md' }, change, {}]))
    await eventually(() => expect(code).toEqual([{ of: 'tools', path: 'x' }]))
    expect(own).toEqual([])
  })

  test('gives a follower no earlier changes, and nothing after it has left', async () => {
    const [one, other] = [await replica(), await replica()]
    await one.log.publish('docs:///', [{ path: 'early' }])
    const changes: Change[] = []
    const stop = await other.log.follow('docs:///', (some) => void changes.push(...some))
    await one.log.publish('docs:///', [{ path: 'now' }])
    await other.log.catchUp()
    expect(changes).toEqual([{ path: 'now' }])
    stop()
    await one.log.publish('docs:///', [{ path: 'late' }])
    await other.log.catchUp()
    expect(changes).toEqual([{ path: 'now' }])
  })

  test('gives all changes that were written before a read, however many', async () => {
    const [one, other] = [await replica(), await replica()]
    const changes = await heard(other.log, 'docs:///')
    const paths = Array.from({ length: 30 }, (_, at) => `${at}`)
    for (const path of paths) await one.log.publish('docs:///', [{ path }])
    await other.log.catchUp()
    expect(changes.map(({ path }) => path)).toEqual(paths)
  })

  test('merges very many simultaneous changes into one change of everything', async () => {
    const [one, other] = [await replica(), await replica()]
    const changes = await heard(other.log, 'docs:///')
    await one.log.publish(
      'docs:///',
      Array.from({ length: 10_001 }, (_, at) => ({ path: `${at}` })),
    )
    await other.log.catchUp()
    expect(changes).toEqual([{}])
  })

  test('gives a reader that was without the store for a while all changes meanwhile', async () => {
    const [one, other] = [await replica(), await replica({ readIntervalMs: 50 })]
    const changes = await heard(other.log, 'docs:///')
    other.down = true
    await expect(other.log.catchUp()).rejects.toThrow(/does not answer/)
    expect(other.log.behind).toBe(true)
    await one.log.publish('docs:///', [{ path: 'meanwhile' }])
    other.down = false
    await eventually(() => expect(changes).toEqual([{ path: 'meanwhile' }]))
    expect(other.log.behind).toBe(false)
  })

  test('delivers a change late if its notification is lost', async () => {
    const [one, other] = [await replica(), await replica({ readIntervalMs: 300 })]
    const changes = await heard(other.log, 'docs:///')
    other.down = true
    await one.log.publish('docs:///', [{ path: 'unheard' }])
    other.down = false
    await eventually(() => expect(changes).toEqual([{ path: 'unheard' }]))
  })

  test('reports that everything may have changed to a reader that was away for longer than rows are kept', async () => {
    const other = await replica({ keepMs: 200, readIntervalMs: 50 })
    const changes = await heard(other.log, 'docs:///')
    other.down = true
    const since = performance.now()
    await eventually(() => expect(performance.now() - since).toBeGreaterThan(150))
    other.down = false
    await eventually(() => expect(changes).toContainEqual({}))
  })

  test('treats missing rows, as after a failover to an older copy, as a change of everything', async () => {
    const [one, other] = [await replica(), await replica()]
    const changes = await heard(other.log, 'docs:///')
    await one.log.publish('docs:///', [{ path: 'a' }])
    await other.log.catchUp()
    expect(changes).toEqual([{ path: 'a' }])
    const rows = one.store.collection('changes')
    for (const { key } of await rows.list({ limit: 100 })) await rows.delete(key)
    await one.log.publish('docs:///', [{ path: 'b' }])
    await other.log.catchUp()
    expect(changes).toEqual([{ path: 'a' }, {}])
  })

  test('reports a change of everything to a reader that started while the store did not answer', async () => {
    const other = await replica()
    other.down = true
    const changes = await heard(other.log, 'docs:///')
    expect(changes).toEqual([])
    other.down = false
    await eventually(() => expect(changes).toEqual([{}]))
  })

  test('keeps a change that cannot be written until the store accepts it', { timeout: 30_000 }, async () => {
    const [one, other] = [await replica(), await replica()]
    const changes = await heard(other.log, 'docs:///')
    one.down = true
    expect(await one.log.publish('docs:///', [{ path: 'a' }])).toBe(false)
    one.down = false
    await eventually(() => expect(changes).toEqual([{ path: 'a' }]))
  })

  test('reads the valid changes of a row, and takes each invalid change as a change of everything', async () => {
    const other = await replica()
    const changes = await heard(other.log, 'docs:///')
    const rows = other.store.collection('changes')
    const put = (value: string) => rows.put({ key: `${randomUUID()}/1`, value: Buffer.from(value) })
    await put('no JSON')
    await put('[1]')
    await put('{"docs:///": 1}')
    await put('{"docs:///": [{"path": "a", "colour": "red"}, {"path": 1}, {"of": "colours"}, 7]}')
    await other.log.catchUp()
    expect(changes).toEqual([{ path: 'a' }, {}, {}, {}])
  })

  test('gives a lease to one process at a time', async () => {
    const [one, other] = [await replica(), await replica()]
    const lease = await one.log.lease('docs:///')
    expect(lease).toBeDefined()
    expect(await other.log.lease('docs:///')).toBeUndefined()
    await lease?.release()
    expect(await other.log.lease('docs:///')).toBeDefined()
    other.down = true
    await expect(other.log.lease('code:///')).rejects.toThrow(/does not answer/)
  })
})
