import { type Agent, type ClientRequest, type IncomingMessage, request as plainRequest } from 'node:http'
import { request as secureRequest } from 'node:https'
import { authority } from '../support/database-tls.ts'
import { upstreamHeader } from '../support/reverse-proxy.ts'
import { clientInfo, type Ear, type Json, type Link, type Message, newest, requestOf } from './link.ts'

export interface Opened {
  pause(): void
  resume(): void
  destroy(): void
}

interface Answer {
  readonly text: string
  readonly status: number
  readonly headers: IncomingMessage['headers']
}

interface Sent {
  readonly method: string
  readonly agent: Agent | false
  readonly headers: Readonly<Record<string, string>>
}

/** Sends a request, over TLS where the URL says so. */
export function httpRequest(url: string, { agent, ...sent }: Sent, answered: (response: IncomingMessage) => void) {
  if (!url.startsWith('https:')) return plainRequest(url, { agent, ...sent }, answered)
  return secureRequest(url, { agent, ca: authority, ...sent }, answered)
}

/** Opens a stream of events. `take` gets the id and the message of each, `endpoint` the address of HTTP+SSE. */
export function openEvents(
  url: string,
  method: 'GET' | 'POST',
  headers: Readonly<Record<string, string>>,
  body: string | undefined,
  take: (message: Message, id: string | undefined) => void,
  ended: () => void,
  by: (upstream: string) => void,
  endpoint: (address: string) => void = () => {},
): Opened {
  let response: IncomingMessage | undefined
  let paused = false
  let over = false
  const end = () => {
    if (!over) ended()
    over = true
  }
  const sent: ClientRequest = httpRequest(url, { method, agent: false, headers }, (incoming) => {
    response = incoming
    let rest = ''
    const upstream = incoming.headers[upstreamHeader]
    if (typeof upstream === 'string') by(upstream.split(', ').at(-1) ?? '')
    // A stream that is refused never was one.
    if (method === 'GET' && incoming.statusCode !== 200) {
      incoming.resume()
      return end()
    }
    incoming.setEncoding('utf8').on('data', (chunk: string) => {
      const events = (rest + chunk).split('\n\n')
      rest = events.pop() ?? ''
      for (const event of events) {
        const data = /^data: (.*)$/m.exec(event)?.[1]
        if (data === undefined || over) continue
        if (/^event: endpoint$/m.test(event)) endpoint(data)
        else take(JSON.parse(data) as Message, /^id: (.*)$/m.exec(event)?.[1])
      }
    })
    incoming.on('close', () => {
      // An answer that is no stream is one message.
      if (!over && rest.startsWith('{')) take(JSON.parse(rest) as Message, undefined)
      end()
    })
    incoming.on('error', end)
    if (paused) incoming.pause()
  })
  sent.on('error', end)
  sent.end(body)
  return {
    pause: () => {
      paused = true
      response?.pause()
    },
    resume: () => {
      paused = false
      response?.resume()
    },
    destroy: () => {
      over = true
      sent.destroy()
    },
  }
}

/**
 * A connection over HTTP: one POST for each request, and a stream for what is told.
 *
 * @param by Called with the address of the server that answers with a stream, where a proxy tells it.
 * @param token The token of the client, where the server wants one.
 */
