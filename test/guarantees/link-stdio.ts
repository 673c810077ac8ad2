import { PassThrough, type Readable, type Writable } from 'node:stream'
import { type StdioOptions, serveStdio } from '../../src/server/stdio/serve-stdio.ts'
import { clientInfo, type Ear, type Link, type Message, newest, requestOf, subscriptionOf } from './link.ts'

/** A client's ends of the two pipes to its server. */
export interface Pipes {
  readonly input: Writable
  readonly output: Readable
}

/** Pipes to a server of their own in this process. */
export function pipesTo(options: StdioOptions): Pipes {
  const input = new PassThrough()
  const output = new PassThrough()
  serveStdio({ ...options, input, output, grace: 2000 }).then(() => output.end())
  return { input, output }
}

/**
 * A connection over a pair of pipes.
 *
 * @param stray Takes a message that belongs to nothing that was asked.
 */
export async function openPipes(
  { input, output }: Pipes,
  revision: string,
  stray: (message: Message) => void,
): Promise<Link> {
  const modern = revision === newest
  const waiting = new Map<unknown, (message: Message) => void>()
  const failing = new Set<(error: Error) => void>()
  const ears = new Map<unknown, Ear>()
  /** Whatever says it no more may still be on its way. */
  const closed = new Set<unknown>()
  let count = 0
  let rest = ''
  let over = false

  const take = (message: Message): void => {
    const wait = waiting.get(message.id)
    const cancelled = message.method === 'notifications/cancelled' ? message.params?.requestId : undefined
    const id = modern ? (message.id ?? cancelled ?? subscriptionOf(message)) : undefined
    const ear = ears.get(id)
    if (wait !== undefined) {
      waiting.delete(message.id)
      wait(message)
    } else if (closed.has(id)) return
    else if (ear === undefined) stray(message)
    else if (message.id !== undefined) {
      ears.delete(id)
      closed.add(id)
      ear.ended(message.result === undefined ? 'cut' : 'result')
    } else if (cancelled === undefined) ear.hear(message)
  }
  output.on('data', (chunk: Buffer) => {
    const lines = (rest + chunk.toString()).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) if (!over) take(JSON.parse(line) as Message)
  })
  output.on('end', () => {
    if (over) return
    over = true
    for (const fail of failing) fail(new Error('the pipe ended'))
    for (const ear of ears.values()) ear.ended('cut')
  })

  const write = (message: object) => void input.write(`${JSON.stringify(message)}\n`)
  const link: Link = {
    modern,
    resumable: false,
    ordered: true,
    ask: (method, params) =>
      new Promise((resolve, reject) => {
        if (over) return reject(new Error('the pipe ended'))
        const id = count++
        failing.add(reject)
        waiting.set(id, (message) => {
          failing.delete(reject)
          resolve(message)
        })
        write(requestOf(id, method, params, modern))
      }),
    listen: (notifications, ear) => {
      const id = modern ? `listen-${count++}` : undefined
      ears.set(id, ear)
      if (id !== undefined) write(requestOf(id, 'subscriptions/listen', { notifications }, true))
      return {
        close: () => {
          ears.delete(id)
          closed.add(id)
          const params = { requestId: id }
          if (id !== undefined) write({ jsonrpc: '2.0', method: 'notifications/cancelled', params })
        },
      }
    },
    resume: async () => {},
    stall: () => void output.pause(),
    flow: () => void output.resume(),
    close: () => {
      over = true
      for (const fail of failing) fail(new Error('the client hung up'))
      input.end()
      output.resume()
    },
  }
  if (!modern) {
    await link.ask('initialize', { protocolVersion: revision, capabilities: {}, clientInfo })
    write({ jsonrpc: '2.0', method: 'notifications/initialized' })
  }
  return link
}
