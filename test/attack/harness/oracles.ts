import { expect } from 'vitest'
import { openSchema } from '../../support/wire-schema.ts'
import { type Answer, legacy, type Message, modern, type Params, type Wire } from './wire.ts'

/** The expected answer to a hostile input, in the notation of the corpus. */
export type Expectation = 'NF' | 'BAD' | 'ctl'

/** Maximum size of an error, in bytes, beside the repeated URI and id. */
const maxError = 2048

/** The longest URI that an error repeats, in characters. */
const maxEcho = 1024

const allowedCodes = {
  modern: new Set([-32700, -32600, -32601, -32602, -32603, -32020, -32021, -32022]),
  legacy: new Set([-32700, -32600, -32601, -32602, -32603, -32002]),
}

/** The HTTP statuses of each error code. Before 2026-07-28, an error for a valid message has status 200. */
const statuses: Readonly<Record<number, readonly number[]>> = {
  [-32700]: [400],
  // A message that is too long is refused before it is parsed.
  [-32600]: [400, 413],
  [-32601]: [404],
  // 429: other clients have all subscriptions at the moment.
  [-32602]: [200, 400, 429],
  // A time-out, too many requests at once, or a server that is closing.
  [-32603]: [200, 429, 500, 503],
  [-32020]: [400],
  [-32021]: [400],
  [-32022]: [400],
}

/** Returns a message without the repeated URI, which is returned as it was sent, valid or not. */
function inOwnWords(message: Message, uri: unknown): unknown {
  if (typeof uri !== 'string' || uri === '') return message
  const repeated = JSON.stringify(uri).slice(1, -1)
  return JSON.parse(JSON.stringify(message).replaceAll(`"uri":"${repeated}`, '"uri":"asked:it'))
}

/** O5, and the part of O6 that one answer shows: the checks of every answer. */
export function checkAnswer(wire: Wire, answer: Answer, params: Params = {}, method?: string): void {
  const { message, raw, status } = answer
  if (message === undefined) throw new Error('an answer without a message')
  expect(message.jsonrpc).toBe('2.0')
  expect('result' in message !== 'error' in message, 'a result or an error').toBe(true)
  if (method !== undefined)
    expect(
      openSchema(wire.modern ? modern : legacy).faults(inOwnWords(message, params.uri), method),
      `the schema, of ${raw.subarray(0, 300)}`,
    ).toEqual([])
  const { error } = message
  if (status !== undefined && wire.modern)
    expect(
      error === undefined ? [200] : (statuses[error.code] ?? []),
      `HTTP ${status}: ${raw.subarray(0, 300)}`,
    ).toContain(status)
  if (error === undefined) return
  if (error.message === absent) expectAbsent(wire, error, params.uri)
  expect(Number.isInteger(error.code) && typeof error.message === 'string').toBe(true)
  expect(wire.modern ? allowedCodes.modern : allowedCodes.legacy, `the code of ${raw}`).toContain(error.code)
  const echoes = [error.data?.uri, message.id].reduce<number>(
    (sum, echo) => sum + Buffer.byteLength(JSON.stringify(echo) ?? ''),
    0,
  )
  expect(raw.length - echoes, `the length of ${raw.subarray(0, 300)}`).toBeLessThanOrEqual(maxError)
  if (error.data?.uri !== undefined) expect(error.data.uri).toBe(params.uri)
  // A signed link to a large content contains a time that looks like a line of a stack trace.
  if (error.data?.link !== undefined) {
    expect(wire.transport).toBe('http')
    expect(error.data.link).toEqual({
      href: expect.stringMatching(/^http:\/\/[^/]+\/content\/[\w-]+$/),
      expires: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
    })
  }
  const own = JSON.stringify({ ...error, data: { ...error.data, uri: undefined, link: undefined } })
  expect(own, 'no inner workings').not.toMatch(
    /\s+at .*:\d+:\d+|node:internal|node_modules|\/src\/|ENOENT|EACCES|ELOOP/,
  )
}

const absent = 'Resource not found'

/** O6: checks that the error for an absent resource has the same words for any reason. */
function expectAbsent(wire: Wire, error: Message['error'], uri: unknown): void {
  const isLong = typeof uri !== 'string' || uri.length > maxEcho
  expect(error).toEqual({ code: wire.modern ? -32602 : -32002, message: absent, ...(isLong ? {} : { data: { uri } }) })
}

/** Checks that the answer to a request for a URI is the expected one of the corpus. */
export function expectOutcome(wire: Wire, answer: Answer, expected: Expectation, uri: string, text?: string): void {
  const { message } = answer as { readonly message: Message }
  const shown = answer.raw.subarray(0, 300).toString()
  if (expected === 'ctl') {
    const [content] = (message.result?.contents ?? []) as readonly { readonly uri: string; readonly text?: string }[]
    expect(message.error, shown).toBeUndefined()
    // A directory that is read without a slash answers with its children.
    expect(content?.uri === uri || content?.uri.startsWith(`${uri}/`), shown).toBe(true)
    if (text !== undefined) expect(content?.text).toBe(text)
    return
  }
  expect(message.result, shown).toBeUndefined()
  if (expected === 'NF') {
    expect(message.error?.message, shown).toBe(absent)
    expectAbsent(wire, message.error, uri)
  } else {
    const speakable = wire.transport === 'stdio' || !wire.modern || uri.isWellFormed()
    // A header cannot hold text that UTF-8 cannot encode, so the header is wrong first.
    expect(message.error?.code, shown).toBe(speakable ? -32602 : -32020)
    expect(message.error?.data?.uri, shown).toBeUndefined()
  }
  if (wire.transport === 'http') expect(answer.status).toBe(message.error?.code === -32020 ? 400 : 200)
}
