import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, describe, expect, test } from 'vitest'
import { compileAccess } from '../../src/core/access.ts'
import { type Catalog, createCatalog } from '../../src/core/catalog.ts'
import { createMemoryTexts } from '../../src/core/earlier.ts'
import type { Principal, Provider } from '../../src/core/provider.ts'
import type { ChangeReader } from '../../src/core/view.ts'
import { type Live, live, pause, until } from '../support/live.ts'
import { volumeOf } from '../support/volume.ts'
import { seeds } from './seeds.ts'
import { type EventFact, validateEvents } from './validate-events.ts'

const principals: readonly Principal[] = [
  { id: 'chief', roles: ['chief'] },
  { id: 'guest', roles: [] },
]
const access = compileAccess([{ allow: ['chief'] }, { allow: ['*'], match: ['open/**'] }])
const paths = Array.from({ length: 40 }, (_, i) => `${i % 2 === 0 ? 'open' : 'shut'}/${i}`)
const secret = Buffer.alloc(32, 1)

/** A random number generator that gives the same numbers for the same seed (mulberry32). */
function randomOf(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return Math.floor((((t ^ (t >>> 14)) >>> 0) / 2 ** 32) * below)
  }
}

const opened: Catalog[] = []
afterEach(async () => {
  await Promise.all(opened.splice(0).map((catalog) => catalog.close()))
})

interface Client {
  readonly principal: Principal
  readonly facts: EventFact[]
  reader: ChangeReader
  position: string
}

describe('events under random writes', () => {
  test.each(seeds())(
    'reach each client that polls, or are covered by a reported gap (HIKIDASHI_SEED=%i)',
    async (seed) => {
      const random = randomOf(seed)
      const source = live(Object.fromEntries(paths.map((path) => [path, ''])))
      const open = (): Catalog => {
        const catalog = createCatalog({ mounts: [{ address: 'x://m', provider: source, access }], secret })
        opened.push(catalog)
        return catalog
      }
      let catalog = open()
      const readerOf = async (principal: Principal) => {
        const reader = await catalog.view(principal).history?.open({})
        if (reader === undefined) throw new Error('the catalog reports no changes')
        return reader
      }
      const clients: Client[] = []
      for (const principal of [...principals, ...principals]) {
        const reader = await readerOf(principal)
        clients.push({ principal, facts: [], reader, position: await reader.now() })
      }
      const poll = async (client: Client): Promise<boolean> => {
        const { changes, position, gap, more } = await client.reader.since(client.position, { limit: 1 + random(7) })
        client.position = position
        client.facts.push({ kind: 'poll', paths: changes.map(({ uri }) => uri.slice('x://m/'.length)), truncated: gap })
        return more
      }
      const write = (path: string) => {
        for (const { principal, facts } of clients) if (access(principal, path)) facts.push({ kind: 'write', path })
        source.set(path, random(5) === 0 ? undefined : { text: randomUUID() })
      }
      const actions = [
        ...Array.from({ length: 12 }, () => async () => write(paths[random(paths.length)] ?? '')),
        ...Array.from({ length: 8 }, () => async () => void (await poll(clients[random(clients.length)] as Client))),
        ...Array.from({ length: 4 }, () => () => pause(random(150))),
        async () => paths.slice(0, random(paths.length)).forEach(write),
        async () => {
          // The source loses its watch; it is restarted after half a second.
          if (random(30) === 0) source.drop()
        },
        async () => {
          if (random(20) > 0) return
          await catalog.close()
          catalog = open()
          for (const client of clients) client.reader = await readerOf(client.principal)
        },
      ]
      for (let step = 0; step < volumeOf(4000); step++) await actions[random(actions.length)]?.()
      /** Polls until nothing is missing, or for five seconds: a lost watch begins again after half a second. */
      const settle = async (client: Client) => {
        const { facts } = client
        for (const end = Date.now() + 5000; Date.now() < end && validateEvents(facts).length > 0; ) {
          while (await poll(client));
          await pause(20)
        }
        expect(validateEvents(facts)).toEqual([])
      }
      for (const client of clients) await settle(client)
      expect(clients.some(({ facts }) => facts.some((fact) => fact.kind === 'poll' && fact.paths.length > 1))).toBe(
        true,
      )
    },
  )
})

/** A source whose listing shows each change, like a folder. */
function listed() {
  const source = live(Object.fromEntries(paths.map((path) => [path, { text: '', version: '0' }])))
  return {
    ...source,
    entries: source.entries,
    list: async function* () {
      for (const [path, { text: _, bytes: __, ...facts }] of [...source.entries].sort()) yield { path, ...facts }
    },
    catchUp: async () => {
      // The watch yields what it was told within this turn.
      await new Promise((resolve) => setImmediate(resolve))
      return true
    },
    listsChanges: () => true,
  } satisfies Provider & Pick<Live, 'entries'>
}

