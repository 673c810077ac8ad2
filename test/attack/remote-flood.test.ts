import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as sleep, setImmediate as turn } from 'node:timers/promises'
import type { Transport } from '@modelcontextprotocol/client'
import { afterEach, describe, expect, test } from 'vitest'
import { createFloodLimit } from '../../src/client/flood.ts'
import type { ServerTarget } from '../../src/client/index.ts'
import { createCatalog } from '../../src/core/catalog.ts'
import { remote } from '../../src/providers/remote/index.ts'
import { serveHttp } from '../../src/server/index.ts'
import { fixture, listen, scriptedModern } from '../support/mcp-servers.ts'
import { memory } from '../support/memory.ts'
import { someOf } from '../support/volume.ts'

const ends: (() => unknown)[] = []
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end()
})

/** A server that floods over HTTP, in a process of its own. */
async function floodOverHttp(): Promise<ServerTarget> {
  const program = new URL('../fixtures/mcp/flood.mjs', import.meta.url).pathname
  const child = spawn(process.execPath, [program, 'http'], { stdio: ['ignore', 'pipe', 'inherit'] })
  ends.push(() => child.kill('SIGKILL'))
  const [port] = await once(child.stdout.setEncoding('utf8'), 'data')
  return { url: `http://127.0.0.1:${Number(port)}/mcp` }
}

const meta = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': { name: 't', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': {},
}

/** Waits until this process has read all that it wrote to itself: much fewer turns do. */
async function arrived(): Promise<void> {
  for (let turns = 0; turns < 1000; turns++) await turn()
}

/** So many reads are answered meanwhile. */
const enough = 100

describe('a mounted server that sends endless notifications', () => {
  const servers: readonly (readonly [transport: string, targetOf: () => Promise<ServerTarget>])[] = [
    ['stdio', () => Promise.resolve(fixture('flood', 'stdio'))],
    ['HTTP', floodOverHttp],
  ]
  test.each([...someOf('a flood', servers)])(
    'over %s is disconnected, and more than 100 reads of another mount are answered before',
    async (_, targetOf) => {
      let cut = false
      const log = (_level: string, message: string) => {
        cut ||= message.includes('its connection is cut')
      }
      const flooding = remote({ target: await targetOf(), log })
      const catalog = createCatalog({
        mounts: [
          { address: 'remote://flood', provider: flooding },
          { address: 'mem://calm', provider: memory({ a: 'a' }) },
        ],
      })
      const service = await serveHttp({
        ...{ view: catalog.view, name: 't', version: '1', log: () => {}, host: '127.0.0.1', port: 0 },
        limits: { drain: 100 },
      })
      ends.push(catalog.close, service.close)
      const read = async () => {
        const params = { uri: 'mem://calm/a', _meta: meta }
        const answer = await fetch(service.url, {
          method: 'POST',
          headers: {
            'Content-Type': 'application/json',
            Accept: 'application/json, text/event-stream',
            'MCP-Protocol-Version': '2026-07-28',
            'Mcp-Method': 'resources/read',
            'Mcp-Name': 'mem://calm/a',
          },
          body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'resources/read', params }),
        })
        const { result } = (await answer.json()) as { readonly result?: { readonly contents?: readonly unknown[] } }
        return result?.contents?.length === 1
      }
      const subscription = catalog.view({ id: 'ada', roles: [] }).subscribe?.(() => {})
      ends.push(() => subscription?.close())
      const listening = Promise.all([subscription?.addList(), subscription?.add(['remote://flood/n/item/1'])])
      let answered = 0
      while (!cut) {
        if (await read()) answered++
        // As fast as it can, the test itself would be most of the work: a flood lasts up to a minute.
        await sleep(answered < enough * 1.5 ? 10 : 200)
      }
      // It is cut after 22,000 messages or more. Read in one go, they leave room for a few answers only.
      expect(answered).toBeGreaterThan(enough)
      expect(await read()).toBe(true)
      await listening.catch(() => {})
    },
    300_000,
  )
})

