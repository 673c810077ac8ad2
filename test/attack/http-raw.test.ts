import { writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { control, useArena } from '../support/attack-arena.ts'
import { headerValue, modernHeaders, type RawAnswer, type RawOptions, raw } from '../support/attack-http.ts'
import { until } from '../support/attack-target.ts'
import { withMeta } from '../support/attack-wire.ts'
import { controlPath } from '../support/attack-world.ts'

const arena = useArena()

const small = () => ({ uri: `${arena.world.address}/${controlPath}` })
const bodyOf = (params: Readonly<Record<string, unknown>> = small(), id: string | number = 1) =>
  JSON.stringify({ jsonrpc: '2.0', id, method: 'resources/read', params: withMeta(params, true) })
const own = () => (arena.http.url as URL).host

/** The head of an honest modern read; what is given comes instead of, or behind, what it has. */
function head(over: Readonly<Record<string, string | undefined>> = {}, line = 'POST /mcp HTTP/1.1'): string {
  const headers: Record<string, string | undefined> = {
    host: own(),
    ...modernHeaders('resources/read', small()),
    ...over,
  }
  return `${line}\r\n${Object.entries(headers)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join('')}`
}

const honest = (body = bodyOf()) => `${head({ 'content-length': String(Buffer.byteLength(body)) })}\r\n${body}`
const tell = (parts: Parameters<typeof raw>[2], options?: RawOptions): Promise<RawAnswer> =>
  raw(arena.http, arena.world, parts, options)
const chunked = (body: string) => `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`

/** That nothing hidden in a request was taken for a second one, and that no request was served that is in doubt. */
function expectRefused({ statuses, text }: RawAnswer, what: string, closes = true, closed?: boolean): void {
  expect(statuses, `${what}: ${text.slice(0, 300)}`).toHaveLength(1)
  expect(statuses[0], what).toBeGreaterThanOrEqual(400)
  expect(statuses[0], what).toBeLessThan(500)
  expect(text, what).not.toContain('still here')
  if (closes && closed !== undefined) expect(closed, `${what}: the connection is closed`).toBe(true)
}

describe('the head of a request', () => {
  test('HT03: no Host, two of them, an empty one, or one that the target contradicts, is refused', async () => {
    const length = { 'content-length': String(bodyOf().length) }
    const cases: Readonly<Record<string, string>> = {
      none: head({ ...length, host: undefined }),
      empty: head({ ...length, host: '' }),
      'two, the good one first': `${head(length)}Host: evil\r\n`,
      'two, the good one last': head({ ...length, host: `evil\r\nHost: ${own()}` }),
      'the same twice': `${head(length)}Host: ${own()}\r\n`,
      'an absolute target elsewhere': head(length, 'POST http://evil/mcp HTTP/1.1'),
      'an absolute target here, and a Host elsewhere': head(
        { ...length, host: 'evil' },
        `POST http://${own()}/mcp HTTP/1.1`,
      ),
      'an authority as target': head(length, `POST ${own()} HTTP/1.1`),
      'a space in it': head({ ...length, host: `${own()} evil` }),
      'a tab in it': head({ ...length, host: `evil\t${own()}` }),
      userinfo: head({ ...length, host: `x@${own()}` }),
      'HTTP/1.0 without one': head({ ...length, host: undefined }, 'POST /mcp HTTP/1.0'),
    }
    for (const [what, top] of Object.entries(cases)) expectRefused(await tell(`${top}\r\n${bodyOf()}`), what)
  })

  test('HT14: a folded header, a control character, and bytes beyond ASCII are refused or count as what they are', async () => {
    const { uri } = small()
    const length = { 'content-length': String(bodyOf().length) }
    const cases: Readonly<Record<string, string>> = {
      'a fold': head({ ...length, 'mcp-name': `${uri}\r\n x` }),
      'a fold in the middle': head({ ...length, 'mcp-name': `${uri.slice(0, 8)}\r\n\t${uri.slice(8)}` }),
      'a fold of the method': head({ ...length, 'mcp-method': 'resources/\r\n read' }),
      'a NUL': head({ ...length, 'mcp-name': `${uri}\0` }),
      'a carriage return': head({ ...length, 'mcp-name': `${uri}\rx: y` }),
      'a line feed': head({ ...length, 'mcp-name': `${uri}\nx: y\r\nz:` }),
      'a control character': head({ ...length, 'mcp-name': `${uri}\u0001` }),
      'a delete character': head({ ...length, 'mcp-name': `${uri}\u007f` }),
      'a byte beyond ASCII': head({ ...length, 'mcp-name': `${uri}\u00e9` }),
      'a space before the colon': head({ ...length, 'x ': 'y' }),
      'a name that is none': head({ ...length, 'x(y)': 'z' }),
      'no colon': `${head(length)}x\r\n`,
      'a name beyond ASCII': head({ ...length, 'mcp-n\u00e4me': uri }),
      'a line of spaces': `${head(length)} \r\n`,
    }
    // A bare line feed ends a header for some parsers: then the name ends before it, and is the honest one.
    for (const [what, top] of Object.entries(cases)) {
      const answer = await tell(`${top}\r\n${bodyOf()}`)
      if (answer.statuses.length === 1 && answer.statuses[0] === 200) throw new Error(`served: ${what}`)
      expectRefused(answer, what)
    }
  })

  test('HT14: thousands of headers, and one of a megabyte, are refused', async () => {
    const length = { 'content-length': String(bodyOf().length) }
    for (const more of [
      'x: y\r\n'.repeat(10_000),
      `x: ${'y'.repeat(1_000_000)}\r\n`,
      `${'x'.repeat(1_000_000)}: y\r\n`,
      'a: b\r\n'.repeat(3000),
    ]) {
      const { statuses, text } = await tell(`${head(length)}${more}\r\n${bodyOf()}`)
      // Some thousands of short ones are within the limit of bytes; what counts is among them or it is not.
      expect(statuses.length, text.slice(0, 200)).toBe(1)
      expect([200, 431]).toContain(statuses[0])
    }
    const long = await tell(`GET /${'x'.repeat(100_000)} HTTP/1.1\r\nHost: ${own()}\r\n\r\n`)
    expect([414, 431]).toContain(long.statuses[0])
  })
})

describe('where a request ends', () => {
  test('HT17: what could be read in two ways is refused, and nothing behind it is served', async () => {
    const body = bodyOf()
    const hidden = honest(bodyOf(small(), 'hidden'))
    const cases: Readonly<Record<string, string>> = {
      'both lengths': `${head({ 'content-length': '4', 'transfer-encoding': 'chunked' })}\r\n${chunked(body)}${hidden}`,
      'both lengths, the other way': `${head({ 'transfer-encoding': 'chunked', 'content-length': String(body.length) })}\r\n0\r\n\r\n${hidden}`,
      'two lengths': `${head({ 'content-length': String(body.length) })}Content-Length: 0\r\n\r\n${body}${hidden}`,
      'the same length twice': `${head({ 'content-length': String(body.length) })}Content-Length: ${body.length}\r\n\r\n${body}`,
      'a list of lengths': `${head({ 'content-length': `${body.length}, ${body.length}` })}\r\n${body}`,
      'a negative length': `${head({ 'content-length': '-1' })}\r\n${body}`,
      'a length with a sign': `${head({ 'content-length': `+${body.length}` })}\r\n${body}`,
      'a length in hexadecimal': `${head({ 'content-length': '0x10' })}\r\n${body}`,
      'a length with a space': `${head({ 'content-length': '1 0' })}\r\n${body}`,
      'a length beyond numbers': `${head({ 'content-length': '99999999999999999999999' })}\r\n${body}`,
      'an encoding in disguise': `${head({ 'transfer-encoding': 'xchunked' })}\r\n${chunked(body)}`,
      'an encoding behind chunked': `${head({ 'transfer-encoding': 'chunked, identity' })}\r\n${chunked(body)}`,
      'two encodings': `${head({ 'transfer-encoding': 'chunked' })}Transfer-Encoding: x\r\n\r\n${chunked(body)}`,
      'a tab before the encoding': `${head({ 'transfer-encoding': '\u000bchunked' })}\r\n${chunked(body)}`,
      'a space behind the name of the encoding': `${head({ 'transfer-encoding ': 'chunked' })}\r\n${chunked(body)}`,
      'a chunk of no size': `${head({ 'transfer-encoding': 'chunked' })}\r\n\r\n${body}\r\n0\r\n\r\n`,
      'a chunk of a size that is none': `${head({ 'transfer-encoding': 'chunked' })}\r\nxyz\r\n${body}\r\n0\r\n\r\n`,
      'a chunk of a negative size': `${head({ 'transfer-encoding': 'chunked' })}\r\n-1\r\n${body}\r\n0\r\n\r\n`,
      'a chunk of a size beyond numbers': `${head({ 'transfer-encoding': 'chunked' })}\r\nfffffffffffffffff\r\n${body}\r\n0\r\n\r\n`,
      'a chunk that is longer than it says': `${head({ 'transfer-encoding': 'chunked' })}\r\n1\r\n${body}\r\n0\r\n\r\n`,
      'a bare line feed behind a chunk size': `${head({ 'transfer-encoding': 'chunked' })}\r\n${body.length.toString(16)}\n${body}\r\n0\r\n\r\n`,
      'bare line feeds': honest().replaceAll('\r\n', '\n'),
      'no version': `POST /mcp\r\n${head().split('\r\n').slice(1).join('\r\n')}\r\n`,
      'a version that is none': `${head({ 'content-length': String(body.length) }, 'POST /mcp HTTP/9.9')}\r\n${body}`,
      'a preface of HTTP/2': 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
      TLS: '\u0016\u0003\u0001\u0002\u0000\u0001\u0000\u0001\u00fc\u0003\u0003',
      'a method in small letters': `${head({ 'content-length': String(body.length) }, 'post /mcp HTTP/1.1')}\r\n${body}`,
    }
    for (const [what, text] of Object.entries(cases)) {
      const answer = await tell(text)
      expect(answer.text, what).not.toContain('"id":"hidden"')
      expectRefused(answer, what)
    }
  })

  test('HT17: chunks with extensions and trailers are the same body, or refused', async () => {
    const body = bodyOf()
    const size = body.length.toString(16)
    const top = head({ 'transfer-encoding': 'chunked' })
    for (const rest of [
      `${size};x=y\r\n${body}\r\n0\r\n\r\n`,
      `${size};x="a\r\n${body}\r\n0\r\n\r\n`,
      `${size}\r\n${body}\r\n0\r\nHost: evil\r\nMcp-Method: x\r\n\r\n`,
      `000000${size}\r\n${body}\r\n0\r\n\r\n`,
      `${size};${'x'.repeat(100_000)}\r\n${body}\r\n0\r\n\r\n`,
    ]) {
      const { statuses, text } = await tell(`${top}\r\n${rest}`)
      expect(statuses, text.slice(0, 200)).toHaveLength(1)
      expect([200, 400, 413]).toContain(statuses[0])
    }
  })

  test('HT26: what is written behind one another is answered in order, each by its own right', async () => {
    const denied = { uri: 'rule://guarded/denied.txt' }
    const deniedBody = bodyOf(denied, 'denied')
    const requests = [
      honest(bodyOf(small(), 'first')),
      `${head({ 'mcp-name': headerValue(denied.uri), 'content-length': String(deniedBody.length) })}\r\n${deniedBody}`,
      `${head({ origin: 'http://evil', 'content-length': String(bodyOf(small(), 'evil').length) })}\r\n${bodyOf(small(), 'evil')}`,
      honest(bodyOf(small(), 'last')),
    ]
    const { statuses, text } = await tell(requests.join(''))
    expect(statuses).toEqual([200, 200, 403, 200])
    const ids = [...text.matchAll(/"id":("[a-z]+"|null)/g)].map(([, id]) => id)
    expect(ids).toEqual(['"first"', '"denied"', 'null', '"last"'])
    expect(text).not.toContain('"id":"evil"')
  })

  test('HT26: a thousand requests behind one another are bounded by what the client reads', async () => {
    const before = arena.http.facts().resident
    const { statuses } = await tell(
      Array.from({ length: 1000 }, (_, i) => honest(bodyOf(small(), i))),
      {
        until: (text) => text.endsWith('}') && (text.match(/HTTP\/1\.1 /g) ?? []).length >= 1000,
      },
    )
    expect(statuses).toHaveLength(1000)
    expect(arena.http.facts().resident - before).toBeLessThan(300)
  })
})

describe('bodies', () => {
  test('HT19: a body that says that it is too long is refused before it comes', async () => {
    for (const length of ['1048577', '4194305', '1000000000000', '9007199254740991']) {
      const answer = await tell(`${head({ 'content-length': length })}\r\n`)
      expect(answer.statuses, length).toEqual([413])
      expect(answer.closed, length).toBe(true)
    }
  })

  test('HT19: chunks without end are refused once they are too long, and nothing is kept of them', async () => {
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

  test('HT19: a body that is packed is refused, whatever is in it', async () => {
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

  test('HT19: a body that is shorter than it says is never served', async () => {
    const body = bodyOf()
    const { statuses, text } = await tell(`${head({ 'content-length': String(body.length + 1) })}\r\n${body}`, {
      quiet: 300,
    })
    expect(statuses, text).toEqual([])
  })

  test('HT17: a body that is longer than it says is served as it says, and the rest is no request', async () => {
    const body = bodyOf()
    const { statuses, text } = await tell(`${head({ 'content-length': String(body.length) })}\r\n${body}xyz`)
    // The complaint about the rest may overtake the answer, and ends the connection.
    expect([[200], [200, 400], [400]], text.slice(-200)).toContainEqual(statuses)
  })

  test('HT18: who waits to be told to go on is told so, or refused, and holds nothing up', async () => {
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

  test('HT18: nothing is upgraded, tunnelled, traced or asked of all', async () => {
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

  test('HT31: nothing that is asked for can forge an event of a stream', async () => {
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

describe('slowness', () => {
  test('HT24: who is hung up on and does not hang up takes no place', async () => {
    const { hostname, port } = arena.http.url as URL
    const before = arena.http.facts().descriptors
    const said = [
      'garbage\r\n\r\n',
      `GET /mcp HTTP/1.1\r\nHost: ${own()}\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n`,
      `${head({ 'content-length': '1000000000' })}\r\n`,
      `CONNECT x:1 HTTP/1.1\r\nHost: ${own()}\r\n\r\n`,
      `GET /x HTTP/1.0\r\nHost: ${own()}\r\n\r\n`,
      `${honest()}garbage`,
    ]
    const sockets = Array.from({ length: 60 }, (_, i) => {
      const socket = connect({ port: Number(port), host: hostname, allowHalfOpen: true })
      socket.on('error', () => {})
      socket.on('data', () => {})
      socket.write(said[i % said.length] ?? '')
      return socket
    })
    await sleep(500)
    const after = await until(
      () => arena.http.facts().descriptors,
      (open) => open <= before,
      14_000,
    )
    expect(after).toBeLessThanOrEqual(before)
    for (const socket of sockets) socket.destroy()
  })

  test('HT21: many who do not read large answers are bounded together, and the others are served', async () => {
    writeFileSync(join(arena.world.root, 'huge.txt'), 'The quick brown fox jumps over the lazy dog.\n'.repeat(340_000))
    const large = { uri: `${arena.world.address}/huge.txt` }
    const body = bodyOf(large)
    const request = `${head({ 'mcp-name': headerValue(large.uri), 'content-length': String(body.length) })}\r\n${body}`
    const { hostname, port } = arena.http.url as URL
    const before = arena.http.facts().resident
    const sockets = Array.from({ length: 300 }, () => {
      const socket = connect(Number(port), hostname)
      socket.on('error', () => {})
      socket.write(request)
      return socket.pause()
    })
    let most = 0
    const watch = setInterval(() => {
      most = Math.max(most, arena.http.facts().resident)
    }, 200)
    // Behind all of them in the queue.
    await control(arena.wire('http 2026-07-28'), 80_000)
    clearInterval(watch)
    // 64 that are being made, and 256 MiB that wait. All of them would be 4.5 GB.
    expect(most - before).toBeLessThan(2500)
    for (const socket of sockets) socket.destroy()
  }, 90_000)

  test('HT18 HT21: who sends or reads too slowly is cut off, and the others do not notice', async () => {
    // More than the buffers of the system between the two take.
    writeFileSync(join(arena.world.root, 'huge.txt'), 'The quick brown fox jumps over the lazy dog.\n'.repeat(340_000))
    const large = { uri: `${arena.world.address}/huge.txt` }
    const open = arena.http.facts().descriptors
    const body = bodyOf(large)
    const length = String(Buffer.byteLength(body))
    const request = `${head({ 'mcp-name': headerValue(large.uri), 'content-length': length })}\r\n${body}`
    async function* drip(text: string, ms: number) {
      for (const byte of text) {
        yield byte
        await sleep(ms)
      }
    }
    const patient: RawOptions = { until: () => false, within: 100_000 }
    const { hostname, port } = arena.http.url as URL
    const unread = Array.from({ length: 8 }, () => {
      const socket = connect(Number(port), hostname)
      socket.on('error', () => {})
      socket.write(request)
      socket.pause()
      return socket
    })
    const slowHeads = Array.from({ length: 20 }, () => tell(drip(`${head()}x-more: ${'y'.repeat(1000)}`, 100), patient))
    const slowBodies = Array.from({ length: 20 }, () => tell([`${head({ 'content-length': length })}\r\n{`], patient))
    const start = performance.now()
    for (let i = 0; i < 5; i++) {
      await sleep(1000)
      await control(arena.wire('http 2026-07-28'))
    }
    expect(arena.http.facts().descriptors).toBeGreaterThanOrEqual(open + 48)
    for (const { statuses, closed } of await Promise.all(slowHeads)) {
      expect(closed).toBe(true)
      expect(statuses.filter((status) => status === 200)).toEqual([])
    }
    for (const { closed } of await Promise.all(slowBodies)) expect(closed).toBe(true)
    // What nobody reads is cut after a minute.
    await sleep(Math.max(0, 70_000 - (performance.now() - start)))
    expect(arena.http.facts().descriptors).toBeLessThanOrEqual(open)
    for (const socket of unread) socket.destroy()
  }, 150_000)
})
