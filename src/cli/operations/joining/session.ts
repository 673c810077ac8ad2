import type { Socket } from 'node:net'
import { PassThrough, type Readable, type Writable } from 'node:stream'
import { createAutoResetEvent } from '../../../core/kit/abort.ts'
import { createStreamWriter, readLines, resumedMethod } from '../../../server/stdio/lines.ts'
import { type PassedMessage, parseMessages } from './messages.ts'
import { connectToSocket, type GreetedConnection, joinTimings } from './socket.ts'

const maxLineBytes = { server: 64 * 1024 * 1024, client: 4 * 1024 * 1024 }
/**
 * After this number of servers have ended during a request, the request gets an error and is not sent again: it may be
 * the cause.
 */
const maxServers = 2

/** Keeps requests without an answer, by the JSON of their ids. */
function createRequests() {
  const pending = new Map<string, string>()
  /** The number of servers that a request was sent to, by its id. */
  const sent = new Map<string, number>()
  /** The ids of streams of changes (2026-07-28) that a server has confirmed. */
  const confirmed = new Set<string>()
  const send = (id: string): void => void sent.set(id, (sent.get(id) ?? 0) + 1)
  const forget = (id: string): void => {
    pending.delete(id)
    sent.delete(id)
    confirmed.delete(id)
  }
  /** Returns the answer to a request whose server has ended; `undefined` if the request is sent to another server. */
  const lastAnswer = (key: string): object | undefined => {
    const servers = sent.get(key) ?? 0
    // Changes may have been missed. When the stream ends, a client opens another one, and reads again what it follows.
    if (confirmed.has(key)) return { result: { resultType: 'complete', _meta: { [streamKey]: JSON.parse(key) } } }
    if (servers > 0 && callsOtherTool(pending.get(key) ?? '')) return { error: unknownEffect }
    return servers >= maxServers ? { error: repeatedEnd } : undefined
  }
  return { pending, confirmed, send, forget, lastAnswer }
}

/** Keeps the messages that set up a session, for another server: initialization, log level, open subscriptions. */
function createOpening() {
  const lines = new Map<string, string>()
  /** The ids of requests that were sent again to set up another server. The client already has their answers. */
  const repeated = new Set<string>()
  return {
    take: ({ method = '', params }: PassedMessage, line: string): void => {
      const subscribed = `subscribed ${String(params?.uri)}`
      if (method === 'initialize' || method === 'notifications/initialized' || method === 'logging/setLevel')
        lines.set(method, line)
      else if (method === 'resources/subscribe') lines.set(subscribed, line)
      else if (method === 'resources/unsubscribe') lines.delete(subscribed)
    },
    hasSubscriptions: () => [...lines.keys()].some((name) => name.startsWith('subscribed ')),
    /** Returns the kept messages, without requests that are still pending: those are sent again anyway. */
    linesBut: (pending: readonly string[]): readonly string[] => {
      const again = [...lines.values()].filter((line) => !pending.includes(line))
      for (const { id } of again.flatMap(parseMessages)) if (id !== undefined) repeated.add(JSON.stringify(id))
      return again
    },
    /** Whether the client already has the answer to a request. Forgets the request. */
    takesAnswer: (id: string): boolean => repeated.delete(id),
  }
}

/**
 * Closes the socket of a server that stops greeting new connections while its client waits. `end` returns whether this
 * has happened.
 */
function watchServer(socket: Socket, path: string, isWaiting: () => boolean) {
  let isStuck = false
  const timer = setInterval(async () => {
    if (!isWaiting()) return
    const probe = await connectToSocket(path, joinTimings.laterMs)
    if (typeof probe !== 'string') probe.socket.destroy()
    else if (probe === 'unusable') {
      isStuck = true
      socket.destroy()
    }
  }, joinTimings.everyMs)
  return {
    end: () => {
      clearInterval(timer)
      return isStuck
    },
  }
}

