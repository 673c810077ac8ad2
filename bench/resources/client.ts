/** The revisions of the requests: one with a session, and one without. */
export type Revision = '2025-11-25' | '2026-07-28'

const clientInfo = { name: 'bench', version: '1' }
const meta = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': clientInfo,
  'io.modelcontextprotocol/clientCapabilities': {},
}

/** The headers and the body of an HTTP request. */
export interface Sent {
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** A client of one server, without a library, so that the server alone is measured. */
export interface Client {
  /** Returns a request with this id, for a load generator. */
  sent(method: string, params: Readonly<Record<string, unknown>>, id: string | number): Sent
  /** Sends a request, and returns its result. @throws Error for any other answer. */
  call(method: string, params: Readonly<Record<string, unknown>>): Promise<Record<string, unknown>>
  /** Opens a stream with notifications of changes of these URIs. Resolves once all are subscribed. */
  listen(uris: readonly string[], heard: (uri: string) => void): Promise<void>
  /** Ends the streams. */
  close(): void
}

export async function connect(url: string, revision: Revision, token?: string): Promise<Client> {
  const open = new AbortController()
  const authorized = token === undefined ? {} : { authorization: `Bearer ${token}` }
  const base = { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...authorized }
  let session: Readonly<Record<string, string>> = {}

  const sent = (method: string, params: Readonly<Record<string, unknown>>, id: string | number): Sent => {
    const isModern = revision === '2026-07-28'
    const name = params.uri ?? (params.ref as { uri?: string } | undefined)?.uri
    const named = typeof name === 'string' && method === 'resources/read' ? { 'mcp-name': name } : {}
    return {
      headers: { ...base, ...session, ...(isModern ? { 'mcp-method': method, ...named } : {}) },
      body: JSON.stringify({ jsonrpc: '2.0', id, method, params: isModern ? { ...params, _meta: meta } : params }),
    }
  }
  const post = (request: Sent) =>
    fetch(url, { method: 'POST', headers: request.headers, body: request.body, signal: open.signal })
  // Start far above the ids of the load generator, of which some may still be in flight.
  let lastId = 1_000_000
  const call: Client['call'] = async (method, params) => {
    const id = ++lastId
    const response = await post(sent(method, params, id))
    const text = await response.text()
    const answer = resultIn(text, response.headers.get('content-type') ?? '', id)
    if (answer?.result === undefined) throw new Error(`${method} at ${url}: ${response.status} ${text.slice(0, 500)}`)
    return answer.result
  }

  if (revision === '2026-07-28') session = { 'mcp-protocol-version': revision }
  else {
    const request = sent('initialize', { protocolVersion: revision, capabilities: {}, clientInfo }, lastId)
    const response = await post(request)
    const id = response.headers.get('mcp-session-id')
    const answer = resultIn(await response.text(), response.headers.get('content-type') ?? '', lastId)
    if (answer?.result === undefined) throw new Error(`${url} was not initialized.`)
    session = { 'mcp-protocol-version': revision, ...(id === null ? {} : { 'mcp-session-id': id }) }
    const told = JSON.stringify({ jsonrpc: '2.0', method: 'notifications/initialized' })
    await (await fetch(url, { method: 'POST', headers: { ...base, ...session }, body: told })).arrayBuffer()
  }
  return {
    sent,
    call,
    listen: async (uris, heard) => {
      const request =
        revision === '2026-07-28'
          ? {
              method: 'POST',
              ...sent('subscriptions/listen', { notifications: { resourceSubscriptions: uris } }, ++lastId),
            }
          : { method: 'GET', headers: { ...session, accept: 'text/event-stream' } }
      const response = await fetch(url, { ...request, signal: open.signal })
      if (!response.ok || response.body === null) throw new Error(`${url} opens no stream: ${response.status}`)
      const { body } = response
      const acknowledged = new Promise<void>((resolve) => {
        const each = (message: string) => {
          if (message.includes('subscriptions/acknowledged')) resolve()
          const uri = message.includes('resources/updated') ? /"uri":"([^"]+)"/.exec(message)?.[1] : undefined
          if (uri !== undefined) heard(uri)
        }
        // The stream ends when the client is closed.
        void follow(body, each).catch(() => {})
      })
      if (revision === '2026-07-28') return acknowledged
      for (const uri of uris) await call('resources/subscribe', { uri })
    },
    close: () => open.abort(),
  }
}

interface Answer {
  readonly id?: unknown
  readonly result?: Record<string, unknown>
}

/** Finds the answer in a body: the JSON itself, or the event with the id of the request. */
function resultIn(text: string, type: string, asked: number): Answer | undefined {
  if (!type.includes('event-stream')) return text === '' ? undefined : (JSON.parse(text) as Answer)
  const events = text.split('\n').flatMap((line) => (/^data:\s*\S/.test(line) ? [line.slice(5)] : []))
  return events.map((event) => JSON.parse(event) as Answer).find(({ id }) => id === asked)
}

async function follow(body: ReadableStream<Uint8Array>, each: (event: string) => void): Promise<void> {
  let rest = ''
  for await (const chunk of body.pipeThrough(new TextDecoderStream())) {
    const events = (rest + chunk).split('\n\n')
    rest = events.pop() ?? ''
    events.forEach(each)
  }
}
