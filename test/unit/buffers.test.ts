import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { describe, expect, test } from 'vitest'
import { createCatalog } from '../../src/core/catalog.ts'
import { createBufferPool } from '../../src/server/protocol/buffers.ts'
import { useHttp } from '../support/http-service.ts'
import { memory } from '../support/memory.ts'

const serve = useHttp()
const mib = 1024 * 1024
const meta = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': { name: 'late', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': {},
}

describe('the pool of buffers', () => {
  test('gives a buffer that was given back to the next one who needs about as much', () => {
    const pool = createBufferPool()
    const first = pool.take(mib)
    pool.give(first.subarray(0, 10))
    expect(pool.take(2 * mib).buffer).not.toBe(first.buffer)
    expect(pool.take(mib / 4).buffer).not.toBe(first.buffer)
    expect(pool.take(mib / 2 + 1).buffer).toBe(first.buffer)
  })

  test('never gives a buffer to two', () => {
    const pool = createBufferPool()
    const bytes = pool.take(mib)
    pool.give(bytes)
    pool.give(bytes)
    expect(pool.take(mib).buffer).toBe(bytes.buffer)
    expect(pool.take(mib).buffer).not.toBe(bytes.buffer)
    const foreign = Buffer.allocUnsafeSlow(mib)
    pool.give(foreign)
    expect(pool.take(mib).buffer).not.toBe(foreign.buffer)
  })

  test('keeps no more than 16 MiB, and no buffer over 4 MiB', () => {
    const pool = createBufferPool()
    const large = pool.take(5 * mib)
    pool.give(large)
    expect(pool.take(5 * mib).buffer).not.toBe(large.buffer)
    const many = Array.from({ length: 20 }, () => pool.take(mib))
    for (const bytes of many) pool.give(bytes)
    const known = new Set(many.map(({ buffer }) => buffer))
    const again = Array.from({ length: 20 }, () => pool.take(mib))
    expect(again.filter(({ buffer }) => known.has(buffer))).toHaveLength(16)
  })
})

test('answers that their client takes late are not changed by the answers after them', async () => {
  const names = Array.from({ length: 12 }, (_, at) => `${String.fromCharCode(97 + at)}.txt`)
  const texts = Object.fromEntries(names.map((name) => [name, `${name} `.repeat((3 * mib) / 6)]))
  const catalog = createCatalog({ mounts: [{ address: 'x://a', provider: memory(texts) }] })
  const { url } = await serve({ view: (principal) => catalog.view(principal) })
  const { host, port } = new URL(url)
  const requestOf = (name: string, at: number, all: readonly string[]): string => {
    const uri = `x://a/${name}`
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'resources/read', params: { uri, _meta: meta } })
    return [
      ...['POST /mcp HTTP/1.1', `Host: ${host}`, 'Content-Type: application/json', 'MCP-Protocol-Version: 2026-07-28'],
      ...[
        'Mcp-Method: resources/read',
        `Mcp-Name: ${uri}`,
        `Connection: ${at < all.length - 1 ? 'keep-alive' : 'close'}`,
      ],
      ...[`Content-Length: ${body.length}`, '', body],
    ].join('\r\n')
  }
  /** Asks for several texts over one connection, and takes nothing of the answers yet. */
  const ask = (asked: readonly string[]): Socket => {
    const socket = connect(Number(port), '127.0.0.1').pause()
    socket.write(asked.map(requestOf).join(''))
    return socket
  }
  /** Takes the answers, and returns the names whose texts came unchanged. */
  const take = async (socket: Socket, asked: readonly string[]): Promise<readonly string[]> => {
    const chunks: Buffer[] = []
    for await (const chunk of socket) chunks.push(chunk as Buffer)
    const answers = Buffer.concat(chunks)
      .toString()
      .split(/HTTP\/1\.1 200.*?\r\n\r\n/s)
      .slice(1)
    return asked.filter((name, at) => JSON.parse(answers[at] ?? '{}').result?.contents[0].text === texts[name])
  }
  // More than the buffers of a connection hold.
  const late = names.slice(0, 6)
  const socket = ask(late)
  await once(socket, 'readable')
  for (const name of names.slice(6)) expect(await take(ask([name]), [name])).toEqual([name])
  expect(await take(socket, late)).toEqual(late)
})
