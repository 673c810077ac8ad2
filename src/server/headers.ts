import type { IncomingMessage } from 'node:http'
import { codes, type WireError } from './errors.ts'
import { valuesOf } from './guard.ts'
import type { Request } from './messages.ts'
import { modern } from './revisions.ts'

/** Which param the header `Mcp-Name` repeats (2026-07-28, basic/transports, standard request headers). */
const named: Readonly<Record<string, string>> = {
  'resources/read': 'uri',
  'prompts/get': 'name',
  'tools/call': 'name',
}

const versionHeader = 'MCP-Protocol-Version'

/**
 * That the header names another version than the body: a mismatch, even where neither version is served. A header that
 * is missing says nothing here.
 */
export function versionMismatch(request: IncomingMessage, claimed: unknown): WireError | undefined {
  if (typeof claimed !== 'string' || valuesOf(request, versionHeader.toLowerCase()).length === 0) return undefined
  return check(request, versionHeader, claimed)
}

/**
 * What is wrong with the headers of a 2026-07-28 request: each must be there once and say what the body says, so that
 * whoever stands in between can trust them.
 */
export function headerFault(request: IncomingMessage, message: Request): WireError | undefined {
  const fault = check(request, versionHeader, modern) ?? check(request, 'Mcp-Method', message.method)
  if (fault !== undefined) return fault
  const param = Object.hasOwn(named, message.method) ? named[message.method] : undefined
  const expected = param === undefined ? undefined : message.params?.[param]
  return typeof expected === 'string' ? check(request, 'Mcp-Name', expected, decodeSentinel) : undefined
}

function check(
  request: IncomingMessage,
  header: string,
  expected: string,
  decode = (value: string): string | undefined => value,
): WireError | undefined {
  const mismatch = (fault: string): WireError => ({
    code: codes.headerMismatch,
    message: `The header ${header} ${fault}.`,
  })
  const values = valuesOf(request, header.toLowerCase())
  if (values.length !== 1) return mismatch(values.length === 0 ? 'is missing' : 'is there more than once')
  const value = decode((values[0] ?? '').replace(/^[ \t]+|[ \t]+$/g, ''))
  if (value === undefined) return mismatch('is not encoded as it should be')
  return value === expected ? undefined : mismatch('says something else than the body')
}

/**
 * The value behind `=?base64?…?=`, which carries what a header cannot; any other visible ASCII is itself. Only the
 * canonical, padded spelling of valid UTF-8 counts.
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
