import type { LookupAddress } from 'node:dns'
import { createServer, type Server, type ServerResponse } from 'node:http'
import { createLocalJWKSet } from 'jose'
import { afterEach, describe, expect, test } from 'vitest'
import { createServiceGuard, type ResolveHost, type ServiceNetwork, sendGuarded } from '../../src/core/address-guard.ts'
import { parseHttpUrl } from '../../src/core/http-url.ts'
import { metrics } from '../../src/providers/metrics/index.ts'
import { createEmbedder } from '../../src/search/embedder.ts'
import { createIntrospectionVerifier } from '../../src/server/auth/index.ts'
import { createKeySet } from '../../src/server/auth/jwt.ts'
import { createNames, startWeb } from '../support/web.ts'

/** The services that the configuration names by URL: keys of issuers, introspection, Prometheus, embeddings. Their hosts are judged at each connection. */

const endings: (() => void)[] = []
afterEach(() => {
  for (const end of endings.splice(0)) end()
})

/** A server that answers all of the services, and notes what it was asked. */
async function startService(port = 0, host = '127.0.0.1') {
  const asked: string[] = []
  const server: Server = createServer((request, response) => {
    asked.push(`${request.method} ${request.url}`)
    response.setHeader('content-type', 'application/json')
    if (request.url?.startsWith('/api/v1/metadata')) response.end('{"status":"success","data":{}}')
    else if (request.url?.startsWith('/api/v1/')) response.end('{"status":"success","data":["up"]}')
    else if (request.url === '/v1/embeddings') response.end('{"data":[{"embedding":[1,0]}]}')
    else if (request.url === '/api/embed') response.end('{"embeddings":[[1,0]]}')
    else response.end('{"keys":[],"active":false}')
  })
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(port, host, resolve))
  endings.push(() => {
    server.closeAllConnections()
    server.close()
  })
  const address = server.address()
  return { asked, port: typeof address === 'object' && address !== null ? address.port : 0 }
}

/** Starts services at one port of 127.0.0.2 and 127.0.0.1. Another program may have the port at one of them: then it takes the next one. */
async function startPair() {
  for (;;) {
    const first = await startService(0, '127.0.0.2')
    const second = await startService(first.port).catch(() => undefined)
    if (second !== undefined) return [first, second] as const
  }
}

/** How long a service may take here: none of the tests is about it. */
const timeoutMs = 30_000
const embed = async (options: Parameters<typeof createEmbedder>[0]) => {
  const embedder = await createEmbedder(options)
  return embedder.embed(['a text'], 'passage', new AbortController().signal)
}

type AskService = (base: string, network: ServiceNetwork) => Promise<unknown>

const services: Readonly<Record<string, AskService>> = {
  JWKS: (base, network) => createKeySet(`${base}/jwks`, createLocalJWKSet, () => {}, network).current(),
  introspection: async (base, network) =>
    createIntrospectionVerifier(
      {
        issuer: base,
        audiences: ['us'],
        introspection: { url: `${base}/introspect`, clientId: 'a', clientSecret: 'b' },
        ...network,
      },
      {},
    ).verify('opaque'),
  metrics: async (base, network) => {
    const provider = await metrics({ url: base, ...network })
    try {
      const context = { principal: { id: 'x', roles: [] }, signal: new AbortController().signal }
      const paths: string[] = []
      for await (const entry of provider.list({}, context)) if ('path' in entry) paths.push(entry.path)
      return paths
    } finally {
      await provider.close?.()
    }
  },
  'embeddings of OpenAI': (base, network) =>
    embed({ model: 'm', openai: { url: `${base}/v1/`, key: 'a-key' }, timeoutMs, ...network }),
  'embeddings of Ollama': (base, network) => embed({ model: 'm', ollama: { url: base }, timeoutMs, ...network }),
}

