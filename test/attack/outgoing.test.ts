import { readdirSync, readFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { connect as connectClient } from '../../src/client/index.ts'
import { run } from '../support/cli.ts'
import { useArena, wireNames } from './harness/arena.ts'
import { headerValue, modernHeaders, send } from './harness/http.ts'
import { withMeta } from './harness/wire.ts'
import { eachWire } from './harness/wires.ts'

const arena = useArena()

/** Whatever reaches this was sent out by somebody. */
let sink: Server
let port: number
const reached: string[] = []

beforeAll(async () => {
  sink = createServer((request, response) => {
    reached.push(`${request.method} ${request.url} ${JSON.stringify(request.rawHeaders)}`)
    response.end('{}')
  })
  sink.on('connection', ({ remotePort }) => void reached.push(`a connection from ${remotePort}`))
  await new Promise<void>((resolve) => sink.listen(0, '127.0.0.1', resolve))
  port = (sink.address() as AddressInfo).port
})

afterAll(() => {
  sink.closeAllConnections()
  sink.close()
})

/** Ways to write the address of this machine, or of one that hands out credentials. */
const hosts: Readonly<Record<string, readonly string[]>> = {
  'this machine (SS01)': [
    '127.0.0.1',
    'localhost',
    'localhost.',
    '[::1]',
    '0',
    '0.0.0.0',
    '127.1',
    '2130706433',
    '0x7f.1',
    '0177.0.0.1',
  ],
  'an IPv6 address of this machine, or with one in it (SS02)': [
    '[::ffff:127.0.0.1]',
    '[::127.0.0.1]',
    '[64:ff9b::7f00:1]',
    '[2002:7f00:1::]',
    '[::]',
    '[fd00:ec2::254]',
  ],
  'a cloud metadata service (SS03)': ['169.254.169.254', 'metadata.google.internal', '100.100.100.200', '192.0.0.192'],
  'a name that resolves to this machine (SS04)': ['localhost.localdomain', 'ip6-localhost', '127.0.0.1.nip.io'],
  'this machine behind a user or another name (SS08)': ['user:pw@127.0.0.1', 'rule@127.0.0.1', 'guarded.127.0.0.1'],
}
const schemes = ['http', 'https', 'git', 'ftp', 'ws', 's3', 'postgres', 'file', 'rule', 'jar:http', 'gopher']

describe('an address that a client names', () => {
  describe.each(Object.entries(hosts))('with %s as its host', (row, names) => {
    eachWire(wireNames, row)('is not fetched with any scheme, for any method, over %s', async (name) => {
      const wire = arena.wire(name)
      for (const host of names)
        for (const scheme of schemes) {
          const uri = `${scheme}://${host}:${port}/x`
          for (const method of ['resources/read', 'resources/directory/read', 'resources/subscribe']) {
            const { message } = await arena.ask(wire, method, { uri })
            expect(message?.result, `${method} ${uri}`).toBeUndefined()
          }
          const ref = { type: 'ref/resource', uri: `${uri}/{+path}` }
          const { message } = await arena.ask(wire, 'completion/complete', {
            ref,
            argument: { name: 'path', value: '' },
          })
          expect(message?.result, `completion ${uri}`).toBeUndefined()
        }
      expect(reached).toEqual([])
    })
  })

  test('is not fetched with any port, valid or not (SS09)', async () => {
    const wire = arena.wire('stdio 2026-07-28')
    for (const at of [22, 25, 6379, 0, 65_536, -1, port])
      for (const uri of [`http://127.0.0.1:${at}/`, `git://127.0.0.1:${at}`, `redis://127.0.0.1:${at}`])
        expect((await arena.read(wire, uri)).message?.result, uri).toBeUndefined()
    expect(reached).toEqual([])
  })

  test('adds no line to a request or an answer (SS18)', async () => {
    for (const tail of ['\r\nX-Injected: 1', '%0d%0aX-Injected:%201', '\nHost: evil', '%0aHost:%20evil']) {
      const uri = `http://127.0.0.1:${port}/${tail}`
      const params = { uri }
      const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'resources/read', params: withMeta(params, true) })
      const headers = { ...modernHeaders('resources/read', {}), 'mcp-name': headerValue(uri) }
      const answer = await send(arena.http, arena.world, { headers, body })
      expect(answer.headers?.map(([name]) => name)).not.toContain('x-injected')
      expect(answer.message?.result).toBeUndefined()
    }
    expect(reached).toEqual([])
  })

  test('is not fetched as an icon, a site, metadata or a reference of the client (SS22, SS24)', async () => {
    const url = `http://127.0.0.1:${port}/icon.png`
    const client = { name: 'x', version: '1', websiteUrl: url, icons: [{ src: url, mimeType: 'image/png' }] }
    const meta = {
      'io.modelcontextprotocol/clientInfo': client,
      authorization_servers: [url],
      jwks_uri: url,
      resource_metadata: url,
    }
    for (const name of wireNames) {
      const wire = arena.wire(name)
      const params = { uri: `${arena.world.address}/a.txt`, _meta: meta, $ref: url, schema: { $ref: url } }
      await arena.ask(wire, 'resources/read', params)
      if (!wire.modern)
        await wire.call('initialize', {
          protocolVersion: '2025-11-25',
          capabilities: { $ref: url },
          clientInfo: client,
        })
    }
    const headers = {
      ...modernHeaders('resources/list', {}),
      authorization: `Bearer ${token({ alg: 'RS256', jku: url, x5u: url }, { iss: url })}`,
      link: `<${url}>; rel="preload"`,
      referer: url,
      'x-forwarded-host': `127.0.0.1:${port}`,
    }
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'resources/list', params: withMeta({}, true) })
    expect((await send(arena.http, arena.world, { headers, body })).status).toBe(200)
    expect(reached).toEqual([])
  })
})

