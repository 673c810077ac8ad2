import type { IncomingMessage } from 'node:http'
import { invalid } from '../../core/errors.ts'
import type { JsonObject } from '../../core/tool.ts'
import { paramHeadersOf, paramIn } from '../../core/tool-headers.ts'
import { isLoopback } from '../../core/uri.ts'
import { headerValues } from '../exchange.ts'
import { type Request, type WireError, wireErrorCodes } from '../messages/messages.ts'
import { claimedRevision, envelopeFault } from '../protocol/envelope.ts'

/** Returns why a request is refused by its headers alone; undefined when it is not. */
export type Guard = (request: IncomingMessage) => { readonly status: 400 | 403; readonly message: string } | undefined

export interface GuardOptions {
  readonly host: string
  readonly port: number
  /** Hosts that requests may name besides those of the loopback, as `name` or `name:port`, exactly. */
  readonly allowedHosts?: readonly string[]
  /** Origins of web pages that may send requests besides those of the loopback, as `scheme://host[:port]`, exactly. */
  readonly allowedOrigins?: readonly string[]
}

const loopback = ['localhost', '127.0.0.1', '[::1]']

/**
 * Creates the guard against web pages that attack this machine (DNS rebinding, cross-site requests): `Host` must be in the allow list, and
 * `Origin` too if there is one.
 *
 * @throws ResourceError `invalid` when the server listens beyond the loopback and no host is allowed by name.
 */
export function createGuard({ host, port, allowedHosts = [], allowedOrigins = [] }: GuardOptions): Guard {
  if (!isLoopback(host) && allowedHosts.length === 0)
    throw invalid(
      `To listen on ${host}, set http.allowedHosts to the host names that clients use, such as ["context.example.org"].`,
      'configuration',
      { option: 'allowedHosts' },
    )
  const own = loopback.flatMap((name) => [`${name}:${port}`, ...(port === 80 ? [name] : [])])
  const hosts = new Set([...own, ...allowedHosts.map((name) => name.toLowerCase())])
  return guardBy(hosts, new Set([...own.map((name) => `http://${name}`), ...allowedOrigins]))
}

/**
 * Creates the guard for an existing server whose port is unknown: hosts of the loopback may have any port, and a page of the loopback may
 * send requests to its own host and port.
 */
export function createEmbeddedGuard({
  allowedHosts = [],
  allowedOrigins = [],
}: Pick<GuardOptions, 'allowedHosts' | 'allowedOrigins'>): Guard {
  const hosts = new Set(allowedHosts.map((name) => name.toLowerCase()))
  const origins = new Set(allowedOrigins)
  const isOwn = (text: string) => /^(?:localhost|127\.0\.0\.1|\[::1\])(?::\d{1,5})?$/.test(text)
  return guardBy(hosts, origins, isOwn)
}

/** @param isOwn Whether a host is served besides those in the list. Its own pages may send requests. */
function guardBy(allowed: ReadonlySet<string>, origins: ReadonlySet<string>, isOwn?: (host: string) => boolean): Guard {
  return (request) => {
    const hosts = headerValues(request, 'host')
    const [hostHeader] = hosts
    if (hosts.length > 1 || hostHeader === undefined)
      return { status: 400, message: 'The request must have exactly one Host header.' }
    const host = hostHeader.toLowerCase()
    const target = (request as WithTargetHost)[targetHostKey]
    if (target !== undefined && target.toLowerCase() !== host)
      return { status: 400, message: 'The target of the request and its Host header name different hosts.' }
    if (!allowed.has(host) && isOwn?.(host) !== true)
      return { status: 403, message: 'The Host header names a host that http.allowedHosts does not allow.' }
    const [origin, ...others] = headerValues(request, 'origin')
    if (origin === undefined) return undefined
    const isAllowed = origins.has(origin) || (isOwn?.(host) === true && origin === `http://${host}`)
    return isAllowed && others.length === 0
      ? undefined
      : { status: 403, message: 'The Origin header names an origin that http.allowedOrigins does not allow.' }
  }
}

/** Key of the host that the target of a request names, on the request itself. */
const targetHostKey = Symbol('host of the target')
type WithTargetHost = IncomingMessage & { [targetHostKey]?: string }

