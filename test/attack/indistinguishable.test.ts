import { describe, expect, test } from 'vitest'
import { compileAccess } from '../../src/core/access.ts'
import { createCatalog } from '../../src/core/catalog.ts'
import { ResourceError } from '../../src/core/errors.ts'
import type { Provider } from '../../src/core/provider.ts'
import { memory } from '../support/memory.ts'
import { useArena, wireNames } from './harness/arena.ts'
import type { Answer, Params, Wire } from './harness/wire.ts'
import { eachWire } from './harness/wires.ts'

const arena = useArena({ many: 10 })

/** What an answer is without what it repeats of the question: bytes, status and headers. */
function shapeOf({ raw, status, headers = [] }: Answer, uri: string): string {
  const body = raw
    .toString()
    .replaceAll(JSON.stringify(uri), '"URI"')
    .replace(/"id":"[^"]*"/, '"id":"ID"')
  const lines = headers
    .filter(([name]) => name !== 'date' && name !== 'content-length')
    .map(([name, value]) => `${name}: ${value}`)
  return [status, ...lines, body].join('\n')
}

async function shapesOf(
  wire: Wire,
  uris: readonly string[],
  method: string,
  more: Params = {},
): Promise<ReadonlyMap<string, string[]>> {
  const shapes = new Map<string, string[]>()
  for (const uri of uris) {
    const shape = shapeOf(await arena.ask(wire, method, { uri, ...more }), uri)
    shapes.set(shape, [...(shapes.get(shape) ?? []), uri])
  }
  return shapes
}

const forbidden = () => [
  // Absent.
  `${arena.world.address}/none`,
  `${arena.world.address}/dir/none`,
  `${arena.world.address}/none/none`,
  // Excluded, and there.
  `${arena.world.address}/.env`,
  `${arena.world.address}/id_rsa`,
  `${arena.world.address}/.git/config`,
  `${arena.world.address}/.git`,
  `${arena.world.address}/node_modules/m/index.js`,
  // Excluded, and not there.
  `${arena.world.address}/dir/id_rsa`,
  `${arena.world.address}/dir/.git/config`,
  // Links and pipes.
  `${arena.world.address}/link-absolute`,
  `${arena.world.address}/link-directory/secret`,
  `${arena.world.address}/link-loop`,
  `${arena.world.address}/fifo0`,
  // Outside, there or not.
  `${arena.world.address.replace(/\/root$/, '')}/secret`,
  `${arena.world.address.replace(/\/root$/, '')}/none`,
  'file:///etc/passwd',
  'file:///none',
  // Denied, there or not, and absent.
  'rule://guarded/denied.txt',
  'rule://guarded/denied/in.txt',
  'rule://guarded/denied/none.txt',
  'rule://guarded/none.key',
  'rule://guarded/server.key',
  'rule://guarded/none',
  // A mount of which nothing may be seen, and none at all.
  'mem://none/n1',
  'mem://none/none',
  'mem://none/',
  'mem://none',
  'mem://nowhere/n1',
  'none://none/none',
]