const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
const token = (head: object, claims: object) => `${encode(head)}.${encode(claims)}.c2ln`

describe('a hostile server that the client connects to:', () => {
  /** A server that answers everything in one way. */
  async function hostile(answer: Parameters<typeof createServer>[1]): Promise<{ url: string; close(): void }> {
    const server = createServer(answer)
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const { port: own } = server.address() as AddressInfo
    return {
      url: `http://127.0.0.1:${own}/mcp`,
      close: () => {
        server.closeAllConnections()
        server.close()
      },
    }
  }
  const ask = async (url: string) => {
    const secret = arena.world.canaries.plant('client')
    const headers = { authorization: `Bearer ${secret}`, 'x-api-key': secret }
    const before = reached.length
    const outcome = await connectClient({ url, headers }, { timeoutMs: 5000, maxBytes: 1024 * 1024 }).then(
      async (remote) => {
        const listed = await remote.list({}).catch((error: unknown) => error)
        await remote.close()
        return listed
      },
      (error: unknown) => error,
    )
    return { outcome, sent: reached.slice(before).join('\n'), secret }
  }

  test.each([301, 302, 303, 307, 308])(
    'a redirect with %i gets no credentials to another origin (SS06, SS19)',
    async (status) => {
      const server = await hostile((_, response) => {
        response.writeHead(status, { location: `http://127.0.0.1:${port}/stolen` }).end()
      })
      const { outcome, sent, secret } = await ask(server.url)
      server.close()
      expect(outcome).toBeInstanceOf(Error)
      expect(sent).not.toContain(secret)
      expect(String((outcome as Error).message)).not.toContain(secret)
    },
  )

  test('endless redirects are given up, and no other address is contacted (SS07)', async () => {
    let count = 0
    const server = await hostile((request, response) => {
      count++
      const headers = {
        location: `${request.url}x`,
        refresh: `0; url=http://127.0.0.1:${port}/`,
        link: `<http://127.0.0.1:${port}/>`,
      }
      response.writeHead(308, headers).end()
    })
    const { outcome, sent } = await ask(server.url)
    server.close()
    expect(outcome).toBeInstanceOf(Error)
    expect(sent).toBe('')
    expect(count).toBeLessThan(200)
  })

  test('an endless answer makes the request fail, and so does one that expands beyond the limit, in bounded memory (SS13, SS14)', async () => {
    const { gzipSync } = await import('node:zlib')
    const bomb = gzipSync(Buffer.alloc(64 * 1024 * 1024, ' '))
    const endless = await hostile((_, response) => {
      response.writeHead(200, { 'content-type': 'application/json' })
      const more = () => {
        while (!response.destroyed && response.write(' '.repeat(65_536)));
        if (!response.destroyed) response.once('drain', more)
      }
      more()
    })
    expect((await ask(endless.url)).outcome).toBeInstanceOf(Error)
    endless.close()
    const packed = await hostile((_, response) => {
      response.writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' }).end(bomb)
    })
    const before = process.memoryUsage().rss
    expect((await ask(packed.url)).outcome).toBeInstanceOf(Error)
    expect(process.memoryUsage().rss - before).toBeLessThan(256 * 1024 * 1024)
    packed.close()
  })

  test('proxies of the environment are not used (SS11)', async () => {
    const proxy = `http://127.0.0.1:${port}`
    const env = { HTTP_PROXY: proxy, http_proxy: proxy, HTTPS_PROXY: proxy, ALL_PROXY: proxy, NODE_USE_ENV_PROXY: '' }
    const before = reached.length
    const { code } = await run(['ls', '--url', String(arena.http.url)], { cwd: arena.world.root, env })
    expect(code).toBe(0)
    expect(reached.slice(before)).toEqual([])
  })

  test('no source file turns off the check of TLS certificates (SS17)', () => {
    const source = join(import.meta.dirname, '../../src')
    const files = readdirSync(source, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'))
    expect(files.length).toBeGreaterThan(100)
    for (const file of files)
      expect(readFileSync(join(source, file), 'utf8'), file).not.toMatch(
        // It may be said once more that proof is asked for, and Node asked whether a certificate is for a name.
        /rejectUnauthorized\b(?!: true\b| === false\)\n +throw )|NODE_TLS_REJECT_UNAUTHORIZED|minVersion: ?'TLSv1'|checkServerIdentity: (?!\(_host, certificate\) => checkServerIdentity\()/,
      )
  })
})
