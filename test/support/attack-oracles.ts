import { expect } from 'vitest'
import { type Answer, legacy, type Message, modern, type Params, type Wire } from './attack-wire.ts'
import { openSchema } from './wire-schema.ts'

/** What a hostile input is answered with. See the conventions of the corpus. */
export type Expectation = 'NF' | 'BAD' | 'ctl'

/** How large an error may be, in bytes, beside the URI and the id that it repeats. */
const maxError = 2048

/** The longest URI that an error repeats, in characters. */
const maxEcho = 1024

const allowedCodes = {
  modern: new Set([-32700, -32600, -32601, -32602, -32603, -32020, -32021, -32022]),
  legacy: new Set([-32700, -32600, -32601, -32602, -32603, -32002]),
}

/** The status of HTTP that an error goes with. Before 2026-07-28, one that was understood is always 200. */
const statuses: Readonly<Record<number, readonly number[]>> = {
  [-32700]: [400],
  // What is too long is refused before anything is known of it.
  [-32600]: [400, 413],
  [-32601]: [404],
  // 429: others listen to so much that there is no room just now.
  [-32602]: [200, 400, 429],
  // What takes too long, is too much at once, or comes when the server closes.
  [-32603]: [200, 429, 500, 503],
  [-32020]: [400],
  [-32021]: [400],
  [-32022]: [400],
}

/** A message without the URI that it repeats: the one that was asked with comes back as it was, RFC 3986 or not. */
function inOwnWords(message: Message, uri: unknown): unknown {
  if (typeof uri !== 'string' || uri === '') return message
  const repeated = JSON.stringify(uri).slice(1, -1)
  return JSON.parse(JSON.stringify(message).replaceAll(`"uri":"${repeated}`, '"uri":"asked:it'))
}

/** O5, and O6 as far as one answer shows it: what holds for every answer, whatever was asked. */
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
  // A link to a large content is sealed, and its time looks like a line of a stack trace.
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

/** O6: what is absent is told in the same words, whatever the reason. */
function expectAbsent(wire: Wire, error: Message['error'], uri: unknown): void {
  const isLong = typeof uri !== 'string' || uri.length > maxEcho
  expect(error).toEqual({ code: wire.modern ? -32602 : -32002, message: absent, ...(isLong ? {} : { data: { uri } }) })
}

/** That an answer to `resources/read` (or the like) of a URI is what the corpus says. */
export function expectOutcome(wire: Wire, answer: Answer, expected: Expectation, uri: string, text?: string): void {
  const { message } = answer as { readonly message: Message }
  const shown = answer.raw.subarray(0, 300).toString()
  if (expected === 'ctl') {
    const [content] = (message.result?.contents ?? []) as readonly { readonly uri: string; readonly text?: string }[]
    expect(message.error, shown).toBeUndefined()
    // A directory read without a slash answers with its children.
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
    // What UTF-8 cannot say no header can say either, so the header is at fault first.
    expect(message.error?.code, shown).toBe(speakable ? -32602 : -32020)
    expect(message.error?.data?.uri, shown).toBeUndefined()
  }
  if (wire.transport === 'http') expect(answer.status).toBe(message.error?.code === -32020 ? 400 : 200)
}
