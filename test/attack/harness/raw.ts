import { expect } from 'vitest'
import type { Arena } from './arena.ts'
import { modernHeaders, type RawAnswer, type RawOptions, raw } from './http.ts'
import { withMeta } from './wire.ts'
import { controlPath } from './world.ts'

/** Sends raw requests, and returns the raw answers. */
export function rawOf(arena: Arena) {
  const small = () => ({ uri: `${arena.world.address}/${controlPath}` })
  const bodyOf = (params: Readonly<Record<string, unknown>> = small(), id: string | number = 1) =>
    JSON.stringify({ jsonrpc: '2.0', id, method: 'resources/read', params: withMeta(params, true) })
  const own = () => (arena.http.url as URL).host

  /** Returns the head of a valid read of 2026-07-28. The given headers replace or extend its headers. */
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

  return { small, bodyOf, own, head, honest, tell, chunked }
}

/** Checks that a hidden part of a request was not taken for a second request, and that an ambiguous request was refused. */
export function expectOneRefusal({ statuses, text }: RawAnswer, what: string): void {
  expect(statuses, `${what}: ${text.slice(0, 300)}`).toHaveLength(1)
  expect(statuses[0], what).toBeGreaterThanOrEqual(400)
  expect(statuses[0], what).toBeLessThan(500)
  expect(text, what).not.toContain('still here')
}
