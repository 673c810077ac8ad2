import { writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { control, useArena } from './harness/arena.ts'
import { headerValue } from './harness/http.ts'
import { expectOneRefusal, rawOf } from './harness/raw.ts'

const arena = useArena({}, undefined, { onlyHttp: true })
const { bodyOf, chunked, head, honest, own, small, tell } = rawOf(arena)

describe('the head of an HTTP request:', () => {
  test('a Host that is missing, repeated, empty, or contradicted by the target is refused (HT03)', async () => {
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
    for (const [what, top] of Object.entries(cases)) expectOneRefusal(await tell(`${top}\r\n${bodyOf()}`), what)
  })

  test('a head with folded headers, control characters or bytes beyond ASCII is refused (HT14)', async () => {
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
      expectOneRefusal(answer, what)
    }
  })

  test('thousands of headers or a header of a megabyte get one answer, 200 or 431, and a long URI gets 414 or 431 (HT14)', async () => {
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

describe('the end of an HTTP request:', () => {
  test('a request with an ambiguous end is refused, and nothing after it is processed (HT17)', async () => {
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
      expectOneRefusal(answer, what)
    }
  })

  test('a body with chunk extensions or trailers gets one answer, 200 or a refusal (HT17)', async () => {
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

  test('pipelined requests are answered in order, and each is allowed or refused by its own headers and URI (HT26)', async () => {
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

  const behind = (count: number) => Array.from({ length: count }, (_, i) => honest(bodyOf(small(), i))).join('')

  test('300 pipelined requests are answered in order, another client is answered meanwhile, and memory grows by less than 100 MiB (HT26)', async () => {
    const before = arena.http.facts().resident
    const count = 300
    let over = false
    const others = (async () => {
      while (!over) await control(arena.wire('http 2026-07-28'))
    })()
    const { statuses, text } = await tell(behind(count), {
      until: (text) => text.endsWith('}') && text.includes(`"id":${count - 1},`),
      within: 100_000,
    })
    over = true
    await others
    expect(statuses).toEqual(Array(count).fill(200))
    const ids = [...text.matchAll(/"2\.0","id":(\d+),/g)].map(([, id]) => Number(id))
    expect(ids).toEqual([...Array(count).keys()])
    expect(arena.http.facts().resident - before).toBeLessThan(100)
  }, 120_000)

  test('clients that send requests and read no answers stay connected, but no more is read from them, another client is answered, and memory grows by less than 150 MiB (HT26)', async () => {
    const before = arena.http.facts().resident
    writeFileSync(join(arena.world.root, 'wide.txt'), 'wide '.repeat(20_000))
    const wide = { uri: `${arena.world.address}/wide.txt` }
    const body = bodyOf(wide)
    const request = `${head({ 'mcp-name': headerValue(wide.uri), 'content-length': String(body.length) })}\r\n${body}`
    const many = Buffer.from(request.repeat(1000))
    const { hostname, port } = arena.http.url as URL
    const sockets = Array.from({ length: 10 }, () => {
      const socket = connect(Number(port), hostname).pause()
      socket.on('error', () => {})
      // More than the kernels of the two ends take by themselves.
      for (let i = 0; i < 40; i++) socket.write(many)
      return socket
    })
    const taken = () =>
      sockets.reduce((sum, { bytesWritten, writableLength }) => sum + bytesWritten - writableLength, 0)
    for (let last = -1; last !== taken(); await sleep(1000)) last = taken()
    for (const { destroyed, writableLength } of sockets) {
      expect(destroyed).toBe(false)
      expect(writableLength).toBeGreaterThan(1_000_000)
    }
    await control(arena.wire('http 2026-07-28'))
    expect(arena.http.facts().resident - before).toBeLessThan(150)
    for (const socket of sockets) socket.destroy()
  }, 120_000)

  test('a client that sends thousands of requests in one packet is disconnected, another client is answered, and memory grows by less than 150 MiB (HT26)', async () => {
    const before = arena.http.facts().resident
    const tiny = `GET / HTTP/1.1\r\nHost: ${own()}\r\n\r\n`
    for (let i = 0; i < 20; i++) {
      const { closed, statuses } = await tell(tiny.repeat(5000), { until: () => false })
      expect(closed).toBe(true)
      expect(statuses.length).toBeLessThan(5000)
    }
    await control(arena.wire('http 2026-07-28'))
    expect(arena.http.facts().resident - before).toBeLessThan(150)
  })
})
