import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { httpPipe, type Pipe, stdioPipe } from '../support/wire-pipes.ts'
import { createServed, places, type Served } from '../support/wire-served.ts'

let served: Served
beforeAll(async () => {
  served = await createServed()
})
afterAll(() => served.close())

const pipes: Pipe[] = []
afterEach(async () => {
  for (const pipe of pipes.splice(0)) await pipe.close()
})

function opened<P extends Pipe>(pipe: P): P {
  pipes.push(pipe)
  return pipe
}

const legacy = ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05', '2024-10-07']
const all = ['2026-07-28', ...legacy]

const modernMeta = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': {},
}
const modern = (id: number, method: string, params: object = {}) =>
  JSON.stringify({ jsonrpc: '2.0', id, method, params: { ...params, _meta: modernMeta } })
const initialize = (protocolVersion: string) =>
  JSON.stringify({
    jsonrpc: '2.0',
    id: 'begin',
    method: 'initialize',
    params: { protocolVersion, capabilities: {}, clientInfo: { name: 'test', version: '1' } },
  })
const listening = { notifications: { resourcesListChanged: true } }

describe('the revisions of a transport', () => {
  test('are all named by server/discover over stdio and streamable HTTP', async () => {
    for (const pipe of [opened(stdioPipe(served)), opened(await httpPipe(served, '2026-07-28'))]) {
      const [answer] = await pipe.send(modern(1, 'server/discover'))
      expect(answer).toMatchObject({ id: 1, result: { supportedVersions: all } })
    }
  })

  test('that begin with initialize are served over HTTP+SSE, which refuses 2026-07-28 and names the served revisions', async () => {
    const pipe = opened(await httpPipe(served, '2024-11-05'))
    const asked = [
      modern(1, 'server/discover'),
      modern(2, 'subscriptions/listen', listening),
      modern(3, 'resources/list'),
      modern(4, 'resources/read', { uri: `${places.rich}/all.txt` }),
    ]
    for (const [index, body] of asked.entries()) {
      const error = { code: -32022, data: { supported: legacy, requested: '2026-07-28' } }
      expect(await pipe.send(body)).toMatchObject([{ id: index + 1, error }])
    }
    // The client then begins as in the revisions before, on the same stream.
    for (const revision of legacy) {
      const other = opened(await httpPipe(served, '2024-11-05'))
      await other.send(modern(1, 'server/discover'))
      expect(await other.send(initialize(revision))).toMatchObject([{ result: { protocolVersion: revision } }])
      const [listed] = await other.send(JSON.stringify({ jsonrpc: '2.0', id: 5, method: 'resources/list' }))
      expect(listed).toMatchObject({ id: 5, result: { resources: expect.arrayContaining([]) } })
    }
  })
})

describe('within a session, the header MCP-Protocol-Version', () => {
  const ping = JSON.stringify({ jsonrpc: '2.0', id: 7, method: 'ping' })

  test('may name any revision that has sessions', async () => {
    const pipe = opened(await httpPipe(served, '2025-06-18'))
    await pipe.send(initialize('2025-06-18'))
    for (const revision of legacy)
      expect(await pipe.send(ping, { 'MCP-Protocol-Version': revision })).toEqual([
        { jsonrpc: '2.0', id: 7, result: {} },
      ])
  })

  test.each(['2025-06-19', 'junk', '1'])('may not be %s, which is not served', async (revision) => {
    const pipe = opened(await httpPipe(served, '2025-06-18'))
    await pipe.send(initialize('2025-06-18'))
    const [refused] = await pipe.send(ping, { 'MCP-Protocol-Version': revision })
    expect(refused).not.toHaveProperty('result')
    expect(await pipe.send(ping)).toEqual([{ jsonrpc: '2.0', id: 7, result: {} }])
  })
})
