import { randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { ErrorReason } from '../../core/errors.ts'
import { defined } from '../../core/kit/object.ts'
import type { Principal } from '../../core/provider.ts'
import { type TraceContext, traceContextIn } from '../../core/trace.ts'
import type { Gate } from '../admission/gate.ts'
import type { ServedLimits } from '../admission/limits.ts'
import { countOverload, statusOfOverload } from '../admission/overload.ts'
import { type Caller, createSessionOwner } from '../auth/caller.ts'
import {
  type EventStream,
  offerLink,
  openEventStream,
  refuse,
  refuseMethod,
  replyEmpty,
  replyJson,
  replyLong,
  waitUntilSent,
} from '../exchange.ts'
import {
  errorAnswer,
  isObject,
  isRevision,
  isStreamed,
  legacyRevisions,
  type RequestId,
  type Response,
  type WireError,
  wireErrorCodes,
} from '../messages/messages.ts'
import { type Connection, createConnection } from '../protocol/connection.ts'
import { type NotificationSink, openViewChannel, type ServedOptions } from '../serve.ts'
import type { Meter } from '../telemetry/meter.ts'
import { sendStreamed } from './modern.ts'
import { createMailbox, createSessions, type HttpSession } from './sessions.ts'

const idHeader = 'Mcp-Session-Id'

interface ExchangeOptions {
  readonly trace: TraceContext | undefined
  readonly timeoutMs: number
  readonly headers?: () => Readonly<Record<string, string>>
}

/** HTTP for the revisions before 2026-07-28: with sessions. */
export function createLegacyHttp(options: ServedOptions, gate: Gate, limits: ServedLimits, meter: Meter) {
  const { perPrincipal, sessionIdle: idleTimeoutMs } = limits
  const { onRefused } = options
  const { sessions: most } = limits
  const timeoutMs = options.timeoutMs ?? limits.timeout
  const refusals: RefusalCounter = { meter, ...defined({ onRefused }) }
  const sessions = createSessions({
    maxSessions: most,
    maxPerPrincipal: perPrincipal?.sessions ?? most,
    idleTimeoutMs,
    replica: options.replica,
  })
  meter.gauge('sessions', () => sessions.size)
  const streams = createStreams()

  const connect = (principal: Principal, announcements: NotificationSink): Connection => {
    // When all clients are one principal, each session has a share of its own.
    const share = perPrincipal === undefined ? randomUUID() : principal.id
    // Streamable HTTP handles messages of 2026-07-28 elsewhere, and HTTP+SSE does not serve that revision.
    const own = { ...options, share, offered: legacyRevisions }
    return createConnection((era) => openViewChannel(options, principal, era, announcements), gate, own)
  }

  const initialize = async (
    response: ServerResponse,
    caller: Caller,
    body: { readonly id?: unknown },
    trace: TraceContext | undefined,
  ) => {
    const { principal } = caller
    const id = typeof body.id === 'string' || typeof body.id === 'number' ? body.id : null
    const mailbox = createMailbox(randomUUID())
    const owner = createSessionOwner(principal)
    const connection = connect(owner, {
      write: mailbox.deliver,
      onLost: () => void (session === undefined || sessions.close(session)),
    })
    const session = sessions.open(owner, connection, mailbox)
    if (session === undefined) return replyFull(refusals, response, { id, principal, body })
    try {
      const headers = () => (connection.revision === undefined ? {} : { [idHeader]: session.id })
      await exchange(refusals, connection, response, caller, body, { trace, headers, timeoutMs })
    } finally {
      // Do not keep a session without a negotiated revision.
      if (connection.revision === undefined) await sessions.close(session)
    }
  }

  return {
    /** Streamable HTTP (2025-03-26 to 2025-11-25): a message, or a batch in revisions that have batches. */
    post: async (request: IncomingMessage, response: ServerResponse, caller: Caller, body: unknown) => {
      const isInitialize = isObject(body) && body.method === 'initialize'
      const trace = traceContextIn(request.headers)
      if (isInitialize && request.headers['mcp-session-id'] === undefined)
        return initialize(response, caller, body, trace)
      const session = findSession(sessions, request, response, caller.principal)
      if (session === undefined) return
      if (isInitialize) return refuse(response, 400, 'The session is initialized already.')
      await exchange(refusals, session.connection, response, caller, body, { trace, timeoutMs })
    },

    /** Handles `GET`: opens the stream of messages that answer no request. */
    openStream: async (request: IncomingMessage, response: ServerResponse, caller: Caller) => {
      if (!(request.headers.accept ?? '*/*').match(/\*\/\*|text\/(?:\*|event-stream)/))
        return refuse(response, 406, 'The Accept header does not allow an event stream.')
      const session = findSession(sessions, request, response, caller.principal)
      if (session === undefined) return
      const lastId = request.headers['last-event-id']
      // A client that names its last event has lost its stream, even if this server has not noticed.
      if (session.stream !== undefined && lastId === undefined)
        return refuse(response, 409, 'The session has an event stream already.')
      session.stream?.end()
      const stream = openEventStream(response, { [idHeader]: session.id })
      streams.attach(session, stream, caller, response, () => {
        session.mailbox?.detach(stream)
        if (session.stream === stream) session.stream = undefined
      })
      const whole = session.mailbox?.attach(stream, typeof lastId === 'string' ? lastId : undefined)
      if (whole === false) session.connection.retell()
    },

    end: async (request: IncomingMessage, response: ServerResponse, principal: Principal) => {
      const session = findSession(sessions, request, response, principal)
      if (session === undefined) return
      await sessions.close(session)
      replyEmpty(response, 204)
    },

    ...createSse({ sessions, streams, refusals, connect }),

    drain: streams.end,
    close: (): Promise<void> => sessions.closeAll(),
  }
}

function createStreams() {
  const streams = new Set<EventStream>()
  return {
    /** Makes a stream the event stream of a session, until the connection closes or the caller's access ends. */
    attach: (
      session: HttpSession,
      stream: EventStream,
      caller: Caller,
      response: ServerResponse,
      onClose: () => void,
    ): void => {
      session.stream = stream
      streams.add(stream)
      const forget = caller.untilEnd(stream.end)
      response.on('close', () => {
        forget()
        streams.delete(stream)
        onClose()
      })
    },
    end: (): void => {
      for (const stream of streams) stream.end()
    },
  }
}

interface SseParts {
  readonly sessions: ReturnType<typeof createSessions>
  readonly streams: ReturnType<typeof createStreams>
  readonly refusals: RefusalCounter
  readonly connect: (principal: Principal, announcements: NotificationSink) => Connection
}

/** HTTP+SSE (2024-11-05): one stream carries all answers of a session. */
function createSse({ sessions, streams, refusals, connect }: SseParts) {
  return {
    /** Opens the stream, and with it the session. */
    openSse: async (request: IncomingMessage, response: ServerResponse, caller: Caller) => {
      if (request.method !== 'GET') return refuseMethod(response, 'GET')
      let stream: EventStream | undefined
      const write = async (message: unknown): Promise<void> => {
        stream?.send(message)
        await stream?.ready()
      }
      const owner = createSessionOwner(caller.principal)
      const session = sessions.open(owner, connect(owner, { write, onLost: () => response.destroy() }))
      if (session === undefined) return replyFull(refusals, response, { id: null, principal: caller.principal })
      const eventStream = openEventStream(response)
      stream = eventStream
      streams.attach(session, eventStream, caller, response, () => void sessions.close(session))
      // Relative, so that the Host header cannot make it point elsewhere.
      eventStream.send(`/messages?sessionId=${session.id}`, 'endpoint')
    },

    postSse: async (request: IncomingMessage, response: ServerResponse, principal: Principal, body: unknown) => {
      const id = new URLSearchParams((request.url ?? '').split('?')[1]).get('sessionId')
      const session = id === null ? undefined : sessions.find(id, principal)
      if (session?.stream === undefined) return refuse(response, 404, 'The session does not exist, or has ended.')
      replyEmpty(response, 202)
      const answer = await session.connection.receive(body, {
        trace: traceContextIn(request.headers),
        onNotification: (message) => void session.stream?.send(message),
      })
      countOverloads(refusals, answer, principal, body)
      if (answer !== undefined) session.stream?.send(answer)
    },
  }
}

interface RefusalCounter {
  readonly meter: Meter
  readonly onRefused?: ServedOptions['onRefused']
}

/** Returns the session that a request names. A request that names none, or an unknown revision, is refused. */
function findSession(
  sessions: ReturnType<typeof createSessions>,
  request: IncomingMessage,
  response: ServerResponse,
  principal: Principal,
): HttpSession | undefined {
  const id = request.headers['mcp-session-id']
  if (typeof id !== 'string')
    return void refuse(response, 400, `The header ${idHeader} is missing. Begin with initialize.`)
  const session = sessions.find(id, principal)
  if (session === undefined)
    return void refuse(response, 404, 'The session does not exist, or has ended. Begin with initialize.')
  const version = request.headers['mcp-protocol-version']
  // A client may name another revision than the session's (2025-06-18, basic/transports, protocol version header).
  if (version !== undefined && !isRevision(version))
    return void refuse(
      response,
      400,
      'The header MCP-Protocol-Version names a revision that this server does not support.',
    )
  return session
}

function countOverloads(
  { meter, onRefused }: RefusalCounter,
  answers: unknown,
  principal: Principal,
  body: unknown,
): void {
  for (const answer of [answers].flat()) countOverload(answer, meter, onRefused, principal, body)
}

function replyFull(
  { meter, onRefused }: RefusalCounter,
  response: ServerResponse,
  { id, principal, body }: { readonly id: RequestId | null; readonly principal: Principal; readonly body?: unknown },
): void {
  meter.count('refusedSessions')
  onRefused?.({ outcome: 'sessions', status: 503, principal: principal.id, body })
  replyJson(response, 503, errorAnswer(id, tooManySessions), { 'Retry-After': '5' })
}

/** Answers one body in JSON, or in a stream if a notification precedes the answer. */
async function exchange(
  refusals: RefusalCounter,
  connection: Connection,
  response: ServerResponse,
  { principal, linkFor }: Caller,
  body: unknown,
  { trace, timeoutMs, headers = () => ({}) }: ExchangeOptions,
): Promise<void> {
  let stream: EventStream | undefined
  const closeController = new AbortController()
  response.once('close', () => closeController.abort())
  if (isObject(body) && isObject(body.params) && typeof body.method === 'string')
    offerLink(response, { method: body.method, params: body.params }, linkFor)
  // In these revisions a disconnect does not cancel the request.
  const answer = await connection.receive(body, {
    trace,
    taken: () => waitUntilSent(response),
    sending: { signal: closeController.signal, timeoutMs },
    linkFor,
    onNotification: (message) => {
      stream ??= openEventStream(response, headers())
      stream.send(message)
    },
  })
  countOverloads(refusals, answer, principal, body)
  if (answer === undefined) {
    if (stream === undefined) replyEmpty(response, 202, headers())
    else stream.end()
  } else if (stream === undefined) {
    const later = Array.isArray(answer) ? undefined : statusOfOverload(answer as Response)
    await replyLong(response, later?.status ?? httpStatusForAnswer(answer), answer, {
      ...headers(),
      ...later?.headers,
    })
  } else if (isStreamed(answer)) await sendStreamed(response, answer as Response, stream)
  else {
    for (const message of [answer].flat()) stream.send(message)
    stream.end()
  }
}

/** Returns the HTTP status of an answer. In these revisions errors have 200, except for a body that is not a message. */
function httpStatusForAnswer(answer: unknown): number {
  if (!isObject(answer) || answer.id !== null || !isObject(answer.error)) return 200
  return answer.error.code === wireErrorCodes.invalidRequest ? 400 : 200
}

const tooManySessions: WireError = {
  code: wireErrorCodes.internal,
  message: 'There are too many sessions. Try again later.',
  data: { reason: 'busy' satisfies ErrorReason },
}