/** A store of the log. A killed process does not write any more. */
function storeOfLog() {
  const rows = new Map<string, string>()
  const open = () => {
    let isKilled = false
    const lasting = {
      get: async (key: string) => rows.get(key),
      put: async (key: string, text: string) => void (isKilled || rows.set(key, text)),
    }
    const kill = () => {
      isKilled = true
    }
    return { kill, earlier: async () => ({ ...createMemoryTexts(), lasting }) }
  }
  return { rows, open }
}

describe('a stored log of events', () => {
  const runs = seeds().flatMap((seed) => [
    { seed, of: 'restarts', kills: false },
    { seed, of: 'restarts and kills', kills: true },
  ])
  test.each(runs)(
    'reports each write after $of, as an event or, only after a kill, as a gap (HIKIDASHI_SEED=$seed)',
    async ({ seed, kills }) => {
      const random = randomOf(seed)
      const source = listed()
      const { rows, open } = storeOfLog()
      const start = () => {
        const { kill, earlier } = open()
        const catalog = createCatalog({ mounts: [{ address: 'x://m', provider: source, access }], earlier })
        opened.push(catalog)
        return { kill, catalog }
      }
      let running = start()
      const readerOf = async (principal: Principal) => {
        const reader = await running.catalog.view(principal).history?.open({})
        if (reader === undefined) throw new Error('the catalog reports no changes')
        return reader
      }
      const clients: Client[] = []
      for (const principal of [...principals, ...principals]) {
        const reader = await readerOf(principal)
        clients.push({ principal, facts: [], reader, position: await reader.now() })
      }
      const poll = async (client: Client): Promise<boolean> => {
        const { changes, position, gap, more } = await client.reader.since(client.position, { limit: 1 + random(7) })
        client.position = position
        client.facts.push({ kind: 'poll', paths: changes.map(({ uri }) => uri.slice('x://m/'.length)), truncated: gap })
        return more
      }
      let version = 0
      const write = (path: string) => {
        for (const { principal, facts } of clients) if (access(principal, path)) facts.push({ kind: 'write', path })
        source.set(path, { text: randomUUID(), version: String(++version) })
      }
      const restart = async () => {
        // A run that was not kept once cannot be continued.
        await until(() => rows.size > 0)
        if (kills && random(2) === 0) running.kill()
        await running.catalog.close()
        for (let i = random(5); i > 0; i--) write(paths[random(paths.length)] ?? '')
        running = start()
        for (const client of clients) client.reader = await readerOf(client.principal)
      }
      const actions = [
        ...Array.from({ length: 12 }, () => async () => write(paths[random(paths.length)] ?? '')),
        ...Array.from({ length: 8 }, () => async () => void (await poll(clients[random(clients.length)] as Client))),
        ...Array.from({ length: 2 }, () => () => pause(random(50))),
        async () => void (random(8) === 0 && (await restart())),
      ]
      for (let step = 0; step < volumeOf(4000); step++) await actions[random(actions.length)]?.()
      await restart()
      for (const client of clients) {
        for (const end = Date.now() + 5000; Date.now() < end && validateEvents(client.facts).length > 0; ) {
          while (await poll(client));
          await pause(20)
        }
        expect(validateEvents(client.facts)).toEqual([])
        const hasGap = client.facts.some((fact) => fact.kind === 'poll' && fact.truncated)
        // Only a kill can lose what was told after the log was kept.
        expect(hasGap && !kills).toBe(false)
      }
    },
  )

  test.each([
    ['damaged', (rows: Map<string, string>, key: string) => rows.set(key, '{"id":')],
    ['gone', (rows: Map<string, string>, key: string) => rows.delete(key)],
  ])('that is %s reports a gap to earlier positions, and later changes', async (_, harm) => {
    const source = listed()
    const { rows, open } = storeOfLog()
    const begin = async () => {
      const catalog = createCatalog({ mounts: [{ address: 'x://m', provider: source }], earlier: open().earlier })
      opened.push(catalog)
      const reader = await catalog.view({ id: 'u', roles: [] }).history?.open({})
      if (reader === undefined) throw new Error('the catalog reports no changes')
      return { catalog, reader }
    }
    const first = await begin()
    const position = await first.reader.now()
    await until(() => rows.size > 0)
    await first.catalog.close()
    for (const key of [...rows.keys()]) harm(rows, key)
    const { reader } = await begin()
    const after = await reader.since(position, { limit: 100 })
    expect(after).toMatchObject({ changes: [], gap: true })
    source.set('open/0', { text: '', version: 'new' })
    await expect.poll(async () => (await reader.since(after.position, { limit: 100 })).changes.length).toBe(1)
  })

  test('has no gap and loses no later change after a restart if a source could not be listed at shutdown', async () => {
    const source = listed()
    let isSlow = false
    const slow: typeof source = {
      ...source,
      list: async function* (_query?: unknown, { signal }: { readonly signal?: AbortSignal } = {}) {
        if (isSlow && signal !== undefined) await sleep(60_000, undefined, { signal })
        yield* source.list()
      },
    }
    const { rows, open } = storeOfLog()
    const begin = async () => {
      const catalog = createCatalog({ mounts: [{ address: 'x://m', provider: slow }], earlier: open().earlier })
      opened.push(catalog)
      const reader = await catalog.view({ id: 'u', roles: [] }).history?.open({})
      if (reader === undefined) throw new Error('the catalog reports no changes')
      return { catalog, reader }
    }
    const first = await begin()
    let { position } = await first.reader.since(await first.reader.now(), { limit: 100 })
    await until(() => rows.size > 0)
    source.set('open/0', { text: '', version: 'new' })
    await expect
      .poll(async () => {
        const page = await first.reader.since(position, { limit: 100 })
        position = page.position
        return page.changes.length
      })
      .toBe(1)
    isSlow = true
    await first.catalog.close()
    isSlow = false
    source.set('open/2', { text: '', version: 'newer' })
    const { reader } = await begin()
    const { gap, changes } = await reader.since(position, { limit: 100 })
    expect([gap, changes.map(({ uri }) => uri)]).toEqual([false, expect.arrayContaining(['x://m/open/2'])])
  })

  test('is not stored if one of its paths contains a known secret', async () => {
    const { rows, open } = storeOfLog()
    const source = listed()
    source.set('open/hunter2-hunter2', { text: '', version: '1' })
    const clean = (text: string) => text.replaceAll('hunter2-hunter2', '[removed]')
    const earlier = async () => ({ ...(await open().earlier()), clean })
    const catalog = createCatalog({ mounts: [{ address: 'x://m', provider: source }], earlier })
    await (await catalog.view({ id: 'u', roles: [] }).history?.open({}))?.now()
    await catalog.close()
    expect([...rows]).toEqual([])
  })

  test('keeps the ids of its events after a restart, and reports a gap for a source whose listing does not show changes', async () => {
    const source = listed()
    const other = live({ a: '' })
    const { open } = storeOfLog()
    const begin = async () => {
      const { earlier } = open()
      const mounts = [
        { address: 'x://m', provider: source },
        { address: 'y://m', provider: other },
      ]
      const catalog = createCatalog({ mounts, earlier })
      opened.push(catalog)
      const readerOf = async (uri: string) => {
        const reader = await catalog.view({ id: 'u', roles: [] }).history?.open({ uri })
        if (reader === undefined) throw new Error('the catalog reports no changes')
        return reader
      }
      return { catalog, listed: await readerOf('x://m'), other: await readerOf('y://m') }
    }
    const page = { limit: 100 }
    const first = await begin()
    const [position, otherPosition] = [await first.listed.now(), await first.other.now()]
    source.set('open/0', { text: '', version: 'new' })
    let read = await first.listed.since(position, page)
    while (read.changes.length === 0) {
      await pause(10)
      read = await first.listed.since(position, page)
    }
    await first.catalog.close()
    source.set('open/2', undefined)
    const second = await begin()
    const again = await second.listed.since(position, page)
    expect([again.gap, again.changes.map(({ uri }) => uri)]).toEqual([false, ['x://m/open/0', 'x://m/open/2']])
    expect(again.changes[0]?.id).toBe(read.changes[0]?.id)
    expect((await second.other.since(otherPosition, page)).gap).toBe(true)
  })
})

describe('the check of events', () => {
  const write: EventFact = { kind: 'write', path: 'a' }
  const poll = (list: readonly string[], truncated = false): EventFact => ({ kind: 'poll', paths: list, truncated })
  test('passes a history in which each write has an event, or a gap', () => {
    expect(validateEvents([write, poll(['a']), write, poll([], true)])).toEqual([])
  })
  test.each([
    ['a write without an event', [write, poll(['a']), write, poll([])]],
    ['an event for a path that was not written', [write, poll(['a', 'b'])]],
    ['a write without an event after an earlier gap', [poll([], true), write, poll([])]],
  ])('finds %s', (_, facts) => {
    expect(validateEvents(facts)).toHaveLength(1)
  })
})