describe.each(Object.entries(services))('the service of %s', (_, ask) => {
  test.each([
    ['this machine', ['127.0.0.1']],
    ['a private network', ['10.1.2.3']],
    ['the internet and a private network', ['93.184.215.14', '192.168.1.1']],
    ['this machine, written as IPv6', ['::ffff:127.0.0.1']],
    ['a metadata service of a cloud', ['169.254.169.254']],
  ])('is not connected to if its name resolves to %s', async (_, addresses) => {
    const service = await startService()
    const names = createNames({ 'service.test': addresses })
    await expect(ask(`http://service.test:${service.port}`, { resolve: names.resolve })).rejects.toMatchObject({
      kind: 'unavailable',
      message: expect.stringContaining('private network') as string,
    })
    expect(names.asked).toContain('service.test')
    expect(service.asked).toEqual([])
  })

  test('is reached if "allowAddresses" contains the address of its host name', async () => {
    const service = await startService()
    const { resolve } = createNames({ 'service.test': ['127.0.0.1'] })
    await ask(`http://service.test:${service.port}`, { resolve, allowAddresses: ['127.0.0.0/8'] })
    expect(service.asked.length).toBeGreaterThan(0)
  })

  test('is never connected to at a metadata service, whatever is allowed', async () => {
    const { resolve } = createNames({ 'service.test': ['169.254.169.254'] })
    const network = { resolve, allowAddresses: ['0.0.0.0/0'] }
    for (const host of ['service.test', 'metadata.google.internal', '169.254.169.254'])
      await expect(ask(`http://${host}`, network)).rejects.toMatchObject({ kind: 'unavailable' })
  })

  test('is connected to at the address in its URL, and at localhost', async () => {
    const service = await startService()
    const { resolve } = createNames({ localhost: ['127.0.0.1'] })
    await ask(`http://127.0.0.1:${service.port}`, { resolve })
    const before = service.asked.length
    expect(before).toBeGreaterThan(0)
    await ask(`http://localhost:${service.port}`, { resolve })
    expect(service.asked.length).toBeGreaterThan(before)
  })

  test('is not connected to at a localhost that resolves beyond this machine', async () => {
    const { resolve } = createNames({ localhost: ['10.0.0.1'] })
    await expect(ask('http://localhost:9', { resolve })).rejects.toMatchObject({ kind: 'unavailable' })
  })

  test.runIf(process.platform === 'linux')(
    'is not connected to once its name resolves to an address that is not allowed',
    async () => {
      const [allowed, other] = await startPair()
      const names: Record<string, string[]> = { 'service.test': ['127.0.0.2'] }
      const network: ServiceNetwork = {
        allowAddresses: ['127.0.0.2'],
        resolve: (host, done) => createNames(names).resolve(host, done),
      }
      const base = `http://service.test:${allowed.port}`
      await ask(base, network)
      const before = allowed.asked.length
      expect(before).toBeGreaterThan(0)
      names['service.test'] = ['127.0.0.1']
      await expect(ask(base, network)).rejects.toMatchObject({ kind: 'unavailable' })
      expect([allowed.asked.length, other.asked]).toEqual([before, []])
    },
  )

  test('cannot redirect a request: it gets an error, and its target is not connected to', async () => {
    const service = await startService()
    const target = `http://127.0.0.1:${service.port}/jwks`
    const redirecting = await startWeb((_, response) => void response.writeHead(302, { location: target }).end('{}'))
    endings.push(redirecting.close)
    await expect(ask(redirecting.url, {})).rejects.toMatchObject({ kind: 'unavailable' })
    expect(redirecting.requests.length).toBeGreaterThan(0)
    expect(service.asked).toEqual([])
  })
})

describe('an answer with embeddings', () => {
  const ask = (url: string) => embed({ model: 'm', ollama: { url }, timeoutMs })

  test('that is larger than the limit gives an error, and is not read to its end', async () => {
    let sent = 0
    const endless = await startWeb((_, response) => {
      const piece = Buffer.alloc(1024 * 1024, ' ')
      const send = (error?: Error | null) => {
        if (error || response.destroyed) return
        sent++
        response.write(piece, send)
      }
      send()
    })
    endings.push(endless.close)
    await expect(ask(endless.url)).rejects.toMatchObject({ kind: 'unavailable', message: 'Its answer is too large.' })
    expect(sent).toBeLessThan(200)
  }, 60_000)

  test('that breaks off, is not JSON or has an error status gives an error that does not quote it', async () => {
    const answers: ((response: ServerResponse) => void)[] = [
      (response) => response.writeHead(200, { 'content-length': '100' }).write('a-secret', () => response.destroy()),
      (response) => void response.end('a-secret'),
      (response) => void response.writeHead(500).end('a-secret'),
    ]
    for (const answer of answers) {
      const broken = await startWeb((_, response) => answer(response))
      endings.push(broken.close)
      const error = await ask(broken.url).then(
        () => undefined,
        (thrown: unknown) => thrown,
      )
      expect(error).toMatchObject({ kind: 'unavailable' })
      expect(String(error)).not.toMatch(/a-secret|127\.0\.0\.1/)
    }
  })
})

test('the address of the open connection is checked, not only that of the lookup', async () => {
  const service = await startService()
  const url = parseHttpUrl(`http://service.test:${service.port}/`)
  const honest = createServiceGuard(url)
  const here: readonly LookupAddress[] = [{ address: '127.0.0.1', family: 4 }]
  const resolve: ResolveHost = (_, done) => done(null, here)
  // The socket is led past the look-up, as by a name that changes between it and the connection.
  const guard = {
    ...honest,
    lookup: ((_host, _options, done) => resolve('', () => done(null, [...here]))) as typeof honest.lookup,
  }
  const signal = AbortSignal.timeout(30_000)
  await expect(sendGuarded(guard, { url, headers: {}, signal })).rejects.toMatchObject({ code: 'EREFUSEDHOST' })
  expect(service.asked).toEqual([])
})
