import { randomUUID } from 'node:crypto'
import { afterEach, describe, expect, test } from 'vitest'
import { compileAccess } from '../../src/core/access.ts'
import { type Catalog, createCatalog } from '../../src/core/catalog.ts'
import type { Principal } from '../../src/core/provider.ts'
import type { ChangeReader } from '../../src/core/view.ts'
import { live, pause } from '../support/live.ts'
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
  test.each(seeds())('none is lost between polls, and gaps are reported (HIKIDASHI_SEED=%i)', async (seed) => {
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
    expect(clients.some(({ facts }) => facts.some((fact) => fact.kind === 'poll' && fact.paths.length > 1))).toBe(true)
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
    ['an event of something else', [write, poll(['a', 'b'])]],
    ['a gap that is told before the write', [poll([], true), write, poll([])]],
  ])('finds %s', (_, facts) => {
    expect(validateEvents(facts)).toHaveLength(1)
  })
})
