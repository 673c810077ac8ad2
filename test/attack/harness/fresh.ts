import { afterEach } from 'vitest'
import type { StdioWire } from './arena.ts'
import { openStdio } from './stdio.ts'
import { startFixture, type Target } from './target.ts'
import { type Params, withMeta } from './wire.ts'
import { controlPath, type World } from './world.ts'

/** Five seconds, and extra time for a busy machine. */
export const soon = 15_000

/** Formats a request as the line of a client that writes without waiting for answers. */
export const lineOf = (
  wire: { readonly modern: boolean },
  id: string | number,
  params: Params,
  method = 'resources/read',
) => `${JSON.stringify({ jsonrpc: '2.0', id, method, params: withMeta(params, wire.modern) })}\n`

/** Creates functions that start stdio servers for one test, and send requests to them. The servers are stopped after the test. */
export function freshWires(worldOf: () => World) {
  const started: Target[] = []
  afterEach(async () => {
    await Promise.all(started.splice(0).map((target) => target.stop()))
  })
  const urlOf = (path: string) => ({ uri: `${worldOf().address}/${path}` })
  return {
    /** @param grace Maximum time of its exit, in milliseconds. By default the default of the server. */
    async fresh(version: string, grace?: number): Promise<StdioWire> {
      const target = await startFixture(worldOf(), {
        transport: 'stdio',
        ...(grace === undefined ? {} : { grace }),
      })
      started.push(target)
      return openStdio(target, worldOf(), version)
    },
    urlOf,
    small: () => urlOf(controlPath),
    large: () => urlOf('big.txt'),
  }
}