/** Replaces a target in absolute form by its path and query (RFC 9112, section 3.2.2). The guard compares its host with the header. */
export function replaceAbsoluteTarget(request: WithTargetHost): void {
  const [, host, path = ''] = /^https?:\/\/([^/?#]*)(.*)$/i.exec(request.url ?? '') ?? []
  if (host === undefined) return
  request[targetHostKey] = host
  request.url = path.startsWith('/') ? path : `/${path}`
}

/** Returns why a body is refused. Unencoded JSON in UTF-8 is accepted. Forms and plain text, which any web page may send, are refused. */
export function mediaFault(request: IncomingMessage): string | undefined {
  const types = headerValues(request, 'content-type')
  const [type = ''] = types
  const [, params] =
    /^application\/json[ \t]*((?:;[ \t]*(?:[\w.+-]+=(?:[^\s;,"]+|"[^"\\]*")[ \t]*)?)*)$/i.exec(type) ?? []
  const charsets = [...(params ?? '').matchAll(/;[ \t]*charset="?([^;"]*)/gi)].map(([, charset]) => charset?.trim())
  if (types.length !== 1 || params === undefined || charsets.some((charset) => !/^utf-?8$/i.test(charset ?? '')))
    return 'The Content-Type is not application/json in UTF-8.'
  if ((request.headers['content-encoding'] ?? 'identity') !== 'identity')
    return 'A Content-Encoding is not supported. Send the body unencoded.'
  return undefined
}

/** Whether the client accepts one of the two forms of an answer. Without a header it accepts both. */
export function acceptsAnswers(request: IncomingMessage): boolean {
  const accept = request.headers.accept
  if (accept === undefined) return true
  for (const range of accept.toLowerCase().split(',')) {
    const [type = '', ...params] = range.split(';')
    const isForm = /^\s*(?:\*\/\*|application\/(?:json|\*)|text\/(?:event-stream|\*))\s*$/.test(type)
    if (isForm && !params.some((param) => /^\s*q=0(?:\.0*)?\s*$/.test(param))) return true
  }
  return false
}

/** The param that the header `Mcp-Name` repeats, by method (2026-07-28, basic/transports, standard request headers). */
const nameParams: Readonly<Record<string, string>> = {
  'resources/read': 'uri',
  'prompts/get': 'name',
  'tools/call': 'name',
}

const versionHeader = 'MCP-Protocol-Version'

/**
 * Returns what is wrong with the `_meta` and the headers of a 2026-07-28 request. Headers must agree with the body, so that intermediaries
 * can trust them.
 */
export function requestFault(request: IncomingMessage, message: Request): WireError | undefined {
  const claimed = claimedRevision(message)
  const version = check(request, versionHeader, claimed)
  // A client must learn that its version is not served, whatever other faults there are.
  const isGiven = typeof claimed === 'string' && headerValues(request, versionHeader.toLowerCase()).length > 0
  const envelope = (isGiven ? version : undefined) ?? envelopeFault(message)
  const fault = envelope ?? version ?? check(request, 'Mcp-Method', message.method)
  if (fault !== undefined) return fault
  const param = Object.hasOwn(nameParams, message.method) ? nameParams[message.method] : undefined
  const expected = param === undefined ? undefined : message.params?.[param]
  return typeof expected === 'string' ? check(request, 'Mcp-Name', expected, decodeHeaderValue) : undefined
}

/**
 * Returns what is wrong with the headers that repeat arguments of a tool (`Mcp-Param-…`, 2026-07-28). Nothing is expected of a tool whose
 * declaration of headers is invalid.
 */
export function paramHeadersFault(
  request: IncomingMessage,
  inputSchema: JsonObject,
  args: JsonObject,
): WireError | undefined {
  const declared = paramHeadersOf(inputSchema)
  if ('fault' in declared) return undefined
  for (const param of declared) {
    const { header } = param
    const value = paramIn(args, param)
    if (value === undefined && headerValues(request, header.toLowerCase()).length === 0) continue
    const fault = check(
      request,
      header,
      value?.toString(),
      typeof value === 'number' ? decodeNumber : decodeHeaderValue,
    )
    if (fault !== undefined) return fault
  }
  return undefined
}

/** Numbers are compared by value: `42.0` is 42. */
function decodeNumber(value: string): string | undefined {
  const text = decodeHeaderValue(value)
  return text !== undefined && /^-?\d+(?:\.\d+)?$/.test(text) ? String(Number(text)) : text
}

function check(
  request: IncomingMessage,
  header: string,
  expected: unknown,
  decode?: (value: string) => string | undefined,
): WireError | undefined {
  const values = headerValues(request, header.toLowerCase())
  if (values.length !== 1) return mismatch(header, values.length === 0 ? 'is missing' : 'occurs more than once')
  const headerValue = (values[0] ?? '').replace(/^[ \t]+|[ \t]+$/g, '')
  const value = decode === undefined ? headerValue : decode(headerValue)
  if (value === undefined) return mismatch(header, 'is not encoded correctly')
  return value === expected ? undefined : mismatch(header, 'differs from the body')
}

function mismatch(header: string, fault: string): WireError {
  return { code: wireErrorCodes.headerMismatch, message: `The header ${header} ${fault}.` }
}

/**
 * Decodes a text of a header. Undefined for other characters than visible ASCII, spaces and tabs, and for base64 in another than the
 * canonical, padded spelling of UTF-8.
 */
function decodeHeaderValue(value: string): string | undefined {
  const encoded = /^=\?base64\?(.*)\?=$/.exec(value)?.[1]
  if (encoded === undefined) return /^[\t\x20-\x7e]*$/.test(value) ? value : undefined
  const bytes = Buffer.from(encoded, 'base64')
  if (bytes.toString('base64') !== encoded) return undefined
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    return undefined
  }
}
