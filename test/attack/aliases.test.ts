import { describe, expect, test } from 'vitest'
import { createCatalog } from '../../src/core/catalog.ts'
import { compileTemplate } from '../../src/core/template.ts'
import { memory } from '../support/memory.ts'
import { useArena, wireNames } from './harness/arena.ts'
import { raw } from './harness/http.ts'
import { expectOutcome } from './harness/oracles.ts'
import { meta, type Wire } from './harness/wire.ts'
import { eachWire } from './harness/wires.ts'

const arena = useArena()

interface Listed {
  readonly uri: string
  readonly name: string
}

interface Content extends Listed {
  readonly text?: string
}

async function listAll(wire: Wire, method = 'resources/list', params = {}): Promise<readonly Listed[]> {
  const found: Listed[] = []
  let cursor: string | undefined
  do {
    const { message } = await arena.ask(wire, method, cursor === undefined ? params : { ...params, cursor })
    expect(message?.error).toBeUndefined()
    found.push(...((message?.result?.resources ?? []) as readonly Listed[]))
    cursor = message?.result?.nextCursor as string | undefined
  } while (cursor !== undefined)
  return found
}

async function contentsOf(wire: Wire, uri: string): Promise<readonly Content[]> {
  const { message } = await arena.read(wire, uri)
  return (message?.result?.contents ?? []) as readonly Content[]
}

async function complete(wire: Wire, value: string): Promise<readonly string[]> {
  const params = {
    ref: { type: 'ref/resource', uri: `${arena.world.address}/{+path}` },
    argument: { name: 'path', value },
  }
  const { message } = await arena.ask(wire, 'completion/complete', params)
  expect(message?.error).toBeUndefined()
  const { values = [] } = (message?.result?.completion ?? {}) as { readonly values?: readonly string[] }
  return values
}

