import type { IncomingMessage, ServerResponse } from 'node:http'
import { openBody, type ReadAsCaller, type ResourceBody } from '../../../core/body.ts'
import { isResourceError, ResourceError } from '../../../core/errors.ts'
import { followAbortFor } from '../../../core/kit/abort.ts'
import { defined } from '../../../core/kit/object.ts'
import type { Principal } from '../../../core/provider.ts'
import type { Scrubber } from '../../../core/scrub.ts'
import type { NoSlotReason } from '../../admission/gate.ts'
import { overloadAnswer } from '../../admission/overload.ts'
import { unauthenticatedCaller } from '../../auth/caller.ts'
import { refuse, refuseMethod, replyJson, waitUntilSent } from '../../exchange.ts'
import { errorAnswer, errorToWire, modernRevision } from '../../messages/messages.ts'
import { type OpeningCatalog, waitUntilOpen } from '../../protocol/envelope.ts'
import type { ServeOptions } from '../../serve.ts'
import { type Audit, maxVersionLength } from '../../telemetry/audit.ts'
import type { Endpoint } from '../endpoint.ts'
import { httpStatusForError, notFoundMessage } from '../other-routes.ts'
import { type ContentLinks, contentPath } from './links.ts'

/**
 * Parses the header `Range` (RFC 9110, section 14.2) for a body of `length` bytes: from `start`, up to but not including `end`. Undefined
 * if the whole is sent. `unsatisfiable`: the range begins after the end, or is empty.
 */
function parseRangeHeader(header: string | undefined, length: number) {
  const [, first, last] = /^bytes=(\d{0,15})-(\d{0,15})$/i.exec(header?.trim() ?? '') ?? []
  if (first === undefined || last === undefined || (first === '' && last === '')) return undefined
  if (first === '')
    return Number(last) === 0 ? 'unsatisfiable' : { start: Math.max(0, length - Number(last)), end: length }
  const start = Number(first)
  if (last !== '' && Number(last) < start) return undefined
  if (start >= length) return 'unsatisfiable'
  return { start, end: last === '' ? length : Math.min(length, Number(last) + 1) }
}

