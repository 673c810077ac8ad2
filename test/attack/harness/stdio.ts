import { tally } from './tally.ts'
import type { Target } from './target.ts'
import { type Answer, initialize, inTime, legacy, type Message, modern, patience, type Wire, withMeta } from './wire.ts'
import type { World } from './world.ts'

/** The pipes of a stdio server, with all its output lines. */
export interface Pipe {
  /** Writes bytes unchanged. Resolves when the pipe has taken them, so never if the reader has stopped. */
  write(bytes: string | Uint8Array): Promise<void>
  /** Returns the next line that answers no awaited id. */
  next(within?: number): Promise<Answer>
  /** Returns the answer to an id. */
  answerTo(id: string | number, within?: number): Promise<Answer>
  /** Returns the answer to an id, or an earlier line that answers no id. */
  either(id: string | number, within?: number): Promise<Answer>
  /** Violations of the rules of the transport in the output. */
  readonly faults: readonly string[]
  /** Number of answers for each id, by `typeof id`. */
  readonly answered: ReadonlyMap<string, number>
  readonly lines: () => number
  /** Calls a function for every notification, until the returned function is called. */
  tap(see: (notification: Message) => void): () => void
  pause(): void
  resume(): void
}

const keyOf = (id: unknown) => `${typeof id} ${String(id)}`

export function openPipe(target: Target, world: World): Pipe {
  const waiting = new Map<string, (answer: Answer) => void>()
  const kept = new Map<string, Answer[]>()
  const others: Answer[] = []
  const readers: ((answer: Answer) => void)[] = []
  const taps = new Set<(notification: Message) => void>()
  const faults: string[] = []
  const answered = new Map<string, number>()
  let parts: Buffer[] = []
  let count = 0

  const takeKept = (id: unknown): Answer | undefined => {
    const all = kept.get(keyOf(id)) ?? []
    const answer = all.shift()
    if (all.length === 0) kept.delete(keyOf(id))
    return answer
  }
  const take = (line: Buffer) => {
    count++
    const answer = { raw: line, message: parse(line, faults) }
    if (faults.length > 100) faults.length = 100
    const id = answer.message?.id
    if (answer.message !== undefined && !('method' in answer.message)) {
      answered.set(keyOf(id), (answered.get(keyOf(id)) ?? 0) + 1)
      const wait = waiting.get(keyOf(id))
      if (wait !== undefined) {
        waiting.delete(keyOf(id))
        return wait(answer)
      }
      if (id !== null && id !== undefined) return void kept.set(keyOf(id), [...(kept.get(keyOf(id)) ?? []), answer])
    }
    if (answer.message?.method !== undefined && taps.size > 0) {
      for (const see of taps) see(answer.message)
      return
    }
    const reader = readers.shift()
    if (reader === undefined) others.push(answer)
    else reader(answer)
  }
  target.output.on('data', (chunk: Buffer) => {
    world.canaries.see(chunk, `stdout of ${target.pid}`)
    let start = 0
    for (let at = chunk.indexOf(10); at !== -1; at = chunk.indexOf(10, start)) {
      take(Buffer.concat([...parts, chunk.subarray(start, at)]))
      parts = []
      start = at + 1
    }
    if (start < chunk.length) parts.push(chunk.subarray(start))
  })

  return {
    write: (bytes) => {
      tally.add(target)
      return new Promise((resolve) => target.input.write(bytes, () => resolve()))
    },
    next: (within = patience) => {
      const answer = others.shift()
      if (answer !== undefined) return Promise.resolve(answer)
      return inTime(new Promise((resolve) => readers.push(resolve)), 'any line', within)
    },
    answerTo: (id, within = patience) => {
      const answer = takeKept(id)
      if (answer !== undefined) return Promise.resolve(answer)
      return inTime(new Promise((resolve) => waiting.set(keyOf(id), resolve)), `id ${id}`, within)
    },
    either: (id, within = patience) => {
      const answer = takeKept(id) ?? others.shift()
      if (answer !== undefined) return Promise.resolve(answer)
      const first = new Promise<Answer>((resolve) => {
        const take = (line: Answer) => {
          waiting.delete(keyOf(id))
          const at = readers.indexOf(take)
          if (at !== -1) readers.splice(at, 1)
          resolve(line)
        }
        waiting.set(keyOf(id), take)
        readers.push(take)
      })
      return inTime(first, `id ${id}`, within)
    },
    faults,
    answered,
    lines: () => count,
    tap: (see) => {
      taps.add(see)
      return () => void taps.delete(see)
    },
    pause: () => void target.output.pause(),
    resume: () => void target.output.resume(),
  }
}

function parse(line: Buffer, faults: string[]): Message | undefined {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(line)
    const value = JSON.parse(text) as unknown
    if (typeof value !== 'object' || value === null) throw new Error('not an object')
    for (const message of [value].flat() as Message[])
      if (message.jsonrpc !== '2.0') throw new Error('no message of JSON-RPC')
    if (/[\u2028\u2029\u0085]/.test(text)) faults.push(`a line with a Unicode line end: ${text.slice(0, 200)}`)
    return value as Message
  } catch (error) {
    faults.push(`${error}: ${line.subarray(0, 200).toString('latin1')}`)
    return undefined
  }
}

/** Opens a client over the pipes of a server. */
export async function openStdio(
  target: Target,
  world: World,
  version: string = modern,
): Promise<Wire & { readonly pipe: Pipe }> {
  const pipe = openPipe(target, world)
  const isModern = version === modern
  let next = 1
  const wire: Wire & { readonly pipe: Pipe } = {
    name: `stdio ${version}`,
    transport: 'stdio',
    modern: isModern,
    target,
    world,
    pipe,
    call: async (method, params = {}, { id = `call-${next++}`, within = patience } = {}) => {
      const answer = pipe.answerTo(id, within)
      answer.catch(() => {})
      await pipe.write(`${JSON.stringify({ jsonrpc: '2.0', id, method, params: withMeta(params, isModern) })}\n`)
      return answer
    },
    notify: (method, params = {}) =>
      pipe.write(`${JSON.stringify({ jsonrpc: '2.0', method, params: withMeta(params, isModern) })}\n`),
    close: () => target.stop(),
  }
  if (!isModern) {
    await wire.call('initialize', initialize(version))
    await wire.notify('notifications/initialized')
  }
  return wire
}

export const openLegacyStdio = (target: Target, world: World) => openStdio(target, world, legacy)
