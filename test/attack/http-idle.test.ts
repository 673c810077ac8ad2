import { once } from 'node:events'
import { request } from 'node:http'
import { connect, type Socket } from 'node:net'
import { afterEach, describe, expect, test } from 'vitest'
import { createCatalog } from '../../src/core/catalog.ts'
import type { Provider } from '../../src/core/provider.ts'
import { defaultLimits, type HttpService, serveHttp } from '../../src/server/index.ts'
import { memory } from '../support/memory.ts'

const ends: (() => unknown)[] = []
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end()
})

type Limits = Parameters<typeof serveHttp>[0]['limits']

async function serve(limits: Limits = {}, provider: Provider = memory({ a: 'a' })): Promise<HttpService> {
  const catalog = createCatalog({ mounts: [{ address: 'mem://m', provider }] })
  const service = await serveHttp({
    ...{ view: catalog.view, name: 't', version: '1', log: () => {}, host: '127.0.0.1', port: 0 },
    limits: { drain: 100, ...limits },
  })
  ends.push(service.close)
  return service
}

/** Opens connections that say nothing, or only a part of a request. */
async function silent({ url }: HttpService, count: number, said = '', from = '127.0.0.1') {
  const sockets: Socket[] = []
  for (let i = 0; i < count; i++) {
    const socket = connect({ host: '127.0.0.1', port: Number(new URL(url).port), localAddress: from })
    socket.on('error', () => {}).resume()
    ends.push(() => socket.destroy())
    await once(socket, 'connect')
    if (said !== '') socket.write(said)
    sockets.push(socket)
  }
  return sockets
}

/** Reads on a connection of its own. Resolves to the status; rejects where the connection is closed without an answer. */
function read({ url }: HttpService, from = '127.0.0.1'): Promise<number | undefined> {
  const _meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientInfo': { name: 't', version: '1' },
    'io.modelcontextprotocol/clientCapabilities': {},
  }
  const body = JSON.stringify({
    ...{ jsonrpc: '2.0', id: 1, method: 'resources/read' },
    params: { uri: 'mem://m/a', _meta },
  })
  const headers = {
    'Content-Type': 'application/json',
    Accept: 'application/json, text/event-stream',
    'MCP-Protocol-Version': '2026-07-28',
    'Mcp-Method': 'resources/read',
    'Mcp-Name': 'mem://m/a',
  }
  return new Promise((resolve, reject) => {
    const sent = request(url, { method: 'POST', headers, agent: false, localAddress: from }, (response) => {
      response.resume().on('end', () => resolve(response.statusCode))
    })
    sent.on('error', reject).end(body)
  })
}

const others = async (service: HttpService, count: number, from?: string): Promise<number> => {
  let answered = 0
  for (let i = 0; i < count; i++) if ((await read(service, from).catch(() => 0)) === 200) answered++
  return answered
}

describe('connections without a request', () => {
  test.each([
    ['send nothing', ''],
    ['send a part of a request', 'POST /mcp HTTP/1.1\r\nHost: '],
  ])('that %s block no other client, even if they are as many as the server allows', async (_, said) => {
    const service = await serve()
    await silent(service, defaultLimits.connections, said)
    expect(await others(service, 99)).toBe(99)
    expect(service.meter.read().refusedConnections).toBe(0)
    expect(service.meter.read().connections).toBeLessThanOrEqual(defaultLimits.connections)
  })

  test('block no client at another address: the address with the most connections loses some', async () => {
    const service = await serve({ connections: 16, connectionsPerAddress: 16 })
    const [first] = await silent(service, 1, '', '127.0.0.2')
    const many = await silent(service, 15)
    const closed = once(many[0] as Socket, 'close')
    expect(await others(service, 5, '127.0.0.3')).toBe(5)
    // The oldest of those of the address with the most, though another address has an older one.
    await closed
    expect(first?.destroyed).toBe(false)
  })
})

describe('connections with a pending request', () => {
  /** A mount whose reads end when the test says so. */
  function held() {
    let open = () => {}
    const opened = new Promise<void>((resolve) => {
      open = resolve
    })
    const inner = memory({ a: 'a' })
    let reading = 0
    let arrived = () => {}
    const provider: Provider = {
      ...inner,
      read: async (asked, context) => {
        reading++
        arrived()
        await opened
        return inner.read(asked, context)
      },
    }
    const untilReading = async (count: number) => {
      while (reading < count)
        await new Promise<void>((resolve) => {
          arrived = resolve
        })
    }
    return { provider, open, untilReading }
  }

  test('are not closed for others, and one address cannot take all connections', async () => {
    const { provider, open, untilReading } = held()
    const service = await serve({ connections: 16 }, provider)
    // One address has 14 of 16 at most.
    const reads = Array.from({ length: 14 }, () => read(service))
    await untilReading(14)
    await expect(read(service)).rejects.toThrow()
    expect(service.meter.read().refusedConnections).toBe(1)
    const elsewhere = [read(service, '127.0.0.2'), read(service, '127.0.0.2')]
    await untilReading(16)
    await expect(read(service, '127.0.0.3')).rejects.toThrow()
    open()
    expect(await Promise.all([...reads, ...elsewhere])).toEqual(Array.from({ length: 16 }, () => 200))
  })
})
