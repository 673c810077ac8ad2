import { type Arena, isStdio } from './arena.ts'
import { jsonHeaders, modernHeaders, send, sessionHeaders } from './http.ts'
import { type Answer, type Params, type Wire, withMeta } from './wire.ts'
import { controlPath } from './world.ts'

/** Sends messages that are valid except for what a test changes, and returns the answers. */
export function messagesOf(arena: Arena) {
  const control = () => ({ uri: `${arena.world.address}/${controlPath}` })

  /** Sends one message unchanged, and returns its answer, with any id. */
  async function tell(wire: Wire, message: unknown, headers: Record<string, string> = {}): Promise<Answer> {
    const bytes = typeof message === 'string' ? message : JSON.stringify(message)
    if (isStdio(wire)) {
      await wire.pipe.write(`${bytes}\n`)
      const id = (JSON.parse(bytes) as { readonly id?: unknown } | null)?.id
      return typeof id === 'string' || typeof id === 'number' ? wire.pipe.either(id) : wire.pipe.next()
    }
    const base = wire.modern ? modernHeaders('resources/read', control()) : { ...jsonHeaders, ...sessionHeaders(wire) }
    return send(wire.target, arena.world, { headers: { ...base, ...headers }, body: bytes })
  }

  let next = 0
  const idOf = () => `m${next++}`

  const requestOf = (wire: Wire, over: Params = {}): Record<string, unknown> => ({
    jsonrpc: '2.0',
    id: idOf(),
    method: 'resources/read',
    params: withMeta(control(), wire.modern),
    ...over,
  })

  const without = (message: Record<string, unknown>, name: string) => {
    const { [name]: _, ...rest } = message
    return rest
  }

  return { control, tell, idOf, requestOf, without }
}
