import { request as httpRequest, type IncomingMessage } from 'node:http'
import { PassThrough } from 'node:stream'
import { type HttpService, serveHttp, serveStdio } from '../../src/server/index.ts'
import type { SchemaRevision } from './wire-schema.ts'
import type { Served } from './wire-served.ts'

export type Json = Readonly<Record<string, unknown>>

/** The connection of one client to a server: it sends bodies unchanged, and parses every received message. */
export interface Pipe {
  /** Sends a body, and returns the messages up to its answer. */
  send(body: string, headers?: Json): Promise<readonly unknown[]>
  /** Sends a body without an answer; waits, and returns the messages of that time. */
  tell(body: string, wait?: number): Promise<readonly unknown[]>
  close(): Promise<void>
}

const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms))

/** A queue of received messages, of which one reader at a time waits for the next answer. */
function createInbox() {
  const messages: unknown[] = []
  let wake = () => {}
  const isAnswer = (message: unknown) => Array.isArray(message) || !('method' in (message as Json))
  return {
    put: (message: unknown) => {
      messages.push(message)
      wake()
    },
    untilAnswer: async (): Promise<readonly unknown[]> => {
      for (;;) {
        const at = messages.findIndex(isAnswer)
        if (at !== -1) return messages.splice(0, at + 1)
        await new Promise<void>((resolve) => {
          wake = resolve
        })
      }
    },
    all: () => messages.splice(0),
  }
}

export function stdioPipe(served: Served): Pipe {
  const input = new PassThrough()
  const output = new PassThrough()
  const inbox = createInbox()
  let rest = ''
  output.setEncoding('utf8').on('data', (text: string) => {
    const lines = (rest + text).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) inbox.put(JSON.parse(line))
  })
  const ended = serveStdio({ ...served.options, input, output, grace: 500 })
  return {
    send: (body) => {
      input.write(`${body}\n`)
      return inbox.untilAnswer()
    },
    tell: async (body, wait = 50) => {
      input.write(`${body}\n`)
      await pause(wait)
      return inbox.all()
    },
    close: async () => {
      input.end()
      await ended
      if (rest !== '') throw new Error('the last line has no end')
    },
  }
}

export interface HttpPipe extends Pipe {
  /** Sends another HTTP request, and returns its body if it is JSON. */
  fetch(method: string, path: string, body: string | undefined, headers: Json): Promise<readonly unknown[]>
}

export async function httpPipe(served: Served, revision: SchemaRevision): Promise<HttpPipe> {
  const service = await serveHttp({
    ...served.options,
    host: '127.0.0.1',
    port: 0,
    sse: true,
    limits: { drain: 200, body: 100_000 },
  })
  const fetch: HttpPipe['fetch'] = async (method, path, body, headers) =>
    messagesOf(await exchange(new URL(path, service.url), method, body, headers))
  const pipe = revision === '2024-11-05' ? await ssePipe(service) : streamablePipe(service, revision)
  return {
    ...pipe,
    fetch,
    close: async () => {
      await pipe.close()
      await service.close()
    },
  }
}

function streamablePipe({ url }: HttpService, revision: SchemaRevision): Pipe {
  let session: Json = {}
  const post = async (body: string, headers: Json, patience?: number) => {
    const said = revision === '2026-07-28' ? modernHeaders(body) : session
    const reply = await exchange(new URL(url), 'POST', body, { ...said, ...headers }, patience)
    const id = reply?.headers['mcp-session-id']
    if (typeof id === 'string') session = { 'Mcp-Session-Id': id, 'MCP-Protocol-Version': revision }
    return messagesOf(reply)
  }
  return {
    send: (body, headers = {}) => post(body, headers),
    // In the newest revision closing the connection cancels; in the others a message does.
    tell: (body, wait = 50) => post(body, {}, wait),
    close: async () => {},
  }
}

async function ssePipe({ url }: HttpService): Promise<Pipe> {
  const inbox = createInbox()
  let told = (_endpoint: string) => {}
  const endpoint = new Promise<string>((resolve) => {
    told = resolve
  })
  const stream = httpRequest(new URL('/sse', url), { agent: false }, (response) => {
    let rest = ''
    response.setEncoding('utf8').on('data', (text: string) => {
      const events = (rest + text).split('\n\n')
      rest = events.pop() ?? ''
      for (const event of events.map(dataOf))
        if (event?.startsWith('/')) told(event)
        else if (event !== undefined) inbox.put(JSON.parse(event))
    })
  })
  stream.on('error', () => {})
  stream.end()
  const to = new URL(await endpoint, url)
  return {
    send: async (body) => {
      const refused = messagesOf(await exchange(to, 'POST', body, {}))
      return refused.length > 0 ? refused : inbox.untilAnswer()
    },
    tell: async (body, wait = 50) => {
      await exchange(to, 'POST', body, {})
      await pause(wait)
      return inbox.all()
    },
    close: async () => {
      stream.destroy()
    },
  }
}

/** Returns the headers that repeat the body (2026-07-28, standard request headers). */
function modernHeaders(body: string): Json {
  const always = { 'MCP-Protocol-Version': '2026-07-28' }
  try {
    const { method, params } = JSON.parse(body) as { method?: string; params?: { uri?: unknown; name?: unknown } }
    const name = method === 'resources/read' ? params?.uri : method === 'prompts/get' ? params?.name : undefined
    return {
      ...always,
      ...(method === undefined ? {} : { 'Mcp-Method': method }),
      ...(typeof name === 'string' ? { 'Mcp-Name': name } : {}),
    }
  } catch {
    return always
  }
}

interface Reply {
  readonly headers: IncomingMessage['headers']
  readonly text: string
}

/** @param patience The client disconnects after this time, in milliseconds, without a reply. */
function exchange(url: URL, method: string, body: string | undefined, headers: Json, patience?: number) {
  return new Promise<Reply | undefined>((resolve, reject) => {
    const base = body === undefined ? {} : { 'Content-Type': 'application/json' }
    const all = { ...base, Accept: 'application/json, text/event-stream', ...headers } as Record<string, string>
    const sent = httpRequest(url, { method, headers: all, agent: false }, (response) => {
      let text = ''
      response.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk
      })
      response.on('end', () => resolve({ headers: response.headers, text }))
    })
    sent.on('error', patience === undefined ? reject : () => resolve(undefined))
    sent.end(body)
    if (patience !== undefined) setTimeout(() => sent.destroy(), patience)
  })
}

function messagesOf(reply: Reply | undefined): readonly unknown[] {
  if (reply === undefined || reply.text === '') return []
  if (reply.headers['content-type'] === 'application/json') return [JSON.parse(reply.text)]
  const events = reply.text.split('\n\n').map(dataOf)
  return events.filter((data) => data !== undefined).map((data) => JSON.parse(data) as unknown)
}

/** Returns the data of an event; a comment has none. */
function dataOf(event: string): string | undefined {
  return /^data: (.*)$/m.exec(event)?.[1]
}
