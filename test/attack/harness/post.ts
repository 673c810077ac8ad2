import { expect } from 'vitest'
import type { Arena } from './arena.ts'
import { modernHeaders, send } from './http.ts'
import { type Answer, withMeta } from './wire.ts'
import { controlPath } from './world.ts'

/** Sends reads of 2026-07-28 over HTTP that are valid except for what a test changes. */
export function postsOf(arena: Arena) {
  const control = () => ({ uri: `${arena.world.address}/${controlPath}` })
  const bodyOf = (params: Readonly<Record<string, unknown>> = control(), method = 'resources/read') =>
    JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: withMeta(params, true) })
  const headersOf = () => modernHeaders('resources/read', control())
  const own = () => (arena.http.url as URL).host
  const port = () => (arena.http.url as URL).port

  /** Sends a valid read of 2026-07-28 with other headers. `undefined` omits a header. */
  function ask(
    headers: Readonly<Record<string, string | readonly string[] | undefined>>,
    body = bodyOf(),
    path?: string,
  ): Promise<Answer> {
    const all = Object.entries({ ...headersOf(), ...headers }).filter(([, value]) => value !== undefined)
    return send(arena.http, arena.world, {
      headers: Object.fromEntries(all) as Record<string, string>,
      body,
      ...(path === undefined ? {} : { path }),
    })
  }

  return { control, bodyOf, headersOf, own, port, ask }
}

/** Checks that a request was refused, with a short answer and without headers that would admit a web page. */
export function expectRefused(answer: Answer, status: number | readonly number[], what: unknown): void {
  const shown = `${JSON.stringify(what)}: ${answer.status} ${answer.raw.subarray(0, 200)}`
  expect([status].flat(), shown).toContain(answer.status)
  expect(answer.message?.result, shown).toBeUndefined()
  expect(answer.raw.length, shown).toBeLessThan(2048)
  expect(
    answer.headers?.map(([name]) => name).filter((name) => name.startsWith('access-control')),
    shown,
  ).toEqual([])
}
