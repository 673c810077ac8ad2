import { type JSONRPCMessage, PerRequestHTTPServerTransport, Server } from '@modelcontextprotocol/server'
import type { Request, Response } from '../../src/server/messages/messages.ts'
import { assumed, isRevision, modern, revisions } from '../../src/server/messages/messages.ts'
import type { Era, Served } from '../../src/server/protocol/channel.ts'
import type { Call } from '../../src/server/protocol/method.ts'

/** The server of the official SDK, with the same methods as a channel of hikidashi. */
export interface Peer {
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

export async function openPeer({ server: info, capabilities, instructions, methods }: Served, era: Era): Promise<Peer> {
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
        params: (params ?? {}) as Call['params'],
        revision: isRevision(negotiated) ? negotiated : assumed,
        signal: mcpReq.signal,
      }
      return method(call as Call)
    })
  const wire = new Wire({ classification: era === 'modern' ? { era, revision: modern } : { era } })
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