describe('a mounted server with a huge page', () => {
  const items = 80_000
  const named = (key: string, more: object) =>
    Array.from({ length: items }, (_, n) => ({ name: 'n', [key]: `n:${(n * 7919) % items}`, ...more }))
  const pages: readonly (readonly [list: string, page: object, method: string])[] = [
    ['resources', { resources: named('uri', {}) }, 'resources/list'],
    ['templates', { resourceTemplates: named('uriTemplate', {}) }, 'resources/templates/list'],
    ['prompts', { prompts: named('name', {}) }, 'prompts/list'],
    ['tools', { tools: named('name', { inputSchema: { type: 'object' } }) }, 'tools/list'],
  ]

  test.each(pages)('of %s lets other work run while its items are converted', async (_, page, method) => {
    let isSent = false
    const url = await listen((request, response) => {
      scriptedModern((asked) => {
        if (asked !== method) return { resources: [], resourceTemplates: [], prompts: [], tools: [] }
        const end = response.end.bind(response)
        Object.assign(response, {
          end: async (text: string) => {
            response.write(text.slice(0, -1))
            await arrived()
            isSent = true
            end(text.slice(-1))
          },
        })
        return { ...page }
      })(request, response)
    })
    const catalog = createCatalog({
      mounts: [{ address: 'remote://huge', provider: remote({ target: { url }, prompts: true, tools: true }) }],
    })
    ends.push(catalog.close)
    const view = catalog.view({ id: 'ada', roles: [] })
    let turns = 0
    let hasEnded = false
    const asked: Readonly<Record<string, () => unknown>> = {
      'resources/list': () => view.list(),
      'resources/templates/list': () => view.templates(),
      'prompts/list': () => view.prompts?.list(),
      'tools/list': () => view.tools?.list(new Set()),
    }
    const asking = Promise.resolve(asked[method]?.()).catch(() => {})
    const ending = asking.then(() => {
      hasEnded = true
    })
    while (!hasEnded) {
      await turn()
      if (isSent) turns++
    }
    await ending
    // Converted in one go, they leave only the turns in which the last byte arrives.
    expect(turns).toBeGreaterThan(6)
  })
})

describe('the budget of messages of a mounted server', () => {
  /** A transport of which the test says what comes. */
  function transport() {
    const made: Transport & { closed: number } = {
      closed: 0,
      start: async () => {},
      send: async () => {},
      close: async () => {
        made.closed++
      },
    }
    return made
  }
  const notification = { jsonrpc: '2.0', method: 'notifications/resources/updated', params: {} } as const

  test('is not spent by answers to requests, however many', async () => {
    const wire = transport()
    const flood = createFloodLimit(
      () => expect.unreachable(),
      () => 0,
    )
    flood.watch(wire)
    let heard = 0
    wire.onmessage = () => void heard++
    for (let id = 0; id < 50_000; id++) {
      await wire.send({ jsonrpc: '2.0', id, method: 'ping' })
      wire.onmessage?.({ jsonrpc: '2.0', id, result: {} })
    }
    expect([heard, flood.isCut, wire.closed]).toEqual([50_000, false, 0])
  })

  test('is refilled over time: 200 messages a second are read for a thousand seconds', () => {
    const wire = transport()
    let time = 0
    const flood = createFloodLimit(
      () => expect.unreachable(),
      () => time,
    )
    flood.watch(wire)
    wire.onmessage = () => {}
    for (let second = 0; second < 1000; second++) {
      time += 1000
      for (let i = 0; i < 200; i++) wire.onmessage?.(notification)
    }
    expect(flood.isCut).toBe(false)
  })

  test('closes the connection once 22,000 notifications have spent it, as answers without a request also do', () => {
    const wire = transport()
    let cuts = 0
    const flood = createFloodLimit(
      () => void cuts++,
      () => 0,
    )
    flood.watch(wire)
    let heard = 0
    wire.onmessage = () => void heard++
    for (let i = 0; i < 100_000; i++) wire.onmessage?.(notification)
    expect([heard, cuts, wire.closed, flood.isCut]).toEqual([22_000, 1, 1, true])
    // An answer that nobody asked for counts as a notification does.
    const other = transport()
    const second = createFloodLimit(
      () => void cuts++,
      () => 0,
    )
    second.watch(other)
    other.onmessage = () => {}
    for (let id = 0; id < 30_000; id++) other.onmessage?.({ jsonrpc: '2.0', id, result: {} })
    expect([cuts, second.isCut]).toEqual([2, true])
  })
})
