import * as fc from 'fast-check'
import { afterAll, describe, expect, test } from 'vitest'
import { announceSeed, hold, json } from './harness/arbitraries.ts'
import { type StdioWire, useArena } from './harness/arena.ts'
import { jsonHeaders, modernHeaders, raw, send, sessionHeaders } from './harness/http.ts'
import { meta, type Wire, withMeta } from './harness/wire.ts'
import { controlPath } from './harness/world.ts'

const arena = useArena({ many: 1000, pages: { first: 50 } })
afterAll(announceSeed)

const control = () => ({ uri: `${arena.world.address}/${controlPath}` })

describe('the next request is answered after', () => {
  const chunk = fc.oneof(
    fc.uint8Array({ maxLength: 60 }).map((bytes) => Buffer.from(bytes)),
    fc
      .constantFrom(
        '{',
        '}',
        '[',
        ']',
        '"',
        '\\',
        ',',
        ':',
        '\n',
        '\r\n',
        '\0',
        '\ufeff',
        'null',
        '"jsonrpc":"2.0"',
        '"id":1',
        '"method":"ping"',
        '{"jsonrpc":"2.0","id":7,"method":"ping"}',
        '{"jsonrpc":"2.0","method":"x"}',
        '"__proto__":{}',
        '\u2028',
      )
      .map((text) => Buffer.from(text)),
    json.map((value) => Buffer.from(JSON.stringify(value))),
  )
  // Each letter is a byte.
  const bytes = fc.array(chunk, { maxLength: 20 }).map((chunks) => Buffer.concat(chunks).toString('latin1'))

  test.each(['stdio 2026-07-28', 'stdio 2025-11-25'] as const)('random frames over %s', async (name) => {
    const wire = arena.wire(name) as StdioWire
    let next = 0
    await hold(
      'frames',
      fc.asyncProperty(bytes, async (junk) => {
        const id = `sync-${next++}`
        const body = JSON.stringify({
          jsonrpc: '2.0',
          id,
          method: 'resources/read',
          params: withMeta(control(), wire.modern),
        })
        await wire.pipe.write(Buffer.concat([Buffer.from(junk, 'latin1'), Buffer.from(`\n${body}\n`)]))
        expect((await wire.pipe.answerTo(id)).message?.result).toBeDefined()
        expect(wire.pipe.faults).toEqual([])
      }),
      400,
    )
  })

  test('random bodies over HTTP, each of which is answered too', async () => {
    const wires = [arena.wire('http 2026-07-28'), arena.wire('http 2025-11-25')]
    await hold(
      'bodies',
      fc.asyncProperty(bytes, fc.nat(1), async (junk, which) => {
        const wire = wires[which] as Wire
        const base = wire.modern
          ? modernHeaders('resources/read', control())
          : { ...jsonHeaders, ...sessionHeaders(wire) }
        const {
          status,
          message,
          raw: body,
        } = await send(wire.target, arena.world, {
          headers: base,
          body: Buffer.from(junk, 'latin1'),
        })
        expect([200, 202, 400, 404], body.toString()).toContain(status)
        if (status !== 202) expect(message).toBeDefined()
      }),
      400,
    )
  })

  test('random headers over HTTP, which get only known statuses', async () => {
    const names = fc.constantFrom(
      'Host',
      'Origin',
      'Content-Type',
      'Accept',
      'MCP-Protocol-Version',
      'Mcp-Method',
      'Mcp-Name',
      'Mcp-Session-Id',
      'Content-Length',
      'Transfer-Encoding',
      'Content-Encoding',
      'Expect',
      'Connection',
      'Upgrade',
      'Last-Event-ID',
      'Cookie',
      'Authorization',
      'X-Forwarded-Host',
      'TE',
      'Trailer',
      'Range',
      'If-None-Match',
      ' ',
      '',
      ':',
    )
    const value = fc.oneof(
      fc.string({ unit: 'binary', maxLength: 30 }),
      fc.constantFrom(
        'chunked',
        'close',
        'keep-alive',
        '0',
        '1',
        '-1',
        '99999999999',
        '=?base64?eA==?=',
        '=?base64?',
        '*/*',
        'application/json',
        '2026-07-28',
        '2025-11-25',
        'null',
        'http://evil',
        '\r\n',
        '\r\n\r\nGET / HTTP/1.1\r\n\r\n',
        '\0',
        'localhost',
        '100-continue',
        'bytes=0-1',
      ),
    )
    const line = fc.oneof(
      { weight: 8, arbitrary: fc.constant('POST /mcp HTTP/1.1') },
      { weight: 1, arbitrary: fc.string({ unit: 'binary', maxLength: 60 }) },
      {
        weight: 1,
        arbitrary: fc.constantFrom(
          'GET /mcp HTTP/1.1',
          'GET /healthz HTTP/1.1',
          'POST /mcp HTTP/1.0',
          'POST /mcp',
          'OPTIONS * HTTP/1.1',
        ),
      },
    )
    await hold(
      'headers',
      fc.asyncProperty(
        line,
        fc.array(fc.tuple(names, value), { maxLength: 5 }),
        fc.boolean(),
        async (first, more, behind) => {
          const body = JSON.stringify({
            jsonrpc: '2.0',
            id: 1,
            method: 'resources/read',
            params: { ...control(), _meta: meta },
          })
          const own = Object.entries({
            Host: (arena.http.url as URL).host,
            ...modernHeaders('resources/read', control()),
            'Content-Length': String(body.length),
          }).map(([name, text]) => `${name}: ${text}\r\n`)
          const extra = more.map(([name, text]) => `${name}: ${text}\r\n`)
          const headers = (behind ? [...own, ...extra] : [...extra, ...own]).join('')
          const { statuses, text } = await raw(arena.http, arena.world, `${first}\r\n${headers}\r\n${body}`, {
            quiet: 30,
            within: 5000,
            until: (seen) => /HTTP\/1\.1 [2-5]\d\d [\s\S]*\r\n\r\n/.test(seen),
          })
          for (const status of statuses)
            expect([100, 200, 202, 400, 403, 404, 405, 406, 408, 413, 415, 417, 431], text.slice(0, 300)).toContain(
              status,
            )
          expect(arena.world.canaries.leaks).toEqual([])
        },
      ),
      // Those that say that more is to come are not answered, and waited for.
      150,
      { interruptAfterTimeLimit: 25_000 },
    )
  })
})
