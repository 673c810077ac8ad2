import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { someOf, volumeOf } from '../support/volume.ts'
import { useArena, wireNames } from './harness/arena.ts'
import type { Setup } from './harness/server.ts'
import { openStdio } from './harness/stdio.ts'
import { startFixture, type Target } from './harness/target.ts'
import type { Answer, Wire } from './harness/wire.ts'
import { eachWire } from './harness/wires.ts'
import { manyFiles } from './harness/world.ts'

const arena = useArena({ many: 3000, pages: { first: 100, most: 400, scan: 700 } }, undefined, {
  filesInMany: manyFiles,
})

const started: Target[] = []
afterAll(() => Promise.all(started.map((target) => target.stop())))

/** Another process, or the same one after a restart. */
async function another(setup: Partial<Setup>): Promise<Wire> {
  const target = await startFixture(arena.world, {
    transport: 'stdio',
    many: 3000,
    pages: { first: 100, most: 400, scan: 700 },
    ...setup,
  })
  started.push(target)
  return openStdio(target, arena.world)
}

const listings = {
  list: (cursor?: unknown) => ['resources/list', { cursor }] as const,
  directory: (cursor?: unknown) => ['resources/directory/read', { uri: 'mem://many', cursor }] as const,
}

const askPage = (wire: Wire, [method, params]: readonly [string, Record<string, unknown>]) =>
  arena.ask(wire, method, JSON.parse(JSON.stringify(params)) as Record<string, unknown>)

function cursorOf({ message, raw }: Answer): string {
  const cursor = message?.result?.nextCursor
  expect(typeof cursor, raw.subarray(0, 200).toString()).toBe('string')
  return cursor as string
}

const urisOf = ({ message }: Answer) =>
  ((message?.result?.resources ?? []) as readonly { readonly uri: string }[]).map(({ uri }) => uri)

async function expectRefused(answer: Answer, what: unknown): Promise<void> {
  const shown = `${JSON.stringify(what)?.slice(0, 100)}: ${answer.raw.subarray(0, 300)}`
  expect(answer.message?.error?.code, shown).toBe(-32602)
  expect(answer.raw.length, shown).toBeLessThan(1024)
}

const methods = ['resources/list', 'resources/templates/list', 'resources/directory/read'] as const
const paramsOf = (method: string) => (method === 'resources/directory/read' ? { uri: 'mem://many' } : {})

const junk: readonly unknown[] = [
  '',
  ' ',
  'junk',
  'null',
  '0',
  '-1',
  'AAAA',
  'A'.repeat(22),
  'A'.repeat(64),
  Buffer.from('{"page":1}').toString('base64url'),
  Buffer.from('[1,"mem://many","e0000100"]').toString('base64'),
  '[1,"mem://many","e0000100"]',
  '{"offset":250}',
  'é',
  '日本語',
  '🗄️',
  '\u0000',
  'a\r\nMcp-Method: x',
  '\ud800',
  '../../secret',
  'x'.repeat(16_385),
  'x'.repeat(900_000),
  'A'.repeat(1_000_000),
  0,
  1,
  -1,
  1e308,
  true,
  false,
  [],
  ['AAAA'],
  {},
  { toString: 'x' },
]

