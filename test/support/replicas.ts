import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type Running, start } from './cli.ts'
import type { EraClient, EraNotification } from './era-clients.ts'

/** One of several processes with the same configuration. */
export interface Replica {
  readonly name: string
  readonly port: number
  /** The URL of its MCP endpoint. */
  readonly url: string
  readonly running: Running
  /** Ends it with SIGTERM or another signal. */
  stop(signal?: NodeJS.Signals): Promise<void>
}

export interface ReplicaOptions {
  readonly cwd: string
  readonly env: Readonly<Record<string, string>>
  /** Port on the loopback interface. By default a free one. */
  readonly port?: number
}

/** Starts a replica on the loopback interface. */
export async function startReplica(name: string, config: string, options: ReplicaOptions): Promise<Replica> {
  const { cwd, env, port: wanted } = options
  const listen = wanted === undefined ? [] : ['--http', `127.0.0.1:${wanted}`]
  const running = start(['serve', '--config', config, '--replica', name, ...listen], { cwd, env })
  const [, url = '', port] = await running.says(/(http:\/\/127\.0\.0\.1:(\d+)\/mcp)/)
  const stop = async (signal: NodeJS.Signals = 'SIGTERM') => {
    running.child.kill(signal)
    await running.ended
  }
  return { name, url, port: Number(port), running, stop }
}

/** An API whose items a test changes, and the number of requests for its list. */
export interface ItemsApi {
  readonly url: string
  readonly items: Map<string, string>
  lists: number
  close(): Promise<void>
}

export async function startItemsApi(): Promise<ItemsApi> {
  const items = new Map<string, string>()
  const server = createServer((request, response) => {
    response.setHeader('Content-Type', 'application/json')
    const [, , id] = (request.url ?? '').split('/')
    if (id === undefined) {
      api.lists++
      response.end(JSON.stringify(Array.from(items, ([name, text]) => ({ id: name, title: text }))))
      return
    }
    const text = items.get(id)
    response.statusCode = text === undefined ? 404 : 200
    response.end(JSON.stringify({ id, text }))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const api: ItemsApi = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    items,
    lists: 0,
    close: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
  return api
}

/** Subscribes to URIs, by a stream or a session. Returns the URIs of notifications as they arrive. */
export async function listenTo(client: EraClient, revision: string, uris: readonly string[]): Promise<string[]> {
  const told: string[] = []
  client.fallbackNotificationHandler = async ({ params }: EraNotification) => {
    if (typeof params?.uri === 'string') told.push(params.uri)
  }
  if (revision !== '2026-07-28') for (const uri of uris) await client.subscribeResource({ uri })
  else await client.listen?.({ resourceSubscriptions: [...uris] })
  return told
}

/** Returns the environment of a process whose wall clock a test shifts by the milliseconds in a file. */
export function withClock(file: string): Readonly<Record<string, string>> {
  const fixture = new URL('../fixtures/clock.mjs', import.meta.url).href
  return { NODE_OPTIONS: `${process.env.NODE_OPTIONS ?? ''} --import=${fixture}`.trim(), CLOCK_FILE: file }
}