describe('URIs and their spellings:', () => {
  eachWire(wireNames)(
    'every served file is listed, read, listed in its directory and completed over %s (UR12)',
    async (name) => {
      const wire = arena.wire(name)
      const { address, files } = arena.world
      const all = await listAll(wire)
      const uris = all.map(({ uri }) => uri).filter((uri) => uri.startsWith(`${address}/`) && !uri.includes('/many/'))
      expect(new Set(uris).size).toBe(uris.length)
      const template = compileTemplate('{+path}')
      for (const [path, text] of files) {
        const uri = `${address}/${path
          .split('/')
          .map((segment) => encodeURIComponent(segment).replace(/%(?:2[4BC]|26|3[ABD]|40)/g, decodeURIComponent))
          .join('/')}`
        expect(uris, path).toContain(uri)
        const [content] = await contentsOf(wire, uri)
        expect(content, path).toMatchObject({ uri, text })
        const folder = uri.slice(0, uri.lastIndexOf('/') + 1)
        expect((await listAll(wire, 'resources/directory/read', { uri: folder })).map((child) => child.uri)).toContain(
          uri,
        )
        // A host that expands the template with the value reads the same file: what would be structure is escaped in it.
        const value = path.replace(/[%?#]/g, encodeURIComponent)
        for (const typed of [path, value]) expect(await complete(wire, typed), path).toContain(value)
        const [again] = await contentsOf(wire, `${address}/${template.expand({ path: value })}`)
        expect(again, path).toMatchObject({ text })
      }
    },
  )

  eachWire(wireNames)(
    'every listed URI is valid by RFC 3986 and can be read, and no listed name has a control character, over %s (PT34)',
    async (name) => {
      const wire = arena.wire(name)
      for (const { uri, name: title } of await listAll(wire)) {
        expect(uri).toMatch(/^[a-z][a-z0-9+.-]*:\/\/(?:[\w.~!$&'()*+,;=:@/-]|%[0-9A-F]{2})*$/)
        expect(title).not.toMatch(/[\p{Cc}\u2028\u2029]/u)
        expect(await contentsOf(wire, uri)).toHaveLength(1)
      }
    },
  )

  eachWire(wireNames)(
    'a name is read with the same content in every percent-encoded spelling over %s (UR16)',
    async (name) => {
      const wire = arena.wire(name)
      const spellings = ['abc', '%61bc', '%61%62%63', 'ab%63'].map((path) => `${arena.world.address}/${path}`)
      const seen = await Promise.all(spellings.map(async (uri) => (await contentsOf(wire, uri))[0]))
      for (const [index, content] of seen.entries()) expect(content).toEqual({ ...seen[0], uri: spellings[index] })
    },
  )

  eachWire(wireNames)('no spelling bypasses an access rule over %s (UR16)', async (name) => {
    const wire = arena.wire(name)
    for (const path of [
      'denied.txt',
      'den%69ed.txt',
      '%64%65nied.txt',
      'denied/in.txt',
      '%64enied/in.txt',
      'denied/i%6e.txt',
      'server.key',
      'server%2ekey',
      'server.ke%79',
      'denied/',
      'denied',
      '%64enied/',
    ])
      for (const method of ['resources/read', 'resources/directory/read']) {
        const uri = `rule://guarded/${path}`
        expectOutcome(wire, await arena.ask(wire, method, { uri }), 'NF', uri)
      }
    const listed = (await listAll(wire)).map(({ uri }) => uri).filter((uri) => uri.startsWith('rule:'))
    expect(listed).toEqual(['rule://guarded/open.txt'])
    expect((await listAll(wire, 'resources/directory/read', { uri: 'rule://guarded' })).map(({ uri }) => uri)).toEqual(
      listed,
    )
  })

  eachWire(wireNames)(
    'a URI with another scheme or host is not read, listed as a directory or completed over %s (UR06, UR07)',
    async (name) => {
      const wire = arena.wire(name)
      const { address } = arena.world
      for (const uri of [
        address.replace('file://', 'file://host'),
        'rul://guarded',
        'rule://guarde',
        'rule://guarded.',
      ]) {
        for (const method of ['resources/read', 'resources/directory/read'])
          expect((await arena.ask(wire, method, { uri })).message?.result).toBeUndefined()
        const ref = { type: 'ref/resource', uri: `${uri}/{+path}` }
        const { message } = await arena.ask(wire, 'completion/complete', { ref, argument: { name: 'path', value: '' } })
        expect(message?.error?.code).toBe(-32602)
      }
    },
  )

  // Issue 16, item 24: schemes and hosts have no case, here as where something is read.
  eachWire(wireNames)(
    'a URI with capital letters in its scheme or host, or with the host localhost, lists the same directory over %s (UR06, UR07)',
    async (name) => {
      const wire = arena.wire(name)
      const childrenOf = async (uri: string) =>
        (await listAll(wire, 'resources/directory/read', { uri })).map((one) => one.uri)
      for (const uri of ['RULE://guarded', 'rule://GUARDED', 'Rule://Guarded/'])
        expect(await childrenOf(uri)).toEqual(['rule://guarded/open.txt'])
      const { address } = arena.world
      const dir = await childrenOf(`${address}/dir`)
      for (const head of ['FILE://', 'file:', 'file://localhost', 'File://LOCALHOST'])
        expect(await childrenOf(`${address.replace('file://', head)}/dir`)).toEqual(dir)
    },
  )

  eachWire(wireNames)('an excluded file is in no list, directory or completion over %s (PT37)', async (name) => {
    const wire = arena.wire(name)
    const { address } = arena.world
    const secret =
      /\.env|\.git|\.ssh|id_rsa|\.pem|\.key|node_modules|~$|\.#|\.swp|link-|fifo|new|esc|here|secret|outside/
    const shown = (await listAll(wire)).map(({ uri }) => uri).filter((uri) => uri.startsWith(address))
    const below = shown.map((uri) => uri.slice(address.length + 1))
    expect(below.filter((path) => secret.test(path))).toEqual([])
    for (const folder of ['', '/dir'])
      for (const child of await listAll(wire, 'resources/directory/read', { uri: `${address}${folder}` }))
        expect(child.uri.slice(address.length)).not.toMatch(secret)
    for (const value of [
      '',
      '.',
      '.e',
      '.env',
      '.git/',
      '.ssh/',
      'i',
      'id_',
      'id_rsa',
      'server',
      'node_modules/',
      'link',
      'link-directory/',
      'link-up/',
      '../',
      '..',
      '/',
      '/etc/',
      'dir/.',
      'fifo',
      'new',
      'esc',
      '.git/con',
      'link-root/etc/',
    ])
      expect(
        (await complete(wire, value)).filter((found) => secret.test(found)),
        value,
      ).toEqual([])
    const [listing] = await contentsOf(wire, `${address}/`)
    expect(listing?.text).not.toMatch(secret)
    expect(
      (await contentsOf(wire, address)).map(({ uri }) => uri.slice(address.length)).filter((path) => secret.test(path)),
    ).toEqual([])
  })
})

describe('URIs of great length:', () => {
  test('a URI of 1 MiB is refused over stdio, and the answer does not repeat it (UR17)', async () => {
    for (const name of ['stdio 2026-07-28', 'stdio 2025-11-25'] as const) {
      const answer = await arena.read(arena.wire(name), `${arena.world.address}/${'x'.repeat(1024 * 1024)}`)
      expect(answer.message?.error?.code).toBe(-32602)
      expect(answer.raw.length).toBeLessThan(1024)
    }
  })

  test('a URI of 64 MiB is refused over stdio as a message that is too long (UR17)', async () => {
    const wire = arena.wire('stdio 2025-11-25')
    if (!('pipe' in wire)) throw new Error('no pipe')
    const { pipe } = wire as unknown as { readonly pipe: import('./harness/stdio.ts').Pipe }
    await pipe.write('{"jsonrpc":"2.0","id":"long","method":"resources/read","params":{"uri":"')
    for (let i = 0; i < 64; i++) await pipe.write('x'.repeat(1024 * 1024))
    await pipe.write('"}}\n')
    expect((await pipe.next()).message).toMatchObject({ id: null, error: { code: -32700 } })
  })

  test('a URI of 500 KiB is refused over HTTP on an older revision, and the answer does not repeat it (UR17)', async () => {
    const answer = await arena.read(arena.wire('http 2025-11-25'), `file:///${'x'.repeat(500 * 1024)}`)
    expect(answer.message?.error?.code).toBe(-32602)
    expect(answer.raw.length).toBeLessThan(1024)
  })

  test('a URI of 1 MiB is refused over HTTP with 431 in a header, and with 413 in a body (UR17)', async () => {
    const uri = `file:///${'x'.repeat(1024 * 1024)}`
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'resources/read', params: { uri, _meta: meta } })
    const { host, pathname } = arena.http.url as URL
    const head = `POST ${pathname} HTTP/1.1\r\nHost: ${host}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n`
    const large = await raw(arena.http, arena.world, `${head}Mcp-Name: ${uri}\r\n\r\n${body}`)
    expect(large.statuses).toEqual([431])
    const { statuses } = await raw(arena.http, arena.world, `${head}\r\n${body}`)
    expect(statuses).toEqual([413])
  })

  // In revision 2026-07-28 over HTTP, a header has the URI too, and is refused before it is parsed.
  const inBodies = wireNames.filter((name) => name !== 'http 2026-07-28')
  eachWire(inBodies)(
    'a URI that repeats a slash, segment, escape, query sign or letter 100,000 times is refused over %s (UR18)',
    async (name) => {
      const wire = arena.wire(name)
      for (const part of ['/', '%2f', 'a/', '../', '?', '&', '%', '\u00e9'])
        expect((await arena.read(wire, `${arena.world.address}/${part.repeat(100_000)}`)).message?.error?.code).toBe(
          -32602,
        )
    },
  )
})

describe('the addresses of mounts:', () => {
  const provider = memory({ f: 'f' })
  const catalogOf = (...addresses: readonly string[]) =>
    createCatalog({ mounts: addresses.map((address) => ({ address, provider })) })

  test('overlapping addresses are refused in either order (UR24)', () => {
    const overlaps = [
      ['file:///srv', 'file:///srv/root'],
      ['file:///', 'file:///srv'],
      ['mem://a', 'mem://a/b/c'],
      ['file:///srv', 'file:///srv/'],
    ] as const
    for (const [one, two] of overlaps) {
      expect(() => catalogOf(one, two)).toThrow('overlap')
      expect(() => catalogOf(two, one)).toThrow('overlap')
    }
    expect(() => catalogOf('file:///srv', 'file:///srv2', 'file:///sr', 'mem:///srv')).not.toThrow()
  })

  test('two mounts at one address in two spellings are refused (UR26)', () => {
    for (const [one, two] of [
      ['file:///srv/a', 'file:///srv/%61'],
      ['file:///ü', 'file:///%C3%BC'],
      ['mem://m', 'mem://m/'],
      ['FILE:///srv', 'file:///srv'],
      ['file://localhost/srv', 'file:/srv'],
      ['pg://DB/t', 'pg://db/t'],
    ] as const)
      expect(() => catalogOf(one, two)).toThrow('overlap')
  })

  test.each([
    ['pg://DB/t', 'pg://db/t'],
    ['file:///Docs', 'file:///docs'],
    ['file:///\u00fc', 'file:///u\u0308'],
  ])('%s and %s, which differ only in letter case or Unicode form, are refused together (UR26)', (one, two) => {
    expect(() => catalogOf(one, two)).toThrow()
    expect(() => catalogOf(two, one)).toThrow()
  })
})