describe('cursors:', () => {
  eachWire(wireNames)(
    'a text that is not a cursor is refused, and never gets the first page, over %s (CU01, CU07)',
    async (name) => {
      const wire = arena.wire(name)
      for (const method of methods)
        for (const cursor of junk)
          await expectRefused(await arena.ask(wire, method, { ...paramsOf(method), cursor }), cursor)
    },
  )

  eachWire(wireNames)(
    'a cursor that is changed in one bit, cut, extended or written in another encoding is refused over %s (CU02)',
    async (name) => {
      const wire = arena.wire(name)
      const cursor = cursorOf(await askPage(wire, listings.list()))
      const bytes = Buffer.from(cursor, 'base64url')
      const forged = [
        ...[...bytes.keys()].map((at) => {
          const copy = Buffer.from(bytes)
          copy[at] = (copy[at] ?? 0) ^ (1 << (at % 8))
          return copy.toString('base64url')
        }),
        ...[0, 1, 8, 15, 16, 17, bytes.length - 1].map((length) => bytes.subarray(0, length).toString('base64url')),
        Buffer.concat([bytes, Buffer.alloc(1)]).toString('base64url'),
        `${cursor}=`,
        `${cursor} `,
        ` ${cursor}`,
        `${cursor}\n`,
        cursor.toUpperCase(),
        cursor.toLowerCase(),
        cursor + cursor,
        bytes.toString('base64'),
        bytes.toString('hex'),
        encodeURIComponent(`${cursor}%`),
        [...cursor].reverse().join(''),
      ].filter((text) => text !== cursor)
      for (const text of forged) await expectRefused(await askPage(wire, listings.list(text)), text)
      expect(urisOf(await askPage(wire, listings.list(cursor)))).not.toHaveLength(0)
    },
  )

  test('a cursor is refused for another principal, and for the same one with other roles (CU03)', async () => {
    const secret = 'shared by all'
    const owner = await another({ secret, principal: { id: 'alice', roles: ['reader', 'writer'] } })
    const cursor = cursorOf(await askPage(owner, listings.list()))
    const below = cursorOf(await askPage(owner, listings.directory()))
    const same = await another({ secret, principal: { id: 'alice', roles: ['writer', 'reader'] } })
    expect((await askPage(same, listings.list(cursor))).message?.result).toBeDefined()
    const others = [
      { id: 'bob', roles: ['reader', 'writer'] },
      { id: 'alice', roles: ['reader'] },
      { id: 'alice', roles: [] },
      { id: 'alice', roles: ['reader', 'writer', 'admin'] },
      { id: 'alice","reader', roles: ['writer'] },
      { id: 'alice', roles: ['reader","writer'] },
    ]
    // Each is a process of its own.
    for (const principal of someOf('CU03', others, 3)) {
      const other = await another({ secret, principal })
      await expectRefused(await askPage(other, listings.list(cursor)), principal)
      await expectRefused(await askPage(other, listings.directory(below)), principal)
      await other.close()
    }
  })

  eachWire(wireNames)('a cursor of one listing is refused by every other listing over %s (CU04)', async (name) => {
    const wire = arena.wire(name)
    const list = cursorOf(await askPage(wire, listings.list()))
    const directory = cursorOf(await askPage(wire, listings.directory()))
    const many = `${arena.world.address}/many`
    const folder = cursorOf(await arena.ask(wire, 'resources/directory/read', { uri: many }))
    const crossed: readonly (readonly [string, Record<string, unknown>])[] = [
      ['resources/templates/list', { cursor: list }],
      ['resources/templates/list', { cursor: directory }],
      ['resources/directory/read', { uri: 'mem://many', cursor: list }],
      ['resources/directory/read', { uri: 'mem://many', cursor: folder }],
      ['resources/directory/read', { uri: many, cursor: directory }],
      ['resources/directory/read', { uri: arena.world.address, cursor: folder }],
      ['resources/directory/read', { uri: `${arena.world.address}/dir`, cursor: folder }],
      ['resources/list', { cursor: directory }],
      ['resources/list', { cursor: folder }],
    ]
    for (const [method, params] of crossed) await expectRefused(await arena.ask(wire, method, params), method)
    // The same directory, spelled differently, is the same listing.
    for (const uri of [`${many}/`, `${arena.world.address}/%6dany`])
      expect((await arena.ask(wire, 'resources/directory/read', { uri, cursor: folder })).message?.result).toBeDefined()
  })

  eachWire(wireNames)(
    'a cursor that is used hundreds of times gives the same page each time, and memory grows by less than 200 MiB, over %s (CU06)',
    async (name) => {
      const wire = arena.wire(name)
      const cursor = cursorOf(await askPage(wire, listings.directory()))
      const before = wire.target.facts().resident
      const seen = new Set<string>()
      for (let round = 0; round < volumeOf(10, 2); round++) {
        const answers = await Promise.all(Array.from({ length: 100 }, () => askPage(wire, listings.directory(cursor))))
        for (const { message } of answers) seen.add(JSON.stringify(message?.result ?? message?.error))
      }
      expect(seen.size).toBe(1)
      expect(wire.target.facts().resident - before).toBeLessThan(200)
    },
  )

  test('a cursor is refused after its mount has gone, or continues after that mount (CU08)', async () => {
    const secret = 'kept over the restart'
    const before = await another({ secret })
    let cursor: string | undefined
    let last: readonly string[] = []
    // Into the middle of a mount that will be gone.
    for (let page = 0; page < 40 && !last.some((uri) => uri.startsWith('mem://many')); page++) {
      const answer = await askPage(before, listings.list(cursor))
      last = urisOf(answer)
      cursor = cursorOf(answer)
    }
    const after = await startFixture(arena.world, { transport: 'stdio', secret })
    started.push(after)
    const answer = await askPage(await openStdio(after, arena.world), listings.list(cursor))
    if (answer.message?.error !== undefined) return expectRefused(answer, cursor)
    for (const uri of urisOf(answer)) expect(uri > 'mem://many', uri).toBe(true)
  })

  eachWire(wireNames)(
    'an unchanged resource is listed once while others appear and disappear over %s (CU09)',
    async (name) => {
      const wire = arena.wire(name)
      const many = `${arena.world.address}/many`
      const seen: string[] = []
      let cursor: string | undefined
      for (let turn = 0; turn < 100; turn++) {
        const answer = await arena.ask(
          wire,
          'resources/directory/read',
          cursor === undefined ? { uri: many } : { uri: many, cursor },
        )
        seen.push(...urisOf(answer))
        for (const at of ['0', 'f05', 'z']) writeFileSync(join(arena.world.root, `many/${at}-new-${turn}`), 'new\n')
        const next = answer.message?.result?.nextCursor
        if (next === undefined) break
        cursor = next as string
        rmSync(join(arena.world.root, `many/0-new-${turn}`))
      }
      for (let turn = 0; turn < 100; turn++)
        for (const at of ['0', 'f05', 'z']) rmSync(join(arena.world.root, `many/${at}-new-${turn}`), { force: true })
      const stable = seen.filter((uri) => !uri.includes('new'))
      expect(stable).toHaveLength(1200)
      expect(new Set(seen).size).toBe(seen.length)
      expect(stable).toEqual([...stable].sort())
    },
  )

  test('a cursor gives the same page on a replica with the same secret, and is refused by one with another secret (CU11)', async () => {
    const [one, two, three] = await Promise.all([
      another({ secret: 'shared' }),
      another({ secret: 'shared' }),
      another({ secret: 'other' }),
    ])
    const cursor = cursorOf(await askPage(one, listings.list()))
    const [here, there] = await Promise.all([one, two].map((wire) => askPage(wire, listings.list(cursor))))
    expect(there?.message?.result).toEqual(here?.message?.result)
    await expectRefused(await askPage(three, listings.list(cursor)), cursor)
    await expectRefused(await askPage(arena.wire('stdio 2026-07-28'), listings.list(cursor)), cursor)
  })

  eachWire(wireNames)(
    'a listing with thousands of hidden resources shows none of them, and ends within 60 pages, over %s (CU12)',
    async (name) => {
      const wire = arena.wire(name)
      const cursors = new Set<string>()
      const found: string[] = []
      let cursor: string | undefined
      for (let page = 0; page < 60; page++) {
        const answer = await askPage(wire, listings.list(cursor))
        found.push(...urisOf(answer))
        cursor = answer.message?.result?.nextCursor as string | undefined
        if (cursor === undefined) break
        expect(cursors.has(cursor), 'no cursor comes twice').toBe(false)
        cursors.add(cursor)
      }
      expect(cursor, 'the listing ends').toBeUndefined()
      expect(found.filter((uri) => uri.startsWith('mem://none'))).toEqual([])
      expect(found.filter((uri) => uri.startsWith('mem://many'))).toHaveLength(3000)
      expect(new Set(found).size).toBe(found.length)
      // 5000 entries that may not be seen, 700 looked at for a page.
      expect(cursors.size).toBeGreaterThan(7)
    },
  )

  eachWire(wireNames)('a cursor does not disclose the name of a hidden resource over %s (CU12)', async (name) => {
    const wire = arena.wire(name)
    let cursor: string | undefined
    for (let page = 0; page < 60; page++) {
      const answer = await askPage(wire, listings.list(cursor))
      cursor = answer.message?.result?.nextCursor as string | undefined
      if (cursor === undefined) break
      const bytes = Buffer.from(cursor, 'base64url').toString('latin1')
      // A list of JSON in the clear. Two of its characters alone stand now and then in what is sealed.
      expect(cursor + bytes).not.toMatch(/mem:|file:|\["[^"]*"[,\]]/)
    }
  })
})
