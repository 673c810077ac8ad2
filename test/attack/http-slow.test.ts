import { writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { defaultLimits } from '../../src/server/index.ts'
import { control, useArena } from './harness/arena.ts'
import { headerValue, type RawOptions } from './harness/http.ts'
import { rawOf } from './harness/raw.ts'
import { startFixture, until } from './harness/target.ts'

/** The deadlines are short here, so that nobody waits for them; what they are by default is asserted below. */
const deadlines = { headersTime: 5000, requestTime: 8000, slow: 10_000 }
// Behind many who read slowly, the control client waits for its turn as everybody does: nobody is asked who they are.
const arena = useArena({ limits: deadlines }, startFixture, { work: 60_000, onlyHttp: true })
const { bodyOf, head, honest, own, tell } = rawOf(arena)

describe('slow HTTP clients', () => {
  test('have by default 10 seconds for headers, 30 for a request, and a minute to read an answer, or 45 seconds without reading any of it (HT18, HT21)', () => {
    expect(defaultLimits).toMatchObject({ headersTime: 10_000, requestTime: 30_000, slow: 60_000, stalled: 45_000 })
  })

  test('hold no descriptor of the server after it has closed their connection (HT24)', async () => {
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

  test('that do not read their large answers make memory grow by less than 2,300 MiB, and another client is served (HT21)', async () => {
    writeFileSync(join(arena.world.root, 'huge.txt'), 'The quick brown fox jumps over the lazy dog.\n'.repeat(340_000))
    const large = { uri: `${arena.world.address}/huge.txt` }
    const body = bodyOf(large)
    const request = `${head({ 'mcp-name': headerValue(large.uri), 'content-length': String(body.length) })}\r\n${body}`
    const { hostname, port } = arena.http.url as URL
    // The connection of the control is open before and after.
    await control(arena.wire('http 2026-07-28'), 100_000)
    const { resident: before, descriptors } = arena.http.facts()
    const sockets = Array.from({ length: 150 }, () => {
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
    await control(arena.wire('http 2026-07-28'), 100_000)
    clearInterval(watch)
    // 64 that are being made, and 256 MiB that wait. All of them would be 2.2 GB more.
    expect(most - before).toBeLessThan(2300)
    for (const socket of sockets) socket.destroy()
    // Those that it has not noticed yet would be counted by whoever counts next.
    const left = await until(
      () => arena.http.facts().descriptors,
      (now) => now <= descriptors,
    )
    expect(left).toBeLessThanOrEqual(descriptors)
  })

  test('are disconnected, and another client is answered meanwhile (HT18, HT21)', async () => {
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
    const most = await until(
      () => arena.http.facts().descriptors,
      (now) => now >= open + 48,
    )
    expect(most).toBeGreaterThanOrEqual(open + 48)
    await control(arena.wire('http 2026-07-28'))
    for (const { statuses, closed } of await Promise.all(slowHeads)) {
      expect(closed).toBe(true)
      expect(statuses.filter((status) => status === 200)).toEqual([])
    }
    for (const { closed } of await Promise.all(slowBodies)) expect(closed).toBe(true)
    // What nobody reads is cut, too.
    const left = await until(
      () => arena.http.facts().descriptors,
      (now) => now <= open,
      60_000,
    )
    expect(left).toBeLessThanOrEqual(open)
    for (const socket of unread) socket.destroy()
  }, 150_000)
})
