import type { Agent, ClientRequest } from 'node:http'
import { clientInfo, type Ear, type Json, type Link, type Message, requestOf } from './link.ts'
import { httpRequest, openEvents } from './link-http.ts'

const revision = '2024-11-05'

interface Waiting {
  readonly resolve: (answer: Message) => void
  readonly reject: (error: Error) => void
}

/**
 * A connection over HTTP+SSE (2024-11-05): one stream of events for all answers and notifications, and one POST for each message.
 *
 * @param base The address of the server, with any path.
 * @param by Called with the address of the server that answers with the stream, where a proxy tells it.
 * @param token The token of the client, where the server wants one.
 */
export async function openSse(
  base: string,
  agent: Agent,
  by: (upstream: string) => void = () => {},
  token?: string,
): Promise<Link> {
  const authorization: Readonly<Record<string, string>> =
    token === undefined ? {} : { Authorization: `Bearer ${token}` }
  const waiting = new Map<unknown, Waiting>()
  const posting = new Set<ClientRequest>()
  let ear: Ear | undefined
  let over = false
  let count = 0

  const lose = (): void => {
    over = true
    for (const { reject } of waiting.values()) reject(new Error('the stream is gone'))
    waiting.clear()
    for (const one of posting) one.destroy()
  }
  const take = (message: Message): void => {
    if (message.method !== undefined) {
      ear?.hear(message)
      return
    }
    const asked = waiting.get(message.id)
    waiting.delete(message.id)
    asked?.resolve(message)
  }
  let announce: (address: string) => void = () => {}
  let refuse: (error: Error) => void = () => {}
  const announced = new Promise<string>((resolve, reject) => {
    announce = resolve
    refuse = reject
  })
  const ended = (): void => {
    lose()
    refuse(new Error('no session began'))
    ear?.ended('cut')
  }
  const accept = { Accept: 'text/event-stream', ...authorization }
  const events = openEvents(new URL('/sse', base).href, 'GET', accept, undefined, take, ended, by, announce)
  const endpoint = new URL(await announced, base).href

  const post = (body: Json): Promise<void> =>
    new Promise((resolve, reject) => {
      if (over) return reject(new Error('the client hung up'))
      const headers = { 'Content-Type': 'application/json', ...authorization }
      const sent = httpRequest(endpoint, { method: 'POST', agent, headers }, (response) => {
        response.resume()
        response.on('close', () => {
          posting.delete(sent)
          if (response.statusCode === 202) resolve()
          else reject(new Error(`the message was not taken: ${response.statusCode}`))
        })
        response.on('error', reject)
      })
      posting.add(sent)
      sent.on('error', reject)
      sent.end(JSON.stringify(body))
    })
  const ask: Link['ask'] = (method, params) =>
    new Promise((resolve, reject) => {
      const id = count++
      waiting.set(id, { resolve, reject })
      post(requestOf(id, method, params, false)).catch((error: Error) => {
        waiting.delete(id)
        reject(error)
      })
    })

  const close = (): void => {
    events.destroy()
    lose()
  }
  try {
    await ask('initialize', { protocolVersion: revision, capabilities: {}, clientInfo })
    await post({ jsonrpc: '2.0', method: 'notifications/initialized' })
  } catch (error) {
    close()
    throw error
  }
  return {
    modern: false,
    resumable: false,
    ordered: false,
    ask,
    listen: (_notifications, told) => {
      ear = told
      // The stream ended before somebody listened.
      if (over) queueMicrotask(() => told.ended('cut'))
      return { close }
    },
    resume: async () => {},
    stall: () => events.pause(),
    flow: () => events.resume(),
    close,
  }
}
