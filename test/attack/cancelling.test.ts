import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { volumeOf } from '../support/volume.ts'
import { control, type StdioWire, useArena } from './harness/arena.ts'
import { jsonHeaders, modernHeaders, raw, send, sessionHeaders } from './harness/http.ts'
import { type Params, type Wire, withMeta } from './harness/wire.ts'
import { controlPath } from './harness/world.ts'

const arena = useArena({ timeout: 8000 })
const stdioNames = ['stdio 2026-07-28', 'stdio 2025-11-25'] as const

const slow: Params = { uri: 'slow://source/hang' }
const forever: Params = { uri: 'slow://source/forever' }

const lineOf = (wire: Wire, id: string | number, params: Params) =>
  `${JSON.stringify({ jsonrpc: '2.0', id, method: 'resources/read', params: withMeta(params, wire.modern) })}\n`

/** That nothing came for a while. */
async function expectSilence(wire: StdioWire): Promise<void> {
  const lines = wire.pipe.lines()
  await sleep(200)
  expect(wire.pipe.lines()).toBe(lines)
}

describe('cancellation:', () => {
  test.each(stdioNames)(
    'over %s, a cancellation with an unknown id, or an id of another type, cancels nothing (JR28)',
    async (name) => {
      const wire = arena.wire(name) as StdioWire
      await wire.pipe.write(lineOf(wire, 1, slow) + lineOf(wire, '1', slow))
      const unknown: readonly unknown[] = [
        2,
        '2',
        'call-1',
        '',
        null,
        [],
        [1],
        {},
        { toString: 1 },
        true,
        1.5,
        -1,
        '01',
        ' 1',
        '1 ',
        1e308,
        'number 1',
        'string 1',
        '__proto__',
      ]
      for (const requestId of unknown)
        await wire.notify('notifications/cancelled', { requestId, reason: 'x'.repeat(1000) })
      for (const params of [{}, { requestID: 1 }, { id: 1 }, { request_id: '1' }])
        await wire.notify('notifications/cancelled', params)
      await expectSilence(wire)
      // Both are still in flight, each under its own id.
      for (const id of [1, '1']) {
        await wire.pipe.write(lineOf(wire, id, slow))
        expect((await wire.pipe.answerTo(id)).message?.error?.code, 'JR06').toBe(-32600)
      }
      await wire.notify('notifications/cancelled', { requestId: '1' })
      await sleep(100)
      await wire.pipe.write(lineOf(wire, '1', { uri: `${arena.world.address}/${controlPath}` }))
      expect((await wire.pipe.answerTo('1')).message?.result).toBeDefined()
      await wire.pipe.write(lineOf(wire, 1, slow))
      expect((await wire.pipe.answerTo(1)).message?.error?.code).toBe(-32600)
      await wire.notify('notifications/cancelled', { requestId: 1 })
      await expectSilence(wire)
    },
  )

  test.each(stdioNames)(
    'over %s, a cancelled request gets no answer, even if its source does not stop (JR28)',
    async (name) => {
      const wire = arena.wire(name) as StdioWire
      for (const [id, params] of [
        ['stops', slow],
        ['does not', forever],
      ] as const)
        await wire.pipe.write(lineOf(wire, id, params))
      for (const requestId of ['stops', 'does not']) await wire.notify('notifications/cancelled', { requestId })
      await expectSilence(wire)
      await control(wire)
    },
  )

  test.each(stdioNames)(
    'over %s, after a flood of cancellations of an answered request, the next request is answered, and memory has grown by less than 300 MiB (JR29)',
    async (name) => {
      const wire = arena.wire(name) as StdioWire
      await wire.pipe.write(lineOf(wire, 'done', { uri: `${arena.world.address}/${controlPath}` }))
      await wire.pipe.answerTo('done')
      const line = `${JSON.stringify({ jsonrpc: '2.0', method: 'notifications/cancelled', params: withMeta({ requestId: 'done' }, wire.modern) })}\n`
      const before = wire.target.facts().resident
      const block = line.repeat(1000)
      // 200,000 of them.
      for (let i = 0; i < volumeOf(200, 60); i++) await wire.pipe.write(block)
      await control(wire)
      expect(wire.target.facts().resident - before).toBeLessThan(300)
    },
    60_000,
  )

  test.each(stdioNames)(
    'an id that is already in flight is refused, and the first request with it can still be cancelled, over %s (JR06)',
    async (name) => {
      const wire = arena.wire(name) as StdioWire
      const { pipe } = wire
      await pipe.write(lineOf(wire, 'twice', slow).repeat(5))
      for (let i = 0; i < 4; i++) {
        // Each refusal comes under the id.
        expect((await pipe.answerTo('twice')).message?.error?.code).toBe(-32600)
      }
      await wire.notify('notifications/cancelled', { requestId: 'twice' })
      await expectSilence(wire)
    },
  )

  test.each(stdioNames)(
    'over %s, hundreds of hanging requests that are cancelled do not stop other requests (JR28)',
    async (name) => {
      const wire = arena.wire(name) as StdioWire
      const count = 900
      let lines = ''
      for (let i = 0; i < count; i++) lines += lineOf(wire, `h${i}`, slow)
      await wire.pipe.write(lines)
      const cancel = (i: number) =>
        JSON.stringify({
          jsonrpc: '2.0',
          method: 'notifications/cancelled',
          params: withMeta({ requestId: `h${i}` }, wire.modern),
        })
      await wire.pipe.write(`${Array.from({ length: count }, (_, i) => cancel(i)).join('\n')}\n`)
      await control(wire)
    },
  )

  test.each(stdioNames)(
    'over %s, reads of a source that never answers get a time-out error, and those queued behind them are answered or time out',
    async (name) => {
      const wire = arena.wire(name) as StdioWire
      const count = volumeOf(2000, 400)
      let lines = ''
      for (let i = 0; i < 16; i++) lines += lineOf(wire, `n${i}`, i % 2 === 0 ? slow : forever)
      for (let i = 0; i < count; i++) lines += lineOf(wire, `q${i}`, { uri: `${arena.world.address}/${controlPath}` })
      await wire.pipe.write(lines)
      for (let i = 0; i < 16; i++)
        expect((await wire.pipe.answerTo(`n${i}`)).message?.error).toMatchObject({
          code: -32603,
          data: { reason: 'timeout' },
        })
      for (let i = 0; i < count; i++) {
        const { message } = await wire.pipe.answerTo(`q${i}`)
        // On a machine that is busy, one of them may take too long itself.
        expect(message?.result ?? message?.error?.data?.reason === 'timeout').toBeTruthy()
      }
    },
  )

  test('over HTTP, a client cannot cancel the requests of another client (JR28)', async () => {
    const wire = arena.wire('http 2026-07-28')
    const other = arena.wire('http 2025-11-25')
    const { host, pathname } = arena.http.url as URL
    const body = JSON.stringify({ jsonrpc: '2.0', id: 'mine', method: 'resources/read', params: withMeta(slow, true) })
    const headers = Object.entries(modernHeaders('resources/read', slow)).map(([key, value]) => `${key}: ${value}\r\n`)
    const pending = raw(
      arena.http,
      arena.world,
      `POST ${pathname} HTTP/1.1\r\nHost: ${host}\r\n${headers.join('')}Content-Length: ${body.length}\r\n\r\n${body}`,
      { until: () => false, within: 1500 },
    )
    await sleep(200)
    for (const cancel of [{ requestId: 'mine' }, { requestId: 0 }, { requestId: 1 }, { requestId: 2 }]) {
      await wire.notify('notifications/cancelled', cancel)
      await other.notify('notifications/cancelled', cancel)
    }
    const { text, closed } = await pending
    expect(text, 'neither answered nor hung up on').toBe('')
    expect(closed).toBe(false)
  })

  test('over HTTP, a session cancels its own request, which a client outside of the session cannot (JR28)', async () => {
    const wire = arena.wire('http 2025-11-25')
    const headers = { ...jsonHeaders, ...sessionHeaders(wire) }
    const body = JSON.stringify({ jsonrpc: '2.0', id: 'mine', method: 'resources/read', params: slow })
    let done = false
    const pending = send(arena.http, arena.world, { headers, body }).finally(() => {
      done = true
    })
    await sleep(200)
    await arena.wire('http 2026-07-28').notify('notifications/cancelled', { requestId: 'mine' })
    await sleep(200)
    expect(done).toBe(false)
    await wire.notify('notifications/cancelled', { requestId: 'mine' })
    const { message } = await pending
    expect(message?.result).toBeUndefined()
  })

  test('with revision 2026-07-28, the next request is answered after 300 connections with endless requests were closed', async () => {
    const { host, pathname } = arena.http.url as URL
    const headers = Object.entries(modernHeaders('resources/read', forever)).map(
      ([key, value]) => `${key}: ${value}\r\n`,
    )
    const attack = Array.from({ length: 300 }, (_, i) => {
      const body = JSON.stringify({ jsonrpc: '2.0', id: i, method: 'resources/read', params: withMeta(forever, true) })
      const text = `POST ${pathname} HTTP/1.1\r\nHost: ${host}\r\n${headers.join('')}Content-Length: ${body.length}\r\n\r\n${body}`
      return raw(arena.http, arena.world, text, { until: () => false, within: 700 })
    })
    await Promise.all(attack)
    await control(arena.wire('http 2026-07-28'))
  })

  test('another client is answered after a session has closed 80 connections with endless requests', async () => {
    const wire = arena.wire('http 2025-11-25')
    const { host, pathname } = arena.http.url as URL
    const own = Object.entries({ ...jsonHeaders, ...sessionHeaders(wire) }).map(
      ([key, value]) => `${key}: ${value}\r\n`,
    )
    const attack = Array.from({ length: 80 }, (_, i) => {
      const body = JSON.stringify({ jsonrpc: '2.0', id: `s${i}`, method: 'resources/read', params: slow })
      const text = `POST ${pathname} HTTP/1.1\r\nHost: ${host}\r\n${own.join('')}Content-Length: ${body.length}\r\n\r\n${body}`
      return raw(arena.http, arena.world, text, { until: () => false, within: 700 })
    })
    await Promise.all(attack)
    await control(arena.wire('http 2026-07-28'))
  })
})
