import { createHmac } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import type { IncomingHttpHeaders } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import type { Params } from '../attack/harness/wire.ts'

const folder = join(import.meta.dirname, '../fixtures/tls')
const pem = (name: string) => readFileSync(join(folder, name), 'utf8')

/** The authority that has signed the certificate of the endpoint. */
export const endpointCa = pem('ca.pem')

export interface Received {
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly raw: string
  readonly body: Params
}

/** How a path answers: a status and a body. Undefined: it repeats a challenge, and takes every message. */
export type Behave = (
  received: Received,
  nth: number,
) => { status: number; body?: string; location?: string } | undefined

/** An endpoint of webhooks over https, which keeps what it receives. */
export async function startEndpoint(behave: Behave = () => undefined) {
  const received: Received[] = []
  const server = createServer({ key: pem('server.key'), cert: pem('server.pem') }, async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk)
    const raw = Buffer.concat(chunks).toString()
    const one = { path: request.url ?? '', headers: request.headers, raw, body: JSON.parse(raw) as Params }
    received.push(one)
    const { challenge } = one.body
    const usual = { status: 200, body: JSON.stringify(challenge === undefined ? {} : { challenge }) }
    const { status, body = '{}', location } = { location: undefined, ...(behave(one, received.length) ?? usual) }
    response.writeHead(status, location === undefined ? {} : { Location: location }).end(body)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    url: `https://localhost:${port}/hook`,
    port,
    received,
    events: () => received.filter(({ body }) => body.type === undefined),
    controls: (type: string) => received.filter(({ body }) => body.type === type),
    close: async () => {
      server.closeAllConnections()
      server.close()
    },
  }
}

/** Whether one of the signatures of a message is that of a secret. */
export function isSigned({ headers, raw }: Received, secret: string): boolean {
  const key = Buffer.from(secret.slice('whsec_'.length), 'base64')
  const text = `${headers['webhook-id']}.${headers['webhook-timestamp']}.${raw}`
  const expected = `v1,${createHmac('sha256', key).update(text).digest('base64')}`
  return String(headers['webhook-signature']).split(' ').includes(expected)
}
