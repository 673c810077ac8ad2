import { expect } from 'vitest'
import type { Arena } from './attack-arena.ts'
import { modernHeaders, type RawAnswer, type RawOptions, raw } from './attack-http.ts'
import { withMeta } from './attack-wire.ts'
import { controlPath } from './attack-world.ts'

/** The bytes of requests, and what comes back for them. */
export function rawOf(arena: Arena) {
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

  return { small, bodyOf, own, head, honest, tell, chunked }
}

/** That nothing hidden in a request was taken for a second one, and that no request was served that is in doubt. */
export function expectOneRefusal({ statuses, text }: RawAnswer, what: string): void {
  expect(statuses, `${what}: ${text.slice(0, 300)}`).toHaveLength(1)
  expect(statuses[0], what).toBeGreaterThanOrEqual(400)
  expect(statuses[0], what).toBeLessThan(500)
  expect(text, what).not.toContain('still here')
}
