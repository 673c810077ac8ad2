import { describe, expect, test } from 'vitest'
import { useArena } from './harness/arena.ts'
import { headerValue, sentinel } from './harness/http.ts'
import { expectRefused, postsOf } from './harness/post.ts'
import { type Answer, modern } from './harness/wire.ts'

const arena = useArena({}, undefined, { onlyHttp: true })
const { ask, bodyOf, control } = postsOf(arena)

describe('HTTP headers of a request:', () => {
  test('a Content-Type that any web page may post, or that is not application/json, is refused with 415 (HT06)', async () => {
    for (const type of [
      'text/plain',
      'text/plain;charset=UTF-8',
      'application/x-www-form-urlencoded',
      'multipart/form-data; boundary=x',
      'text/json',
      'application/json-rpc',
      'application/vnd.api+json',
      '*/*',
      'application/*',
    ])
      expectRefused(await ask({ 'content-type': type }), 415, type)
  })

  test('a Content-Type that is missing, or is not JSON in UTF-8, is refused (HT07)', async () => {
    for (const type of [
      'application/json; charset=latin1',
      'application/json, x',
      'application/json; charset=utf-16',
      'application/jsonx',
      'xapplication/json',
      'application/json; charset=utf-8; charset=utf-16',
      'application/json; x="y',
      'application/json text/plain',
      'application/json\ttext/plain',
      ';application/json',
      '',
    ])
      expectRefused(await ask({ 'content-type': type }), [415, 400], type)
    expectRefused(await ask({ 'content-type': undefined }), 415, 'none')
    expectRefused(await ask({ 'content-type': ['application/json', 'text/plain'] }), 415, 'two')
    const long = await ask({ 'content-type': `application/json; charset=${'x'.repeat(1024 * 1024)}` }).catch(
      (error: NodeJS.ErrnoException) => error.code,
    )
    if (typeof long === 'string') expect(['ECONNRESET', 'EPIPE']).toContain(long)
    else expectRefused(long as Answer, [431, 400], 'long')
  })

  test('an Accept header that allows neither JSON nor an event stream is refused with 406, and any other is served (HT08)', async () => {
    for (const accept of [
      'text/html',
      'image/*',
      'application/xml',
      '',
      'json',
      'application/json;q=0',
      'application/json;q=0.0, text/event-stream;q=0',
      '*/*;q=0',
      'text/plain, text/html;q=0.9',
      'x'.repeat(20_000),
    ])
      expectRefused(await ask({ accept }), 406, accept)
    for (const accept of [
      undefined,
      'application/json',
      'text/event-stream',
      '*/*',
      'application/*',
      'text/*',
      'text/html, */*;q=0.1',
      'Application/JSON',
      'application/json;q=0.001',
      'application/json; charset=utf-8',
    ])
      expect((await ask({ accept })).status, accept).toBe(200)
  })

  test('a header of the protocol version or method that is missing, different or repeated is refused with -32020 or -32022 (HT09)', async () => {
    for (const version of [
      undefined,
      '2025-11-25',
      '2024-11-05',
      '2027-01-01',
      '',
      '2026-07-28x',
      '2026-7-28',
      `${modern}, ${modern}`,
      'latest',
      'é',
      [modern, modern],
      [modern, '2025-11-25'],
    ]) {
      const answer = await ask({ 'mcp-protocol-version': version })
      expectRefused(answer, 400, version)
      expect([-32020, -32022]).toContain(answer.message?.error?.code)
    }
    // A header that is modern does not lift an older body either.
    const legacy = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'resources/read', params: control() })
    expectRefused(await ask({}, legacy), 400, 'an older body')
    for (const method of [
      undefined,
      'resources/list',
      'Resources/read',
      '',
      'resources/read, resources/read',
      ['resources/read', 'resources/read'],
    ]) {
      const answer = await ask({ 'mcp-method': method })
      expectRefused(answer, 400, method)
      expect(answer.message?.error?.code).toBe(-32020)
    }
  })

  test('an Mcp-Name header that differs from the URI in the body in any byte is refused with -32020 (HT11)', async () => {
    const { uri } = control()
    const others = [
      undefined,
      '',
      `${uri}x`,
      uri.slice(0, -1),
      uri.toUpperCase(),
      uri.replace('control', '%63ontrol'),
      uri.replace('/control', '/./control'),
      `${uri}/`,
      `${uri}?`,
      `"${uri}"`,
      `${uri},${uri}`,
      [uri, uri],
      [uri, 'file:///x'],
      `<${uri}>`,
      encodeURIComponent(uri),
    ]
    for (const name of others) {
      const answer = await ask({ 'mcp-name': name })
      expectRefused(answer, 400, name)
      expect(answer.message?.error?.code, JSON.stringify(name)).toBe(-32020)
    }
    // White space around a value is not part of it (RFC 9110, 5.5).
    expect((await ask({ 'mcp-name': `  ${uri}\t ` })).status).toBe(200)
    // But in a URI it is.
    const spaced = await ask({ 'mcp-name': `${uri} ` }, bodyOf({ uri: `${uri} ` }))
    expectRefused(spaced, 400, 'a space behind')
  })

  test('an Mcp-Name header in the base64 form is decoded if it is exactly that form, and refused otherwise (HT12)', async () => {
    // One whose base64 ends in padding, which may not be left out.
    const uris = [control().uri, `${arena.world.address}/abc`]
    const uri = uris.find((one) => Buffer.byteLength(one) % 3 !== 0) ?? expect.fail('neither has padding')
    const encoded = Buffer.from(uri).toString('base64')
    expect((await ask({ 'mcp-name': sentinel(encoded) }, bodyOf({ uri }))).status).toBe(200)
    const wrong = [
      sentinel(sentinel(encoded)),
      sentinel(Buffer.from(sentinel(encoded)).toString('base64')),
      sentinel(encoded.replace(/=*$/, '')),
      sentinel(`${encoded}=`),
      sentinel(`${encoded}====`),
      sentinel(` ${encoded}`),
      sentinel(encoded.replace(/(....)/, '$1 ')),
      sentinel(`${encoded}!`),
      sentinel(''),
      sentinel(Buffer.from([0xff, 0xfe]).toString('base64')),
      sentinel(Buffer.from(`${uri}\r\nX: y`).toString('base64')),
      sentinel(Buffer.from(`\ufeff${uri}`).toString('base64')),
      sentinel(Buffer.from(`${uri}\0`).toString('base64')),
      sentinel(Buffer.from(uri, 'utf16le').toString('base64')),
      `=?utf-8?b?${encoded}?=`,
      `=?base64?${encoded}`,
      `?base64?${encoded}?=`,
      `=?base64?${encoded}?=x`,
      `x=?base64?${encoded}?=`,
      encoded,
    ]
    for (const name of wrong) {
      const answer = await ask({ 'mcp-name': name }, bodyOf({ uri }))
      expectRefused(answer, 400, name)
      expect(answer.message?.error?.code, name).toBe(-32020)
    }
    // The alphabet of URLs is another spelling of the same bytes, and spellings do not count.
    const odd = `${arena.world.address}/${'ü>?~'.repeat(8)}`
    const url = sentinel(
      Buffer.from(odd)
        .toString('base64url')
        .padEnd(Math.ceil(Buffer.byteLength(odd) / 3) * 4, '='),
    )
    expectRefused(await ask({ 'mcp-name': url }, bodyOf({ uri: odd })), 400, url)
  })

  test('a URI that looks like the base64 form of a header must be encoded in the Mcp-Name header (HT13)', async () => {
    const uri = '=?base64?eA==?='
    expectRefused(await ask({ 'mcp-name': uri }, bodyOf({ uri })), 400, uri)
    const answer = await ask({ 'mcp-name': headerValue(uri) }, bodyOf({ uri }))
    expect(answer.message?.error?.code).toBe(-32602)
  })

  test('a URI beyond ASCII must be encoded in the Mcp-Name header (HT14)', async () => {
    const uri = `${arena.world.address}/ü.txt`
    expectRefused(await ask({ 'mcp-name': uri }, bodyOf({ uri })), 400, 'Latin-1')
    const utf8 = Buffer.from(uri).toString('latin1')
    expectRefused(await ask({ 'mcp-name': utf8 }, bodyOf({ uri })), 400, 'UTF-8')
    expect((await ask({ 'mcp-name': headerValue(uri) }, bodyOf({ uri }))).status).toBe(200)
  })
})