/** Whether an entity tag is in a list of tags, as `If-None-Match` has it (RFC 9110, section 13.1.2): compared weakly. */
export function matchesTag(list: string | undefined, etag: string | undefined): boolean {
  if (list === undefined || etag === undefined) return false
  return list.trim() === '*' || list.split(',').some((one) => one.trim().replace(/^W\//, '') === etag)
}

interface ContentServerOptions extends Pick<ServeOptions, 'view' | 'scrubber' | 'audit' | 'log'> {
  readonly opening?: OpeningCatalog | undefined
}

type AnswerRequest = (request: IncomingMessage, response: ServerResponse) => Promise<void>

/** Types that a browser may show by itself. Every other type is sent as bytes, so that no content runs as a page of this server. */
const shownTypes = /^(?:image\/(?!svg)|audio\/|video\/|application\/pdf$)/

/** Types that are not text. In a content of another type, the removal of a known secret may change the length. */
const binaryTypes = /^(?:image\/(?!svg)|audio\/|video\/|font\/|application\/(?:octet-stream|pdf|zip|gzip|wasm)$)/

/**
 * Serves the targets of signed links: GET and HEAD, with ranges and entity tags (RFC 9110, sections 13 and 14). The link stands in for
 * authentication.
 */
export function createContentServer(
  links: ContentLinks,
  { limits, gate, entrance, onRefused, addresses }: Endpoint,
  { view, scrubber, audit, log, opening }: ContentServerOptions,
): AnswerRequest {
  return async (request, response) => {
    if (request.method !== 'GET' && request.method !== 'HEAD') return refuseMethod(response, 'GET, HEAD')
    const target = links.open(request.url ?? contentPath)
    if (target === undefined) {
      onRefused({ outcome: 'no-link', status: 404, address: addresses.of(request.socket) })
      return refuse(response, 404, notFoundMessage)
    }
    const { principal, uri } = target
    const caller = entrance.admit(unauthenticatedCaller(principal), request, response)
    if (caller === undefined) return
    const readRequest = { jsonrpc: '2.0', id: 0, method: 'resources/read', params: { uri } }
    if (!entrance.permits(caller, readRequest, response)) return
    if (!(await waitUntilOpen(opening, response, limits.timeout))) return

    const closeController = new AbortController()
    response.once('close', () => {
      if (!response.writableFinished) closeController.abort()
    })
    const callerView = view(principal)
    const readAsCaller: ReadAsCaller = async (part, options) => {
      const waiting = followAbortFor(closeController.signal, limits.timeout)
      try {
        const ran = await gate.run(
          ({ room }) => callerView.read(part, { ...options, signal: waiting.signal, room }),
          caller.share,
          // A content that is read whole keeps its slot until the client has taken it.
          part === uri ? () => waitUntilSent(response) : undefined,
        )
        if ('refused' in ran) throw new Refused(ran.refused)
        return ran.value
      } finally {
        waiting.release()
      }
    }
    const record = createRecord(audit, principal, uri)
    try {
      const body = await openBody(readAsCaller, uri, {})
      record('ok', await send(request, response, uri, body, scrubber), body.version)
    } catch (error) {
      record(closeController.signal.aborted ? 'cancelled' : isResourceError(error) ? error.kind : 'internal', 0)
      if (response.headersSent) return void response.destroy()
      if (closeController.signal.aborted) return
      if (error instanceof Refused) {
        const later = overloadAnswer(null, error.crowded)
        return replyJson(response, 503, later, { 'Retry-After': '5' })
      }
      if (isResourceError(error, 'not-found')) return refuse(response, 404, notFoundMessage)
      const later = isResourceError(error, 'unavailable') ? { 'Retry-After': '5' } : {}
      replyJson(
        response,
        httpStatusForError(error),
        errorAnswer(null, errorToWire(error, modernRevision, undefined, log)),
        later,
      )
    }
  }
}

class Refused extends Error {
  readonly crowded: NoSlotReason
  constructor(crowded: NoSlotReason) {
    super(crowded)
    this.crowded = crowded
  }
}

/** Headers of a content, which never runs as a page of this origin. */
const safeHeaders = {
  'X-Content-Type-Options': 'nosniff',
  'Content-Security-Policy': "default-src 'none'; sandbox",
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Referrer-Policy': 'no-referrer',
  'Cache-Control': 'private, no-cache',
}

/** Sends a body, and resolves to the number of bytes sent. */
async function send(
  request: IncomingMessage,
  response: ServerResponse,
  uri: string,
  body: ResourceBody,
  scrubber: Scrubber | undefined,
): Promise<number> {
  const { etag, mimeType } = body
  const length = isExact(body, scrubber) ? body.length : undefined
  const tag = etag === undefined ? {} : { ETag: etag }
  if (matchesTag(request.headers['if-none-match'], etag)) {
    body.release()
    response.writeHead(304, { ...safeHeaders, ...tag }).end()
    return 0
  }
  const condition = request.headers['if-range']
  const isAsked = condition === undefined || (etag !== undefined && condition === etag)
  const span = length !== undefined && isAsked ? parseRangeHeader(request.headers.range, length) : undefined
  if (span === 'unsatisfiable') {
    body.release()
    refuse(response, 416, 'The range begins after the end of the content.', { 'Content-Range': `bytes */${length}` })
    return 0
  }
  const sent = span === undefined ? length : span.end - span.start
  const pieces = clean(body.bytes(span?.start, span?.end), scrubber)
  // A source that fails at once is answered with an error, not with a cut connection.
  const first = request.method === 'HEAD' ? undefined : await pieces.next()
  response.writeHead(span === undefined ? 200 : 206, {
    ...safeHeaders,
    ...tag,
    'Accept-Ranges': length === undefined ? 'none' : 'bytes',
    'Content-Type': mimeType !== undefined && shownTypes.test(mimeType) ? mimeType : 'application/octet-stream',
    'Content-Disposition': `attachment; filename*=UTF-8''${encodeRfc5987(downloadFileName(uri))}`,
    ...(sent === undefined ? {} : { 'Content-Length': sent }),
    ...(span === undefined ? {} : { 'Content-Range': `bytes ${span.start}-${span.end - 1}/${length}` }),
  })
  if (first === undefined) {
    body.release()
    response.end()
    return 0
  }
  const writtenLength = await write(response, resumed(first, pieces), sent)
  response.end()
  return writtenLength
}

async function write(
  response: ServerResponse,
  pieces: AsyncIterable<Uint8Array>,
  promised: number | undefined,
): Promise<number> {
  let count = 0
  for await (const piece of pieces) {
    count += piece.length
    // Redaction has changed the length, or the source is of another size than it said.
    if (promised !== undefined && count > promised) break
    if (response.destroyed) throw new ResourceError('unavailable', 'The client is gone.')
    if (piece.length > 0) await flushed(response, piece)
  }
  if (promised !== undefined && count !== promised)
    throw new ResourceError('unavailable', 'The content has another length than the source announced.')
  return count
}

function flushed(response: ServerResponse, piece: Uint8Array): Promise<void> {
  return new Promise((resolve) => {
    const finish = () => {
      response.off('close', finish)
      resolve()
    }
    response.once('close', finish)
    response.write(piece, finish)
  })
}

async function* resumed(
  first: IteratorResult<Uint8Array, void>,
  rest: AsyncGenerator<Uint8Array, void>,
): AsyncGenerator<Uint8Array> {
  if (first.done === true) return
  yield first.value
  yield* rest
}

async function* clean(
  pieces: AsyncIterable<Uint8Array>,
  scrubber: Scrubber | undefined,
): AsyncGenerator<Uint8Array, void> {
  if (scrubber === undefined) return yield* pieces
  const stream = scrubber.stream()
  for await (const piece of pieces) yield* stream.push(piece)
  yield stream.end()
}

/** Whether the length of a body is known before it is sent: the removal of a known secret may change the length of a text. */
function isExact({ mimeType = 'application/octet-stream' }: ResourceBody, scrubber: Scrubber | undefined): boolean {
  return scrubber === undefined || binaryTypes.test(mimeType)
}

/** The last segment of the path of a URI, as the name of a file. */
function downloadFileName(uri: string): string {
  const [, last = ''] = /([^/]*)\/*$/.exec(uri) ?? []
  try {
    return decodeURIComponent(last).replace(/[\p{C}/\\]/gu, '_') || 'content'
  } catch {
    return 'content'
  }
}

/** Encodes a text for a parameter of a header (RFC 5987, section 3.2.1). */
function encodeRfc5987(text: string): string {
  return encodeURIComponent(text.toWellFormed()).replace(
    /['()*]/g,
    (one) => `%${one.charCodeAt(0).toString(16).toUpperCase()}`,
  )
}

function createRecord(audit: Audit | undefined, principal: Principal, uri: string) {
  const start = performance.now()
  return (outcome: string, bytes: number, version?: string): void =>
    audit?.({
      time: new Date().toISOString(),
      principal: principal.id,
      ...defined({ label: principal.label, version: version?.slice(0, maxVersionLength) }),
      transport: 'http',
      verb: 'read',
      uri,
      outcome,
      ...(outcome === 'ok' ? { bytes } : {}),
      ms: Math.round((performance.now() - start) * 10) / 10,
    })
}
