import { Agent } from 'node:http'
import { overviewUri } from '../../src/core/meta.ts'
import type { Running } from '../support/cli.ts'
import { start } from '../support/cli.ts'
import { pause } from '../support/live.ts'
import { type Client, createClient, makeTrouble } from './client.ts'
import { address, createWrittenFolder } from './folder.ts'
import { createHistory, createPatience, createRandom, type Fact, type Random } from './history.ts'
import type { Link, Message } from './link.ts'
import { openHttp } from './link-http.ts'
import { openPipes } from './link-stdio.ts'
import { versionOf } from './sources.ts'
import { type Rules, validate } from './validate.ts'

export interface ServedOptions {
  readonly seed: number
  readonly clients: number
  readonly writers: number
  /** How often each writer writes in a storm, and how often clients make trouble. */
  readonly writes: number
  readonly troubles: number
  /** How long it may take until all is quiet, in milliseconds. What has not come then never will. */
  readonly patience: number
}

/** What each client is, by its number. A process of its own for each is dear: few are on stdio. */
const kinds: readonly (readonly [transport: 'http' | 'stdio', revision: string])[] = [
  ['http', '2026-07-28'],
  ['http', '2025-11-25'],
  ['http', '2026-07-28'],
  ['http', '2025-03-26'],
  ['stdio', '2026-07-28'],
  ['http', '2026-07-28'],
  ['http', '2025-06-18'],
  ['stdio', '2024-11-05'],
]

export const rules: Rules = {
  maySee: (_, uri) => uri === overviewUri || (uri.startsWith(`${address}/`) && !uri.startsWith(`${address}/secret/`)),
  covers: (asked, uri) => uri.startsWith(asked.endsWith('/') ? asked : `${asked}/`),
  isStable: (uri) => !/\/(?:come|own)\//.test(uri),
  // The system may tell twice of one write.
  exact: false,
}

/**
 * Lets clients and writers at servers that are processes of their own, over a folder, and does to both what the world does:
 * processes are killed, ended, and stopped for a while; the system forgets to tell; the folder goes, and is there again.
 */
