import { expect } from 'vitest'
import type { Answer, Message, Params, Wire } from './attack-wire.ts'

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

/** O5: what holds for every answer, whatever was asked. */
export function checkAnswer(wire: Wire, answer: Answer, params: Params = {}): void {
  const { message, raw } = answer
  if (message === undefined) throw new Error('an answer without a message')
  expect(message.jsonrpc).toBe('2.0')
  expect('result' in message !== 'error' in message, 'a result or an error').toBe(true)
  const { error } = message
  if (error === undefined) return
  expect(Number.isInteger(error.code) && typeof error.message === 'string').toBe(true)
  expect(wire.modern ? allowedCodes.modern : allowedCodes.legacy, `the code of ${raw}`).toContain(error.code)
  const echoes = [error.data?.uri, message.id].reduce<number>(
    (sum, echo) => sum + Buffer.byteLength(JSON.stringify(echo) ?? ''),
    0,
  )
  expect(raw.length - echoes, `the length of ${raw.subarray(0, 300)}`).toBeLessThanOrEqual(maxError)
  if (error.data?.uri !== undefined) expect(error.data.uri).toBe(params.uri)
  const own = JSON.stringify({ ...error, data: { ...error.data, uri: undefined } })
  expect(own, 'no inner workings').not.toMatch(
    /\n?\s+at .*[.:]\d+|node:internal|node_modules|\/src\/|ENOENT|EACCES|ELOOP/,
  )
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
    expect(message.error, shown).toEqual({
      code: wire.modern ? -32602 : -32002,
      message: 'Resource not found',
      ...(uri.length > maxEcho ? {} : { data: { uri } }),
    })
  } else {
    const speakable = wire.transport === 'stdio' || !wire.modern || uri.isWellFormed()
    // What UTF-8 cannot say no header can say either, so the header is at fault first.
    expect(message.error?.code, shown).toBe(speakable ? -32602 : -32020)
    expect(message.error?.data?.uri, shown).toBeUndefined()
  }
  if (wire.transport === 'http') expect(answer.status).toBe(message.error?.code === -32020 ? 400 : 200)
}
