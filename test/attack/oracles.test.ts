import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Oracles, openOracles, waitLong } from './harness/arena.ts'
import { formsOf } from './harness/canary.ts'
import { openHttp } from './harness/http.ts'
import { checkAnswer } from './harness/oracles.ts'
import { openStdio } from './harness/stdio.ts'
import { startFixture } from './harness/target.ts'
import type { Answer, Params, Wire } from './harness/wire.ts'
import { createWorld, type World } from './harness/world.ts'

// An oracle that cannot fail says nothing: each is shown a server that does what it looks for.

waitLong()

let world: World
let stdio: Wire
let http: Wire
let oracles: Oracles
let isOver = false

beforeAll(async () => {
  world = createWorld()
  const [first, second] = await Promise.all([
    startFixture(world, { transport: 'stdio', faulty: true }),
    startFixture(world, { transport: 'http', faulty: true }),
  ])
  stdio = await openStdio(first, world)
  http = await openHttp(second, world)
  for (const wire of [stdio, http]) await wire.call('resources/list')
  // What is planted here is never given back.
  oracles = await openOracles(world, [stdio, http], { counts: true, settlesWithin: 1000 })
}, 120_000)

afterAll(async () => {
  if (!isOver) await oracles.atEnd()
  world.dispose()
}, 120_000)

const plant = (wire: Wire, fault: string) => wire.call('resources/read', { uri: `fault://planted/${fault}` })

/** Waits until the oracles say something that fits. */
async function said(expected: RegExp): Promise<void> {
  const heard: string[] = []
  const end = performance.now() + 60_000
  while (!heard.some((fault) => expected.test(fault)) && performance.now() < end) {
    heard.push(...(await oracles.afterCase()))
    await sleep(50)
  }
  expect(heard.join('\n')).toMatch(expected)
}

describe('the oracles of the attack tests, after a case,', () => {
  test('report nothing about a correct server', async () => {
    expect(await oracles.afterCase()).toEqual([])
  }, 60_000)

  test.each(['latin1', 'base64', 'base64url', 'hex'])(
    'find a secret in %s (O1)',
    async (encoding) => {
      await plant(stdio, `tell/${encoding}`)
      await said(/^O1: stdout/m)
      await plant(http, `tell/${encoding}`)
      await said(/^O1: http/m)
    },
    60_000,
  )

  test('find a secret in the log (O1)', async () => {
    await plant(stdio, 'log/now')
    await said(/^O1: stderr/m)
  }, 60_000)

  test('look for a secret as it is, and in hexadecimal, percent-encoding, JSON, UTF-16 and shifted base64 (O1)', () => {
    const forms = formsOf('cnry0').map(({ form }) => form)
    for (const form of ['raw', 'hex', 'percent-encoded', 'JSON-escaped', 'UTF-16LE', 'base64, shifted by 2'])
      expect(forms).toContain(form)
  })

  test('notice that a request makes other requests wait (O2)', async () => {
    await plant(http, 'hold/2500')
    await said(/^O2: the control client waited/m)
  }, 120_000)

  test('notice a started program, a connection and a written file (O4)', async () => {
    const sink = createServer().listen(0, '127.0.0.1')
    await new Promise((resolve) => sink.once('listening', resolve))
    await plant(stdio, 'start/now')
    await said(/^O4: it started sleep$/m)
    await plant(http, `connect/${(sink.address() as AddressInfo).port}`)
    await said(/^O4: it opened a connection to 0100007F:/m)
    await plant(stdio, `write/hikidashi-planted-${process.pid}`)
    await said(/^O4: it writes to .*hikidashi-planted/m)
    sink.close()
    sink.closeAllConnections()
  }, 120_000)
})

test('at the end, the oracles report resources that were not released, and unexpected messages', async () => {
  await plant(stdio, 'open/100')
  await plant(http, 'keep/80')
  await plant(stdio, 'print/hello')
  await stdio.call('resources/list', {}, { id: 'call-twice' })
  await plant(stdio, 'answer/call-twice')
  isOver = true
  const said = (await oracles.atEnd()).join('\n')
  expect(said).toMatch(/^O3: \d+ descriptors, \d+ before/m)
  expect(said).toMatch(/^O3: \d+ MiB in use, \d+ before, by http/m)
  expect(said).toMatch(/^O5: .*hello/m)
  expect(said).toMatch(/^O5: 2 answers to string call-twice/m)
}, 120_000)

describe('the oracles report', () => {
  const wire = { modern: true, transport: 'http', name: 'http 2026-07-28' } as Wire
  const old = { ...wire, modern: false } as Wire
  const answerOf = (message: object, status = 200): Answer => {
    const whole = { jsonrpc: '2.0', id: 1, ...message }
    return { raw: Buffer.from(JSON.stringify(whole)), message: whole, status }
  }
  const result = (over: Params = {}) => ({
    result: {
      resultType: 'complete',
      ttlMs: 0,
      cacheScope: 'private',
      contents: [{ uri: 'x://a', text: 'a' }],
      ...over,
    },
  })
  const error = (code: number, message: string, data?: Params) => ({
    error: { code, message, ...(data === undefined ? {} : { data }) },
  })
  const params = { uri: 'x://a' }
  const check = (answer: Answer, by = wire) => checkAnswer(by, answer, params, 'resources/read')

  test('nothing about a correct answer', () => {
    check(answerOf(result()))
    check(answerOf(error(-32602, 'Resource not found', { uri: 'x://a' })))
    check(answerOf(error(-32002, 'Resource not found', { uri: 'x://a' })), old)
  })

  test.each<[string, Answer, Wire?]>([
    ['neither a result nor an error (O5)', answerOf({})],
    ['both a result and an error (O5)', answerOf({ ...result(), ...error(-32603, 'Internal error') })],
    ['another version of JSON-RPC (O5)', answerOf({ ...result(), jsonrpc: '1.0' })],
    ['a result without a required member (O5)', answerOf(result({ contents: [{ text: 'a' }] }))],
    ['a result with an invalid member (O5)', answerOf(result({ ttlMs: 'soon' }))],
    ['a code that the revision does not have (O5)', answerOf(error(-32002, 'Resource not found', params))],
    ['another code that the revision does not have (O5)', answerOf(error(-32042, 'x'), 400)],
    ['an HTTP status that does not match the error (O5)', answerOf(error(-32603, 'Internal error'), 404)],
    ['an HTTP status 200 for an error (O5)', answerOf(error(-32601, 'Method not found'), 200)],
    ['an error that repeats the request (O5)', answerOf(error(-32602, 'x'.repeat(3000)))],
    ['the message of a system error (O5)', answerOf(error(-32603, 'ENOENT: no such file or directory'), 200)],
    ['the stack of an error (O5)', answerOf(error(-32603, 'x\n    at read (file.ts:1:1)'), 200)],
    ['absence with a reason (O6)', answerOf(error(-32602, 'Resource not found', { ...params, fault: 'denied' }))],
    ['absence by another code (O6)', answerOf(error(-32603, 'Resource not found', params), 200)],
    ['absence of something else (O6)', answerOf(error(-32602, 'Resource not found', { uri: 'x://b' }))],
    ['absence in a newer code on an old revision (O6)', answerOf(error(-32602, 'Resource not found', params)), old],
  ])('an answer with %s', (_, answer, by) => {
    expect(() => check(answer, by)).toThrow()
  })
})