export async function runServed(options: ServedOptions): Promise<readonly Fact[]> {
  const { seed, patience } = options
  const history = createHistory()
  const random = createRandom(seed)
  const folder = createWrittenFolder(history)
  const agent = new Agent({ keepAlive: true, maxSockets: 64 })
  const processes = new Set<Running>()
  const signalled = new Set<Running>()
  let http: { readonly process: Running; readonly url: string } | undefined

  const serve = (...args: readonly string[]): Running => {
    const process = start(['serve', '--config', folder.config, ...args], { cwd: folder.home })
    processes.add(process)
    void process.ended.then(({ code, signal, err }) => {
      processes.delete(process)
      if (signal === 'SIGKILL' && signalled.has(process)) return
      if (code !== 0) history.add({ kind: 'stray', client: -1, text: `a server ended with ${code ?? signal}: ${err}` })
    })
    return process
  }
  const serveHttp = async (): Promise<void> => {
    const process = serve('--http', '0')
    const [, url = ''] = await process.says(/ at (http:\/\/\S+\/mcp)\n/)
    http = { process, url }
  }
  const pids = new Map<Client, Running>()

  const newClient = (number: number): Client => {
    const [transport, revision] = kinds[number % kinds.length] as (typeof kinds)[number]
    const own = createRandom(random.below(2 ** 31))
    const connect = async (stray: (message: Message) => void): Promise<Link> => {
      if (transport === 'http') {
        if (http === undefined) throw new Error('there is no server just now')
        return openHttp(http.url, agent, revision)
      }
      const running = serve('--stdio')
      pids.set(client, running)
      return openPipes({ input: running.child.stdin, output: running.child.stdout }, revision, stray)
    }
    const client = createClient({
      ...{ number, principal: 'local', history, random: own, connect, versionOf },
      wish: () => wishOf(number, own, folder.uris),
      acknowledged: (uris) => {
        // The moment at which a watch that is not armed is found out.
        for (const uri of uris) if (uri.endsWith(`/own/${number}`)) folder.write(uri)
      },
    })
    return client
  }
  const clients = Array.from({ length: options.clients }, (_, number) => newClient(number))

  const until = createPatience(history, patience)

  /** Waits until everything that has happened was told to everybody who can hear. */
  const calm = async (): Promise<void> => {
    for (const client of clients) client.flow()
    await until('a stream', () => clients.every(({ stream }) => stream !== undefined))
    const quiet = (): Fact => ({
      kind: 'quiet',
      streams: clients.flatMap(({ stream }) => (stream === undefined ? [] : [stream])),
    })
    const missing = () =>
      clients.some(({ stream, busy }) => stream === undefined || busy) ||
      validate([...history.facts, quiet()], rules).some(({ check }) => check === 'V2' || check === 'V6')
    await until('the news of a write', () => !missing(), 100)
    history.add(quiet())
    moved.clear()
  }

  /** What came or went since the last calm: of what does both before anybody has looked, lists do not tell (G2). */
  const moved = new Set<string>()
  const comeOrGo = (uri: string, absent: boolean): void => {
    if (folder.has(uri) === absent) {
      if (moved.has(uri)) return
      moved.add(uri)
    }
    folder.write(uri, absent)
  }
  const writer = async (own: Random): Promise<void> => {
    for (let i = 0; i < options.writes; i++) {
      if (own() < 0.2) comeOrGo(`${address}/come/${own.below(6)}`, own() < 0.5)
      else folder.write(own.pick(folder.uris))
      await pause(5 + own.below(100))
    }
  }
  const storm = () =>
    Promise.all(Array.from({ length: options.writers }, () => writer(createRandom(random.below(2 ** 31)))))
  const trouble = async (): Promise<void> => {
    for (let i = 0; i < options.troubles; i++) {
      makeTrouble(random.pick(clients), random)
      await pause(random.below(25))
    }
  }

  /** Ends processes as an operator does: what is listened to gets its result. */
  const end = async (those: readonly Running[], ended: readonly Client[]): Promise<void> => {
    const listening = ended.filter(({ link, stalled }) => link?.modern && !stalled)
    const streams = listening.flatMap(({ stream }) => (stream === undefined ? [] : [stream]))
    history.add({ kind: 'closing', streams })
    for (const { child } of those) child.kill('SIGTERM')
    await until('the end of a server', () => those.every((one) => !processes.has(one)))
  }
  const isHttp = (client: Client) => kinds[clients.indexOf(client) % kinds.length]?.[0] === 'http'
  const kill = (running: Running | undefined): void => {
    if (running === undefined) return
    signalled.add(running)
    running.child.kill('SIGKILL')
  }

  const phases: readonly (() => Promise<unknown>)[] = [
    // Clients come and go, sleep, and lose their connections.
    () => Promise.all([storm(), trouble()]),
    // Servers are killed.
    async () => {
      const writing = storm()
      await pause(random.below(200))
      kill(http?.process)
      http = undefined
      for (const [client, running] of pids) if (random() < 0.5 && client.stream !== undefined) kill(running)
      await serveHttp()
      await writing
    },
    // The server ends, and another begins.
    async () => {
      const writing = storm()
      await pause(random.below(200))
      const ending = http?.process
      if (ending !== undefined) await end([ending], clients.filter(isHttp))
      await serveHttp()
      await writing
    },
    // The server sleeps, and too much happens for the system to tell it all.
    async () => {
      http?.process.child.kill('SIGSTOP')
      const writing = storm()
      folder.overflow()
      await writing
      http?.process.child.kill('SIGCONT')
    },
    // The folder goes; another is in its place, at once or a while later.
    async () => {
      folder.removeRoot()
      if (random() < 0.5) await pause(random.below(2000))
      for (const uri of folder.uris) folder.write(uri)
      await storm()
    },
  ]

  try {
    await serveHttp()
    for (const client of clients) void client.start()
    await calm()
    for (const phase of phases) {
      await phase()
      await calm()
    }
    for (const client of clients) client.retire()
    await end([...processes], clients)
    history.add({ kind: 'remains', what: 'process', count: processes.size })
  } finally {
    for (const client of clients) client.close()
    for (const running of processes) kill(running)
    agent.destroy()
    folder.delete()
  }
  return history.facts
}

function wishOf(number: number, random: Random, uris: readonly string[]) {
  const own = `${address}/own/${number}`
  const some = random.some(uris, 5)
  const others = ['come/3', 'secret/', '', 'deep/', 'open/hot'].map((path) => `${address}/${path}`)
  const asked = [...new Set([...some, own, ...random.some([...others, 'file:///elsewhere/x', ':'], 2)])]
  return { uris: asked, follows: [...some.slice(0, 2), own], keeps: [own], list: random() < 0.5 }
}
