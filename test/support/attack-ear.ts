import { type ClientRequest, request } from 'node:http'
import { isStdio } from './attack-arena.ts'
import { modernHeaders, sessionHeaders } from './attack-http.ts'
import { until } from './attack-target.ts'
import { type Message, type Params, patience, type Wire, withMeta } from './attack-wire.ts'

/** A subscriber to changes over a wire, with the method of its transport and revision. */
export interface Ear {
  /** The accepted URIs: acknowledged, or answered without an error. */
  readonly honoured: readonly string[]
  /** Every notification so far, the acknowledgement included. */
  readonly heard: readonly Message[]
  /** The URIs that were reported as changed, in order. */
  updates(): readonly string[]
  /** Number of notifications of a changed list. */
  lists(): number
  forget(): void
  /** Waits until each of these URIs was reported. */
  until(...uris: readonly string[]): Promise<void>
  close(): Promise<void>
}

const subscriptionId = 'io.modelcontextprotocol/subscriptionId'
let next = 1

/** Number of subscribers so far: the last one has the id `ear-N`. */
export const ears = () => next - 1

/** Subscribes to URIs; on 2026-07-28 to the list only if requested. */
export async function listen(wire: Wire, uris: readonly string[], list = false): Promise<Ear> {
  const heard: Message[] = []
  const opened = await (wire.modern ? listenModern(wire, uris, list, heard) : listenLegacy(wire, uris, heard))
  const told = (method: string) => heard.filter((message) => message.method === `notifications/resources/${method}`)
  const updates = () => told('updated').map(({ params }) => String(params?.uri))
  return {
    ...opened,
    heard,
    updates,
    lists: () => told('list_changed').length,
    forget: () => void heard.splice(0),
    until: async (...wanted) => {
      const missing = () => wanted.filter((uri) => !updates().includes(uri))
      const left = await until(missing, ({ length }) => length === 0, patience)
      if (left.length > 0) throw new Error(`not told over ${wire.name}: ${left.map((uri) => uri.slice(0, 200))}`)
    },
  }
}

interface Honoured {
  readonly resourceSubscriptions?: readonly string[]
}

type Opened = Pick<Ear, 'honoured' | 'close'>

async function listenModern(wire: Wire, uris: readonly string[], list: boolean, heard: Message[]): Promise<Opened> {
  const id = `ear-${next++}`
  const params = listenParams(uris, list)
  const isMine = ({ params: given }: Message) => (given?._meta as Params | undefined)?.[subscriptionId] === id
  const take = (message: Message) => void (isMine(message) && heard.push(message))
  let close: () => Promise<void>
  if (isStdio(wire)) {
    const untap = wire.pipe.tap(take)
    await wire.pipe.write(`${JSON.stringify({ jsonrpc: '2.0', id, method: 'subscriptions/listen', params })}\n`)
    close = async () => {
      await wire.notify('notifications/cancelled', { requestId: id })
      untap()
    }
  } else {
    const stream = openStream(wire, { method: 'POST', id, params }, take)
    close = async () => void stream.destroy()
  }
  const acknowledged = () => heard.find(({ method }) => method === 'notifications/subscriptions/acknowledged')
  const first = await until(acknowledged, (message) => message !== undefined, patience)
  if (first === undefined) throw new Error(`not acknowledged over ${wire.name}`)
  const { resourceSubscriptions = [] } = (first.params?.notifications ?? {}) as Honoured
  return { honoured: resourceSubscriptions, close }
}

async function listenLegacy(wire: Wire, uris: readonly string[], heard: Message[]): Promise<Opened> {
  const take = (message: Message) => void heard.push(message)
  const stream = isStdio(wire) ? undefined : openStream(wire, { method: 'GET' }, take)
  const untap = isStdio(wire) ? wire.pipe.tap(take) : undefined
  const answers = await Promise.all(uris.map((uri) => wire.call('resources/subscribe', { uri })))
  const honoured = uris.filter((_, i) => answers[i]?.message?.result !== undefined)
  return {
    honoured,
    close: async () => {
      await Promise.all(honoured.map((uri) => wire.call('resources/unsubscribe', { uri })))
      untap?.()
      stream?.destroy()
    },
  }
}

export const listenParams = (uris: readonly string[], list = false): Params =>
  withMeta({ notifications: { resourceSubscriptions: uris, ...(list ? { resourcesListChanged: true } : {}) } }, true)

export interface StreamRequest {
  readonly method: 'GET' | 'POST'
  readonly id?: string | number
  readonly params?: Params
  readonly headers?: Readonly<Record<string, string>>
  /** Called with the id of each event that has one. */
  readonly onId?: (id: string) => void
}

/** Opens an event stream, and passes on each message. The caller destroys it. */
export function openStream(wire: Wire, asked: StreamRequest, take: (message: Message) => void): ClientRequest {
  const { method, id, params, headers = {}, onId = () => {} } = asked
  const own = method === 'POST' ? modernHeaders('subscriptions/listen', {}) : { accept: 'text/event-stream' }
  const all = { ...own, ...(wire.modern ? {} : sessionHeaders(wire)), ...headers }
  const sent = request(wire.target.url as URL, { method, agent: false, headers: all }, (response) => {
    let rest = ''
    response.on('error', () => {})
    response.on('data', (chunk: Buffer) => {
      wire.world.canaries.see(chunk, 'http')
      const events = (rest + chunk.toString()).split('\n\n')
      rest = events.pop() ?? ''
      for (const event of events) {
        const data = /^data: (.*)$/m.exec(event)?.[1]
        const eventId = /^id: (.*)$/m.exec(event)?.[1]
        if (eventId !== undefined) onId(eventId)
        if (data !== undefined) take(JSON.parse(data) as Message)
      }
    })
  })
  sent.on('error', () => {})
  sent.end(
    method === 'GET' ? undefined : JSON.stringify({ jsonrpc: '2.0', id, method: 'subscriptions/listen', params }),
  )
  return sent
}