export async function openHttp(
  url: string,
  agent: Agent,
  revision: string,
  by: (upstream: string) => void = () => {},
  token?: string,
): Promise<Link> {
  const authorization: Readonly<Record<string, string>> =
    token === undefined ? {} : { Authorization: `Bearer ${token}` }
  const accept = { Accept: 'application/json, text/event-stream', ...authorization }
  const json = { 'Content-Type': 'application/json', ...accept }
  const modern = revision === newest
  const streams = new Set<Opened>()
  const asking = new Set<ClientRequest>()
  let session: Readonly<Record<string, string>> = {}
  let count = 0
  let stalled = false
  let over = false
  let last: string | undefined
  let told: { readonly ear: Ear; readonly opened: Opened } | undefined

  const headersOf = (method: string, params: Json): Readonly<Record<string, string>> => {
    const named = method === 'resources/read' ? { 'Mcp-Name': String(params.uri) } : {}
    return modern
      ? { ...json, 'MCP-Protocol-Version': newest, 'Mcp-Method': method, ...named }
      : { ...json, ...session }
  }
  const post = (headers: Readonly<Record<string, string>>, body: object) =>
    new Promise<Answer>((resolve, reject) => {
      if (over) return reject(new Error('the client hung up'))
      const sent: ClientRequest = httpRequest(url, { method: 'POST', agent, headers }, (response) => {
        let text = ''
        response.setEncoding('utf8').on('data', (chunk: string) => {
          text += chunk
        })
        response.on('close', () => {
          asking.delete(sent)
          const { statusCode: status = 0 } = response
          // A session that is not known there is over: the client begins a new one.
          if (status === 404 && 'Mcp-Session-Id' in headers) reject(new Error('the session is gone'))
          else if (response.complete) resolve({ text, status, headers: response.headers })
          else reject(new Error('the answer broke off'))
        })
        response.on('error', reject)
      })
      asking.add(sent)
      sent.on('error', reject)
      sent.end(JSON.stringify(body))
    })
  const open = (opened: Opened): Opened => {
    streams.add(opened)
    if (stalled) opened.pause()
    return opened
  }
  const attach = (ear: Ear): void => {
    const more: Record<string, string> = last === undefined ? {} : { 'Last-Event-ID': last }
    const take = (message: Message, id: string | undefined) => {
      last = id ?? last
      ear.hear(message)
    }
    const opened = openEvents(
      url,
      'GET',
      { ...accept, ...session, ...more },
      undefined,
      take,
      () => ear.ended('cut'),
      by,
    )
    told = { ear, opened: open(opened) }
  }

  const link: Link = {
    modern,
    resumable: !modern,
    ordered: false,
    ask: async (method, params) => {
      const { text } = await post(headersOf(method, params), requestOf(count++, method, params, modern))
      // Of a stream, the answer is the last.
      const [data] = [...text.matchAll(/^data: (.*)$/gm)].slice(-1)
      return JSON.parse(data?.[1] ?? text) as Message
    },
    listen: (notifications, ear) => {
      if (!modern) {
        attach(ear)
        return { close: () => told?.opened.destroy() }
      }
      const request = requestOf(`listen-${count++}`, 'subscriptions/listen', { notifications }, true)
      let result = false
      const take = (message: Message) => {
        if (message.method === undefined) result = message.result !== undefined
        else ear.hear(message)
      }
      const ended = () => ear.ended(result ? 'result' : 'cut')
      const headers = headersOf('subscriptions/listen', {})
      const opened = open(openEvents(url, 'POST', headers, JSON.stringify(request), take, ended, by))
      return { close: () => opened.destroy() }
    },
    resume: async () => {
      if (told === undefined) return
      const { ear, opened } = told
      opened.destroy()
      streams.delete(opened)
      // The session has one such stream at a time; the server may not have noticed yet, and then it goes by the id.
      if (last === undefined) await new Promise((resolve) => setTimeout(resolve, 50))
      attach(ear)
    },
    stall: () => {
      stalled = true
      for (const one of streams) one.pause()
    },
    flow: () => {
      stalled = false
      for (const one of streams) one.resume()
    },
    close: () => {
      over = true
      for (const one of streams) one.destroy()
      for (const one of asking) one.destroy()
    },
  }
  if (!modern) {
    const params = { protocolVersion: revision, capabilities: {}, clientInfo }
    const answer = await post(json, requestOf(count++, 'initialize', params, false))
    if (answer.status !== 200) throw new Error(`no session began: ${answer.status}`)
    session = { 'Mcp-Session-Id': String(answer.headers['mcp-session-id']), 'MCP-Protocol-Version': revision }
    await post(headersOf('', {}), { jsonrpc: '2.0', method: 'notifications/initialized' })
  }
  return link
}