/** The session of a client, which continues with another server when its server has ended. */
export function createRelaySession() {
  const writer = createStreamWriter(process.stdout)
  const stop = new AbortController()
  const end = () => stop.abort()
  process.once('SIGTERM', end).once('SIGINT', end)
  const opening = createOpening()
  const requests = createRequests()
  const { pending, confirmed, forget } = requests
  let hasEnded = false
  let server: Writable | undefined
  let cursorSecret = ''
  const flow = createAutoResetEvent()
  let tell = () => {}

  const take = (line: string): void => {
    const messages = parseMessages(line)
    for (const message of messages) {
      const { id, method = '', params } = message
      opening.take(message, line)
      if (method === 'notifications/cancelled') forget(JSON.stringify(params?.requestId))
      if (id === undefined || method === '') continue
      pending.set(JSON.stringify(id), line)
      if (server !== undefined) requests.send(JSON.stringify(id))
    }
    server?.write(`${line}\n`)
  }
  const drained = async () => {
    while (server?.writableNeedDrain === true && !server.destroyed) await flow.wait()
  }
  const write = (message: object) =>
    writer.write(() => `${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`).catch(end)
  const pump = async () => {
    for await (const lines of readLines(process.stdin, maxLineBytes.client, stop.signal))
      for (const line of lines) {
        if (line === 'too-long') await write({ id: null, error: tooLong })
        else take(decodeUtf8(line))
        await drained()
      }
    hasEnded = true
    tell()
  }
  void pump()

  /** Sends to a new server the messages that set up the session, and then the requests without an answer. */
  const resume = (to: Writable) => {
    to.on('drain', flow.set).on('close', flow.set)
    const again = opening.linesBut([...pending.values()])
    for (const line of again) to.write(`${line}\n`)
    if (again.length > 0) to.write(`${JSON.stringify({ jsonrpc: '2.0', method: resumedMethod })}\n`)
    for (const key of pending.keys()) {
      const answer = requests.lastAnswer(key)
      if (answer === undefined) continue
      void write({ id: JSON.parse(key), ...answer })
      forget(key)
    }
    for (const line of new Set(pending.values())) to.write(`${line}\n`)
    for (const id of pending.keys()) requests.send(id)
    server = to
    if (hasEnded) tell()
  }
  const give = async (line: Uint8Array): Promise<void> => {
    // Decoding the whole text of a large answer would take much memory.
    const head = decodeUtf8(line.subarray(0, maxHeadBytes))
    const [, id = '', of] = /^\{"jsonrpc":"2\.0","id":("(?:[^"\\]|\\.)*"|-?[\d.eE+-]+),"(\w+)"/.exec(head) ?? []
    const isAnswer = of === 'result' || of === 'error'
    if (isAnswer && opening.takesAnswer(id)) return
    await writer.write(() => Buffer.concat([line, newline])).catch(end)
    if (isAnswer) forget(id)
    else if (/^\{"jsonrpc":"2\.0","method":"notifications\/(?:subscriptions\/acknowledged|events\/active)"/.test(head))
      for (const { params } of parseMessages(decodeUtf8(line)))
        confirmed.add(JSON.stringify(memberOf(params?._meta, streamKey)))
    // A batch, or an answer that is written in another form.
    else if (!head.startsWith('{"jsonrpc":"2.0","method"'))
      for (const { id } of parseMessages(decodeUtf8(line))) forget(JSON.stringify(id))
  }
  const giveAll = async (from: Readable) => {
    for await (const lines of readLines(from, maxLineBytes.server, new AbortController().signal))
      for (const line of lines) if (line !== 'too-long') await give(line)
  }

  return {
    /** The secret of the last server, with which another server can open the cursors that the client has. */
    cursorSecret: () => cursorSecret,
    /**
     * Passes messages on until one side ends. Resolves to `served` if the client is done, `stuck` if the server stops
     * greeting new connections while the client waits, and `lost` if the server has ended.
     */
    relay: async (greeted: GreetedConnection, path: string): Promise<'served' | 'lost' | 'stuck'> => {
      const { socket } = greeted
      cursorSecret = greeted.cursorSecret
      tell = () => socket.end()
      socket.write(`${JSON.stringify({ hikidashi: 'join', env: process.env })}\n`)
      resume(socket)
      const isWaiting = () => pending.size > 0 || hasEnded || opening.hasSubscriptions()
      const watch = watchServer(socket, path, isWaiting)
      await giveAll(socket)
      server = undefined
      flow.set()
      socket.destroy()
      const isStuck = watch.end()
      if (hasEnded && (pending.size === 0 || stop.signal.aborted)) return 'served'
      return isStuck ? 'stuck' : 'lost'
    },
    /** Returns the streams through which this process itself serves the client from now on. */
    takeOver: () => {
      const input = new PassThrough()
      const output = new PassThrough()
      tell = () => input.end()
      resume(input)
      void giveAll(output)
      return { input, output }
    },
  }
}

const maxHeadBytes = 1024
const newline = Buffer.from('\n')

function decodeUtf8(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8')
}

/** The member of `_meta` with the id of a stream (2026-07-28). */
const streamKey = 'io.modelcontextprotocol/subscriptionId'
const tooLong = { code: -32700, message: 'The message is longer than 4 MiB. Send a shorter one.' }
const repeatedEnd = {
  code: -32603,
  message:
    'Several servers have ended during this request, which may be the reason. Change the request before you send it again.',
}
const unknownEffect = {
  code: -32603,
  message:
    'The server ended before it answered, and the tool may have run. Check its effects before you call it again.',
}

function memberOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>)[name] : undefined
}

const readingTools = new Set([
  ...['list_resources', 'browse_directory', 'read_resource', 'search_in_resource', 'search_resources'],
  ...['browse', 'assemble_context', 'what_changed', 'search', 'fetch'],
])

function callsOtherTool(line: string): boolean {
  return parseMessages(line).some(
    ({ method, params }) => method === 'tools/call' && !readingTools.has(String(params?.name)),
  )
}