describe('a hidden resource and an absent one', () => {
  eachWire(wireNames)('get the same answer when they are requested as skills, over %s (O6)', async (name) => {
    const uris = forbidden().flatMap((uri) => [uri, `${uri}/SKILL.md`])
    const shapes = await shapesOf(arena.wire(name), uris, 'skills/get')
    expect([...shapes.values()]).toHaveLength(1)
    expect([...shapes.keys()][0]).toContain('No skill is served at this URI')
  })

  eachWire(wireNames)('get the same answer when they are read, over %s (O6)', async (name) => {
    const shapes = await shapesOf(arena.wire(name), forbidden(), 'resources/read')
    expect([...shapes.values()].map((uris) => uris[0])).toHaveLength(1)
  })

  eachWire(wireNames)('get the same answer when they are listed as directories, over %s (O6)', async (name) => {
    const uris = forbidden().flatMap((uri) => (uri.endsWith('/') ? [uri] : [uri, `${uri}/`]))
    const shapes = await shapesOf(arena.wire(name), uris, 'resources/directory/read')
    expect([...shapes.values()].map((group) => group[0])).toHaveLength(1)
  })

  eachWire(wireNames)('get the same answer when they are read with a final slash, over %s (O6)', async (name) => {
    const uris = forbidden().map((uri) => (uri.endsWith('/') ? uri : `${uri}/`))
    const shapes = await shapesOf(arena.wire(name), uris, 'resources/read')
    expect([...shapes.values()].map((group) => group[0])).toHaveLength(1)
  })

  eachWire(wireNames)('get the same answer to a query, a range or a cursor over %s (O6)', async (name) => {
    const wire = arena.wire(name)
    const pairs: readonly (readonly [string, string])[] = [
      ['rule://guarded/denied.txt', 'rule://guarded/denied/none.txt'],
      ['rule://guarded/server.key', 'rule://guarded/none.key'],
      [`${arena.world.address}/.env`, `${arena.world.address}/none`],
      [`${arena.world.address}/.env`, `${arena.world.address}/dir/.env.none`],
      [`${arena.world.address}/link-absolute`, `${arena.world.address}/none`],
      [`${arena.world.address}/fifo0`, `${arena.world.address}/none`],
      ['mem://none/n1', 'mem://none/x1'],
      ['mem://none/n1', 'mem://nowhere/x1'],
    ]
    for (const pair of pairs)
      for (const query of [
        '?lines=1-2',
        '?bytes=0-1',
        '?lines=9999999-99999999',
        '?bytes=999999-',
        '?lines=0-0',
        '?x=1',
        '?',
      ])
        for (const method of ['resources/read', 'resources/directory/read']) {
          const shapes = await Promise.all(
            pair.map(async (uri) => shapeOf(await arena.ask(wire, method, { uri: uri + query }), uri + query)),
          )
          expect(shapes[0], `${pair[0]}${query} beside ${pair[1]}${query}`).toBe(shapes[1])
        }
    for (const pair of pairs) {
      const shapes = await Promise.all(
        pair.map(async (uri) =>
          shapeOf(await arena.ask(wire, 'resources/directory/read', { uri, cursor: 'AAAA' }), uri),
        ),
      )
      expect(shapes[0], `${pair[0]} with a cursor`).toBe(shapes[1])
    }
  })

  eachWire(wireNames)('are neither completed nor counted by a completion over %s (TM09)', async (name) => {
    const wire = arena.wire(name)
    const complete = async (uri: string, value: string) => {
      const ref = { type: 'ref/resource', uri }
      return arena.ask(wire, 'completion/complete', { ref, argument: { name: 'path', value } })
    }
    const { message } = await complete('rule://guarded/{+path}', '')
    expect(message?.result?.completion).toEqual({ values: ['open.txt'], total: 1, hasMore: false })
    for (const value of [
      'd',
      'denied',
      'denied/',
      'denied/i',
      'denied.txt',
      'server',
      'server.key',
      'den%69ed',
      '../',
      'open.txt/../denied',
    ])
      expect((await complete('rule://guarded/{+path}', value)).message?.result?.completion, value).toMatchObject({
        values: [],
      })
    // A template of a mount that may not be seen is as unknown as any.
    const shapes = new Set<string>()
    for (const uri of ['mem://none/{+path}', 'mem://nowhere/{+path}', 'none://none/{+path}'])
      shapes.add(shapeOf(await complete(uri, ''), uri))
    expect(shapes.size).toBe(1)
  })

  eachWire(wireNames)(
    'are not completed by wildcards or escapes: each completion begins with the typed text, over %s (TM11)',
    async (name) => {
      const wire = arena.wire(name)
      const ref = { type: 'ref/resource', uri: `${arena.world.address}/{+path}` }
      for (const value of [
        '%',
        '_',
        '*',
        '?',
        '**',
        '[a-z]',
        '{a,b}',
        '.*',
        '(a+)+$',
        '^',
        '\\',
        "'",
        '"',
        ';',
        '--',
        '\0',
        '\n',
        '\u202e',
        '~',
        '$HOME',
        '`id`',
        '..',
        '.',
        '/',
        '//',
        '%2e%2e',
        '%00',
        'a/../',
        './',
        '\ud83d',
        'x'.repeat(100_000),
        '/'.repeat(100_000),
        'dir/'.repeat(20_000),
        '(((((((((('.repeat(1000),
      ]) {
        const { message } = await arena.ask(wire, 'completion/complete', { ref, argument: { name: 'path', value } })
        const { values = [] } = (message?.result?.completion ?? {}) as { readonly values?: readonly string[] }
        for (const found of values) expect(found.startsWith(value), `${value} → ${found}`).toBe(true)
      }
    },
  )
})

describe('a source that does not answer', () => {
  test('is not named to callers who may see none of its resources (O6)', async () => {
    const down: Provider = {
      async *list() {
        yield* []
        throw new ResourceError('unavailable', 'connection refused')
      },
      read: () => Promise.reject(new ResourceError('unavailable', 'connection refused')),
    }
    const { view } = createCatalog({
      mounts: [
        { address: 'mem://open', provider: memory({ a: 'a' }) },
        { address: 'mem://secret', provider: down, access: compileAccess([{ allow: ['admin'] }]) },
      ],
    })
    expect((await view({ id: 'guest', roles: [] }).list()).unavailable).toBeUndefined()
    expect((await view({ id: 'root', roles: ['admin'] }).list()).unavailable).toEqual(['mem://secret'])
  })
})
