import { gzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { control, useArena } from './harness/arena.ts'
import { headerValue } from './harness/http.ts'
import { rawOf } from './harness/raw.ts'
import { withMeta } from './harness/wire.ts'

const arena = useArena({}, undefined, { onlyHttp: true })
const { bodyOf, chunked, head, own, tell } = rawOf(arena)

describe('HTTP requests:', () => {
  test('a body that announces too great a length is refused before it is read (HT19)', async () => {
    for (const length of ['1048577', '4194305', '1000000000000', '9007199254740991']) {
      const answer = await tell(`${head({ 'content-length': length })}\r\n`)
      expect(answer.statuses, length).toEqual([413])
      expect(answer.closed, length).toBe(true)
    }
  })

  test('endless chunks get no other status than 413, the connection is closed, and memory grows by less than 100 MiB (HT19)', async () => {
    const before = arena.http.facts().resident
    async function* endless() {
      yield `${head({ 'transfer-encoding': 'chunked' })}\r\n`
      for (let i = 0; i < 2000; i++) yield `10000\r\n${'x'.repeat(65_536)}\r\n`
    }
    const answer = await tell(endless(), { until: () => false, within: 20_000 })
    expect(answer.statuses[0] ?? 413).toBe(413)
    expect(answer.closed).toBe(true)
    expect(arena.http.facts().resident - before).toBeLessThan(100)
  })

  test('a compressed body is refused (HT19)', async () => {
    const bomb = gzipSync(Buffer.alloc(50 * 1024 * 1024, ' '))
    const honestly = gzipSync(bodyOf())
    for (const [encoding, body] of [
      ['gzip', bomb],
      ['gzip', honestly],
      ['x-gzip', honestly],
      ['deflate', honestly],
      ['br', honestly],
      ['identity, gzip', honestly],
      ['GZIP', honestly],
    ] as const) {
      const { statuses } = await tell([
        `${head({ 'content-encoding': encoding, 'content-length': String(body.length) })}\r\n`,
        body,
      ])
      expect(statuses, encoding).toEqual([415])
    }
    const { statuses } = await tell(`${head({ 'transfer-encoding': 'gzip, chunked' })}\r\n${chunked(bodyOf())}`)
    expect([400, 415, 501], 'as a transfer').toContain(statuses[0])
  })

  test('a body shorter than its Content-Length is never processed (HT19)', async () => {
    const body = bodyOf()
    const { statuses, text } = await tell(`${head({ 'content-length': String(body.length + 1) })}\r\n${body}`, {
      quiet: 300,
    })
    expect(statuses, text).toEqual([])
  })

  test('get no other answer than 400 to what follows a body beyond its Content-Length, and is no request (HT17)', async () => {
    const body = bodyOf()
    const { statuses, text } = await tell(`${head({ 'content-length': String(body.length) })}\r\n${body}xyz`)
    // The complaint about the rest may overtake the answer, and ends the connection.
    expect([[200], [200, 400], [400]], text.slice(-200)).toContainEqual(statuses)
  })

  test('a client that expects 100-continue gets it, or a refusal, and delays no other client (HT18)', async () => {
    const length = { 'content-length': String(bodyOf().length) }
    const waits = await tell(`${head({ ...length, expect: '100-continue' })}\r\n`, { quiet: 200 })
    expect([100, 417]).toContain(waits.statuses[0])
    const goes = await tell([`${head({ ...length, expect: '100-continue' })}\r\n`, bodyOf()])
    expect(goes.statuses.at(-1)).toBe(200)
    const odd = await tell(`${head({ ...length, expect: '200-ok' })}\r\n${bodyOf()}`)
    expect([200, 400, 417]).toContain(odd.statuses[0])
    await Promise.all(
      Array.from({ length: 100 }, () => tell(`${head({ ...length, expect: '100-continue' })}\r\n`, { quiet: 200 })),
    )
    await control(arena.wire('http 2026-07-28'))
  })

  test('Upgrade, CONNECT, TRACE and OPTIONS are refused, and an upgrade offered with a valid POST never changes the protocol (HT18)', async () => {
    const cases: Readonly<Record<string, string>> = {
      'a web socket': `GET /mcp HTTP/1.1\r\nHost: ${own()}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: eA==\r\nSec-WebSocket-Version: 13\r\n\r\n`,
      'HTTP/2': `GET /mcp HTTP/1.1\r\nHost: ${own()}\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n`,
      'a web socket at the top': `GET / HTTP/1.1\r\nHost: evil\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`,
      trace: `TRACE /mcp HTTP/1.1\r\nHost: ${own()}\r\nX-Secret: repeated\r\n\r\n`,
      'options of all': `OPTIONS * HTTP/1.1\r\nHost: ${own()}\r\n\r\n`,
      'a preflight': `OPTIONS /mcp HTTP/1.1\r\nHost: ${own()}\r\nOrigin: http://${own()}\r\nAccess-Control-Request-Method: POST\r\n\r\n`,
    }
    for (const [what, text] of Object.entries(cases)) {
      const answer = await tell(text)
      expect(answer.statuses, `${what}: ${answer.text}`).toHaveLength(1)
      expect(answer.statuses[0], what).toBeGreaterThanOrEqual(400)
      expect(answer.text, what).not.toMatch(/repeated|access-control/i)
    }
    const tunnel = await tell(`CONNECT localhost:22 HTTP/1.1\r\nHost: ${own()}\r\n\r\nSSH-2.0-x\r\n`)
    expect(tunnel.text).not.toMatch(/ 2\d\d /)
    expect(tunnel.closed).toBe(true)
    // An upgrade that is offered with an honest POST may be passed over, but never changes the protocol.
    const offered = await tell(
      `${head({ connection: 'Upgrade', upgrade: 'h2c', 'content-length': String(bodyOf().length) })}\r\n${bodyOf()}`,
    )
    expect(offered.statuses).not.toContain(101)
  })

  test('line breaks in an id or progress token cannot forge an event in the stream of the answer (HT31)', async () => {
    const evil = '\n\ndata: {"forged":1}\r\n\r\nevent: x\rdata: y\u2028\u0085'
    const params = { uri: 'slow://source/hang', _meta: { progressToken: evil } }
    const body = JSON.stringify({ jsonrpc: '2.0', id: evil, method: 'resources/read', params: withMeta(params, true) })
    const top = head({ 'mcp-name': headerValue(params.uri), 'content-length': String(Buffer.byteLength(body)) })
    const { text } = await tell([`${top}\r\n`, Buffer.from(body)], {
      until: (seen) => seen.split('event: message').length > 2,
      within: 8000,
    })
    expect(text).toContain('text/event-stream')
    const stream = Buffer.from(text, 'latin1').toString().split('\r\n\r\n').slice(1).join('\r\n\r\n')
    const lines = stream.split(/\r\n|[\n\r]/).filter((line) => line.startsWith('data:') || line.startsWith('event:'))
    expect(lines.length).toBeGreaterThanOrEqual(4)
    for (const line of lines)
      if (line.startsWith('data:'))
        expect(JSON.parse(line.slice(5))).toMatchObject({
          method: 'notifications/progress',
          params: { progressToken: evil },
        })
      else expect(line).toBe('event: message')
    expect(stream).not.toMatch(/[\u2028\u2029\u0085]/u)
  })
})
