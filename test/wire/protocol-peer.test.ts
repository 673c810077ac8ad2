import { type JSONRPCMessage, PerRequestHTTPServerTransport, Server } from '@modelcontextprotocol/server'
import { afterEach, describe, expect, test } from 'vitest'
import { isObject } from '../../src/core/kit/object.ts'
import { createCatalog } from '../../src/index.ts'
import {
  assumedRevision,
  isRevision,
  modernRevision,
  ProtocolError,
  type Request,
  type Response,
  revisions,
  wireErrorCodes,
} from '../../src/server/messages/messages.ts'
import { type Channel, type Era, openChannel, type ServedMethods } from '../../src/server/protocol/channel.ts'
import type { Method, MethodCall } from '../../src/server/protocol/method.ts'
import { memory } from '../support/memory.ts'

/** The server of the official SDK, with the same methods as a channel of hikidashi. */
interface Peer {
  /** Returns the answer to a request, or `undefined` if the server ignores the message. */
  request(message: Request): Promise<Response | undefined>
  notify(method: string): void
  close(): Promise<void>
}

/** Connects the server to this process, and binds it to an era without an HTTP request. */
class Wire extends PerRequestHTTPServerTransport {
  readonly waiting = new Map<unknown, (response: Response) => void>()

  override async start(): Promise<void> {}

  override async send(message: JSONRPCMessage): Promise<void> {
    if ('id' in message && !('method' in message)) this.waiting.get(message.id)?.(message as unknown as Response)
  }
}

async function openPeer({ server: info, capabilities, instructions, methods }: ServedMethods, era: Era): Promise<Peer> {
  const server = new Server(
    { ...info },
    {
      capabilities,
      supportedProtocolVersions: [...revisions],
      ...(instructions === undefined ? {} : { instructions }),
    },
  )
  const anything = {
    '~standard': { version: 1 as const, vendor: 'test', validate: (value: unknown) => ({ value }) },
  }
  for (const [name, method] of methods)
    server.setRequestHandler(name, { params: anything }, async (params: unknown, { mcpReq }) => {
      const negotiated = server.getNegotiatedProtocolVersion()
      const call = {
        params: (params ?? {}) as MethodCall['params'],
        revision: isRevision(negotiated) ? negotiated : assumedRevision,
        signal: mcpReq.signal,
      }
      return method(call as MethodCall)
    })
  const wire = new Wire({ classification: era === 'modern' ? { era, revision: modernRevision } : { era } })
  let taken = true
  server.onerror = () => {
    taken = false
  }
  await server.connect(wire)
  return {
    request: (message) =>
      new Promise((resolve) => {
        taken = true
        wire.waiting.set(message.id, resolve)
        wire.onmessage?.(message as JSONRPCMessage)
        if (!taken) resolve(undefined)
      }),
    notify: (method) => wire.onmessage?.({ jsonrpc: '2.0', method } as JSONRPCMessage),
    close: () => server.close(),
  }
}

/** The oracle is the official SDK's server: on each message, the protocol layer answers as it does. */

const meta = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': {},
  'io.modelcontextprotocol/clientInfo': { name: 'peer', version: '1' },
}

/** Repeats what it was given. */
const echo: Method = async ({ params, revision }) => ({ echoed: Object.keys(params).sort(), revision })

const served: ServedMethods = {
  server: { name: 'served', version: '1.2.3', title: 'Served' },
  capabilities: { resources: { subscribe: true, listChanged: true }, completions: {}, tools: {}, prompts: {} },
  instructions: 'Read what is listed.',
  methods: new Map<string, Method>([
    ['resources/list', async () => ({ resources: [] })],
    ['resources/templates/list', async () => ({ resourceTemplates: [], ttlMs: 5, cacheScope: 'public' })],
    ['resources/read', async () => ({ contents: [{ uri: 'x:/', text: '' }], _meta: { kept: true } })],
    ['resources/subscribe', async () => ({})],
    ['resources/unsubscribe', async () => ({})],
    ['resources/directory/read', async () => ({ resources: [] })],
    ['tools/list', async () => ({ tools: [] })],
    ['prompts/list', async () => ({ prompts: [] })],
    ['prompts/get', async () => ({ messages: [] })],
    ['completion/complete', async () => ({ completion: { values: [] } })],
    ['own/echo', echo],
    [
      'own/refuses',
      () => Promise.reject(new ProtocolError(wireErrorCodes.invalidParams, 'Not so.', { reason: 'test' })),
    ],
  ]),
}

const { view } = createCatalog({ mounts: [{ address: 'mem://x', provider: memory({ a: 'a' }) }] })
const opened: { close(): Promise<void> }[] = []

afterEach(async () => {
  for (const one of opened.splice(0)) await one.close()
})

