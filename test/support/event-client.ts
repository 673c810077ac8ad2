import { type Message, type Params, withMeta } from '../attack/harness/wire.ts'

/** The answer to a request: its result, or its error. */
export interface Answered {
  readonly result?: Params
  readonly error?: { readonly code: number; readonly message: string; readonly data?: Params }
}

/** One event, as a client gets it. */
export interface WireEvent {
  readonly eventId: string
  readonly name: string
  readonly timestamp: string
  readonly data: Params
  readonly cursor?: string
}

export interface Polled {
  readonly events: readonly WireEvent[]
  readonly cursor: string
  readonly truncated: boolean
  readonly hasMore: boolean
  readonly nextPollMs: number
}

const headersOf = (method: string, token: string | undefined) => ({
  Accept: 'application/json, text/event-stream',
  'Content-Type': 'application/json',
  'MCP-Protocol-Version': '2026-07-28',
  'Mcp-Method': method,
  ...(token === undefined ? {} : { Authorization: `Bearer ${token}` }),
})

let next = 1

/** A client of events over HTTP, on 2026-07-28. */
export function eventClient(url: string, token?: string) {
  const post = (id: number, method: string, params: Params, signal?: AbortSignal) =>
    fetch(url, {
      method: 'POST',
      headers: headersOf(method, token),
      body: JSON.stringify({ jsonrpc: '2.0', id, method, params: withMeta(params, true) }),
      ...(signal === undefined ? {} : { signal }),
    })
  const ask = async (method: string, params: Params = {}): Promise<Answered> =>
    (await (await post(next++, method, params)).json()) as Answered
  return {
    ask,
    /** Polls; an error fails the test. */
    poll: async (params: Params): Promise<Polled> => {
      const { result, error } = await ask('events/poll', params)
      if (result === undefined) throw new Error(`the poll failed: ${JSON.stringify(error)}`)
      return result as unknown as Polled
    },
    /** Opens a stream, and collects its messages. */
    stream: async (params: Params) => {
      const id = next++
      const controller = new AbortController()
      const response = await post(id, 'events/stream', params, controller.signal)
      const heard: Message[] = []
      const isStream = response.headers.get('content-type') === 'text/event-stream'
      if (!isStream) heard.push((await response.json()) as Message)
      const ended = isStream ? collect(response, heard).catch(() => {}) : Promise.resolve()
      return {
        id,
        heard,
        isStream,
        ended,
        of: (kind: string) =>
          heard.flatMap(({ method, params: given }) =>
            method === `notifications/events/${kind}` ? [given as unknown as WireEvent & Params] : [],
          ),
        close: () => controller.abort(),
      }
    },
  }
}

async function collect(response: Response, heard: Message[]): Promise<void> {
  let rest = ''
  const decoder = new TextDecoder()
  for await (const chunk of response.body ?? []) {
    rest += decoder.decode(chunk, { stream: true })
    const blocks = rest.split('\n\n')
    rest = blocks.pop() ?? ''
    for (const block of blocks) {
      if (block.startsWith(':')) heard.push({ jsonrpc: '2.0', method: 'comment' } as Message)
      const data = /^data: (.*)$/m.exec(block)?.[1]
      if (data !== undefined) heard.push(JSON.parse(data) as Message)
    }
  }
}

/** Polls until a condition holds over all events so far. */
export async function pollUntil(
  client: ReturnType<typeof eventClient>,
  params: Params,
  from: string,
  isEnough: (events: readonly WireEvent[]) => boolean,
): Promise<{ readonly events: readonly WireEvent[]; readonly cursor: string; readonly truncated: boolean }> {
  const events: WireEvent[] = []
  let cursor = from
  let truncated = false
  for (let turn = 0; turn < 500; turn++) {
    const polled = await client.poll({ ...params, cursor })
    events.push(...polled.events)
    cursor = polled.cursor
    truncated ||= polled.truncated
    if (isEnough(events)) return { events, cursor, truncated }
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
  throw new Error(`the events did not come: ${JSON.stringify(events)}`)
}
