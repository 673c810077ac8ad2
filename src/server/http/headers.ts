import type { IncomingMessage } from 'node:http'
import { codes, type WireError } from '../protocol/errors.ts'
import type { Request } from '../protocol/messages.ts'
import { modern } from '../protocol/revisions.ts'
import { valuesOf } from './guard.ts'

/** The param that the header `Mcp-Name` repeats, by method (2026-07-28, basic/transports, standard request headers). */
const named: Readonly<Record<string, string>> = {
  'resources/read': 'uri',
  'prompts/get': 'name',
  'tools/call': 'name',
}

const versionHeader = 'MCP-Protocol-Version'

/** Returns the error when the header names another version than the body, even if neither is served. A missing header is accepted here. */
export function versionMismatch(request: IncomingMessage, claimed: unknown): WireError | undefined {
  if (typeof claimed !== 'string' || valuesOf(request, versionHeader.toLowerCase()).length === 0) return undefined
  return check(request, versionHeader, claimed)
}

/**
 * Returns what is wrong with the headers of a 2026-07-28 request: each must occur once and agree with the body, so that
 * intermediaries can trust them.
 */
export function headerFault(request: IncomingMessage, message: Request): WireError | undefined {
  const fault = check(request, versionHeader, modern) ?? check(request, 'Mcp-Method', message.method)
  if (fault !== undefined) return fault
  const param = Object.hasOwn(named, message.method) ? named[message.method] : undefined
  const expected = param === undefined ? undefined : message.params?.[param]
  return typeof expected === 'string' ? check(request, 'Mcp-Name', expected, decodeSentinel) : undefined
}

const unchanged = (value: string): string => value

function check(
  request: IncomingMessage,
  header: string,
  expected: string,
  decode: (value: string) => string | undefined = unchanged,
): WireError | undefined {
  const values = valuesOf(request, header.toLowerCase())
  if (values.length !== 1) return mismatch(header, values.length === 0 ? 'is missing' : 'is there more than once')
  const value = decode((values[0] ?? '').replace(/^[ \t]+|[ \t]+$/g, ''))
  if (value === undefined) return mismatch(header, 'is not encoded as it should be')
  return value === expected ? undefined : mismatch(header, 'says something else than the body')
}

function mismatch(header: string, fault: string): WireError {
  return { code: codes.headerMismatch, message: `The header ${header} ${fault}.` }
}

/**
 * Decodes `=?base64?…?=`, which carries values that a header cannot hold; other visible ASCII stays unchanged. Only the
 * canonical, padded spelling of valid UTF-8 is accepted.
 */
function decodeSentinel(value: string): string | undefined {
  const sentinel = /^=\?base64\?(.*)\?=$/i.exec(value)
  if (sentinel === null) return /^[\x20-\x7e]*$/.test(value) ? value : undefined
  const encoded = sentinel[1] ?? ''
  const bytes = Buffer.from(encoded, 'base64')
  if (bytes.toString('base64') !== encoded) return undefined
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    return undefined
  }
}