async function openBoth(era: Era): Promise<{ readonly ours: Channel; readonly peer: Peer }> {
  const ours = openChannel(served, {
    era,
    view: view({ id: 'x', roles: [] }),
    log: () => {},
    scrubAnswer: (response) => response,
    timeoutMs: 60_000,
  })
  const peer = await openPeer(served, era)
  opened.push(ours, peer)
  return { ours, peer }
}

/** An answer without what is ours to say: the words of errors of the protocol itself. */
function comparable(response: Response | undefined): unknown {
  if (response === undefined || 'result' in response) return response
  const { code, data } = response.error
  return { id: response.id, code, ...(isObject(data) && 'reason' in data ? { data } : {}) }
}

const names = [
  ...served.methods.keys(),
  ...['initialized', 'ping', 'server/discover', 'subscriptions/listen', 'logging/setLevel', 'tools/call', 'tasks/get'],
  ...['nothing/here', '', 'toString', '__proto__', 'constructor', 'resources/READ'],
]

const ids = [0, 7, -1, 2 ** 53 - 1, '', '7', 'id', '__proto__']

describe('compared with the SDK, on 2026-07-28', () => {
  test.each(names)('the method %j gets the same result or error code', async (method) => {
    const { ours, peer } = await openBoth('modern')
    for (const id of ids) {
      const message: Request = { jsonrpc: '2.0', id, method, params: { a: 1, _meta: meta } }
      expect(comparable(await ours.request(message)), `${JSON.stringify(id)}`).toEqual(
        comparable(asHere(await peer.request(message))),
      )
    }
  })
})

/**
 * What differs on purpose. The SDK takes the envelope out of the params before a method sees them; here a method sees them as they
 * came. The SDK's `server/discover` names the newest revision alone; here it names each that is served.
 */
function asHere(response: Response | undefined): Response | undefined {
  if (response === undefined || !('result' in response)) return response
  const { echoed, supportedVersions } = response.result
  return {
    ...response,
    result: {
      ...response.result,
      ...(Array.isArray(echoed) ? { echoed: ['_meta', ...echoed].filter(unique).sort() } : {}),
      ...(supportedVersions === undefined ? {} : { supportedVersions: [...revisions] }),
    },
  }
}

const unique = <T>(value: T, at: number, all: readonly T[]) => all.indexOf(value) === at

describe.each([...revisions, '1999-01-01', '2099-01-01', ''])(
  'compared with the SDK, after an initialize with %j',
  (revision) => {
    const initialize: Request = {
      jsonrpc: '2.0',
      id: 'first',
      method: 'initialize',
      params: { protocolVersion: revision, capabilities: { roots: {} }, clientInfo: { name: 'peer', version: '1' } },
    }

    test('the negotiated revision and the server information are the same, apart from members that the revision lacks', async () => {
      const { ours, peer } = await openBoth('legacy')
      const answer = await ours.request(initialize)
      const expected = (await peer.request(initialize)) as Extract<Response, { readonly result: unknown }>
      const { protocolVersion } = expected.result as { readonly protocolVersion: string }
      const { capabilities, serverInfo } = expected.result as Record<string, Record<string, unknown>>
      // The SDK sends members to revisions that do not have them yet. Here they are left out (test/wire/schema.test.ts).
      const { completions: _, ...older } = capabilities ?? {}
      const { title: __, ...untitled } = serverInfo ?? {}
      expect(answer).toEqual({
        ...expected,
        result: {
          ...expected.result,
          capabilities: protocolVersion < '2025-03-26' ? older : capabilities,
          serverInfo: protocolVersion < '2025-06-18' ? untitled : serverInfo,
        },
      })
      expect(ours.revision).toBe(protocolVersion)
    })

    test.each(names)(
      'the method %j gets the same result or error code, or an error where the SDK does not answer',
      async (method) => {
        const { ours, peer } = await openBoth('legacy')
        for (const one of [ours, peer]) await one.request(initialize)
        ours.notify({ jsonrpc: '2.0', method: 'notifications/initialized' })
        peer.notify('notifications/initialized')
        for (const id of ids)
          for (const params of [
            undefined,
            {},
            { a: 1 },
            { _meta: { progressToken: 3 } },
            { _meta: { progressToken: {} } },
          ]) {
            const message: Request = { jsonrpc: '2.0', id, method, ...(params === undefined ? {} : { params }) }
            const expected = await peer.request(message)
            const answer = await ours.request(message)
            // The SDK drops what it cannot parse. Here every request is answered.
            if (expected === undefined) expect(answer).toMatchObject({ id, error: { code: expect.any(Number) } })
            else expect(comparable(answer), JSON.stringify(message)).toEqual(comparable(expected))
          }
      },
    )
  },
)
