import { createHash } from 'node:crypto'
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { Agent } from 'node:http'
import { Agent as SecureAgent } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { overviewUri } from '../../src/core/meta.ts'
import type { Principal } from '../../src/core/provider.ts'
import { pause } from '../support/live.ts'
import type { Postgres } from '../support/postgres.ts'
import { type Replica, startReplica, withClock } from '../support/replicas.ts'
import { type ReverseProxy, startProxyOfReplicas, steadyPorts } from '../support/reverse-proxy.ts'
import { type Client, createClient, makeTrouble } from './client.ts'
import { createHistory, createPatience, createRandom, type Fact, type Random } from './history.ts'
import { address, type Items, kinds, routes, serveItems, versionOf } from './items.ts'
import { openHttp } from './link-http.ts'
import { openSse } from './link-sse.ts'
import { principals } from './sources.ts'
import { type Rules, validate } from './validate.ts'

export interface ReplicasOptions {
  readonly seed: number
  readonly database: Postgres
  readonly clients: number
  /** How many URIs each client asks for. */
  readonly asked: number
  readonly items: number
  readonly writers: number
  readonly writes: number
  readonly troubles: number
  /** How long the faults go on, in milliseconds: each kind happens at least once, or none where this is 0. */
  readonly forMs: number
  readonly patience: number
  /** Whether the clients reach the replicas through nginx, with `deploy/nginx-replicas.conf`. By default each goes to one of them. */
  readonly behindNginx?: boolean
  /** Whether each fault is told on stderr once everything was told that had changed. */
  readonly progress?: boolean
  /** Breaks the log of changes, to see that the checks notice. */
  readonly sabotage?: (database: Postgres, schema: string) => Promise<void>
}

/** Who may see which items, by the prefixes of their ids. */
const access = [
  { allow: ['*'], match: [`items/${kinds.open}*`, 'items/come*'] },
  { allow: ['team'], match: `items/${kinds.team}*` },
  { allow: ['chief'], match: `items/${kinds.secret}*` },
]

export const rules: Rules = {
  maySee: (principal, uri) => {
    if (uri.startsWith(`${address}/items/${kinds.secret}`)) return principal === 'chief'
    if (uri.startsWith(`${address}/items/${kinds.team}`)) return principal !== 'guest'
    return uri === overviewUri || uri.startsWith(`${address}/`)
  },
  covers: (asked, uri) => uri.startsWith(asked.endsWith('/') ? asked : `${asked}/`),
  isStable: (uri) => /\/[a-z]\d+$/.test(uri),
  exact: false,
}

/**
 * The violations of a history of replicas. A client that goes from one replica to another without having been told of anything may
 * read a copy that is up to 2 seconds older there (docs/guarantees.md, G3), so V8 is not asked of it.
 */
export const violationsIn = (facts: readonly Fact[]) => validate(facts, rules).filter(({ check }) => check !== 'V8')

const revisions = ['2026-07-28', '2025-11-25', '2026-07-28', '2025-06-18', '2026-07-28', '2025-03-26', '2024-11-05']
const names = ['a', 'b', 'c']
let runs = 0

/**
 * Lets clients at three replicas, and writers at an API that has to be polled, and does to the replicas and to their database what
 * the world does: they are killed, ended, and stopped for a while, and their connections break.
 */
export async function runReplicas(options: ReplicasOptions): Promise<readonly Fact[]> {
  const { seed, database, patience } = options
  const history = createHistory()
  const random = createRandom(seed)
  const home = mkdtempSync(join(tmpdir(), 'hikidashi-replicas-'))
  const config = join(home, 'hikidashi.json')
  const schema = `replicas_${process.pid}_${++runs}`
  const items = await serveItems(history, options.items)
  const pooled = { keepAlive: true, maxSockets: 64 }
  const agent = options.behindNginx ? new SecureAgent(pooled) : new Agent(pooled)
  const [proxyPort = 0, ...ports] = await steadyPorts(names.length + 1)
  const portOf = (name: string) => ports[names.indexOf(name)] ?? 0
  const clockOf = (name: string) => join(home, `clock-${name}`)
  let proxy: ReverseProxy | undefined
  const replicas = new Map<string, Replica>()
  const tokens = join(home, 'tokens.json')
  writeFileSync(tokens, JSON.stringify({ version: 1, tokens: principals.map(storedTokenOf) }), { mode: 0o600 })
  writeFileSync(config, JSON.stringify(configOf(items, schema, tokens)))
  const env = { STORE: database.url, CURSORS: 'a secret of these tests, long enough' }
  /** The faults so far, for a report of a failure. */
  const happened: string[] = []
  const until = createPatience(history, patience)
  const state = () => ` (${happened.slice(-3).join(', ')}; ${stateOf(clients)})`

  const serve = async (name: string): Promise<void> => {
    const own = { ...env, ...withClock(clockOf(name)) }
    const replica = await startReplica(name, config, { cwd: home, env: own, port: portOf(name) })
    replicas.set(name, replica)
    void replica.running.ended.then(({ code, signal, err }) => {
      if (replicas.get(name) === replica) replicas.delete(name)
      if (signal !== 'SIGKILL' && code !== 0)
        history.add({ kind: 'stray', client: -1, text: `a replica ended with ${code ?? signal}: ${err}` })
    })
  }
  const at = new Map<Client, string>()
  const clients = Array.from({ length: options.clients }, (_, number): Client => {
    const own = createRandom(random.below(2 ** 31))
    const { id: principal } = principals[Math.floor(number / revisions.length) % principals.length] as Principal
    const token = tokenOf(principal)
    const client: Client = createClient({
      ...{ number, principal, history, random: own, versionOf },
      connect: async () => {
        const revision = revisions[number % revisions.length] ?? ''
        const by = (upstream: string) =>
          at.set(client, names.find((name) => upstream.endsWith(`:${portOf(name)}`)) ?? '')
        const openLink = (url: string, told?: typeof by) =>
          revision === '2024-11-05' ? openSse(url, agent, told, token) : openHttp(url, agent, revision, told, token)
        if (proxy !== undefined) return openLink(`${proxy.url}/mcp`, by)
        const replica = own.pick([...replicas.values()])
        at.set(client, replica.name)
        return openLink(replica.url)
      },
      wish: () => {
        const some = own.some(items.uris, options.asked)
        const [kept = ''] = some
        return { uris: some, follows: some.slice(0, 3), keeps: [kept], list: own() < 0.5 }
      },
      acknowledged: () => {},
    })
    return client
  })

  /** Waits until everything that has happened was told to everybody who can hear. */
  const calm = async (): Promise<void> => {
    for (const client of clients) client.flow()
    await until('a stream', () => clients.every(({ stream }) => stream !== undefined), 5, state)
    const quiet = (): Fact => ({
      kind: 'quiet',
      streams: clients.flatMap(({ stream }) => (stream === undefined ? [] : [stream])),
    })
    const missing = () =>
      clients.some(({ stream, busy }) => stream === undefined || busy) ||
      validate([...history.facts, quiet()], rules).some(({ check }) => check === 'V2' || check === 'V6')
    await until('the news of a write', () => !missing(), 250, state)
    history.add(quiet())
    moved.clear()
  }
  /** Items that came or went since the last calm: one that does both between two polls is not told of. */
  const moved = new Set<string>()
  const writer = async (own: Random): Promise<void> => {
    for (let i = 0; i < options.writes; i++) {
      const uri = `${address}/items/come${own.below(6)}`
      if (own() > 0.2) items.write(own.pick(items.uris))
      else if (!moved.has(uri)) {
        moved.add(uri)
        items.write(uri, items.has(uri))
      }
      await pause(20 + own.below(200))
    }
  }
  const storm = () =>
    Promise.all(Array.from({ length: options.writers }, () => writer(createRandom(random.below(2 ** 31)))))
  const trouble = async (): Promise<void> => {
    for (let i = 0; i < options.troubles; i++) {
      makeTrouble(random.pick(clients), random)
      await pause(random.below(50))
    }
  }
  /** The streams at a replica that must get their result when it ends. */
  const streamsAt = (replica: Replica): readonly number[] => {
    const there = clients.filter((client) => at.get(client) === replica.name)
    const listening = there.filter(({ link, stalled }) => link?.modern && !stalled)
    return listening.flatMap(({ stream }) => (stream === undefined ? [] : [stream]))
  }
  /** Ends a replica as an operator does: the streams there get their result. */
  const end = async (replica: Replica): Promise<void> => {
    replicas.delete(replica.name)
    history.add({ kind: 'closing', streams: streamsAt(replica) })
    await replica.stop()
  }
  const anyReplica = () => random.pick([...replicas.values()])

  const faults: readonly (readonly [name: string, fault: () => Promise<unknown>])[] = [
    ['clients misbehave', trouble],
    [
      'a replica is killed',
      async () => {
        const { name, stop } = anyReplica()
        replicas.delete(name)
        await stop('SIGKILL')
        await serve(name)
      },
    ],
    [
      'a replica ends',
      async () => {
        // With few clients behind a proxy, some replica may have no stream at all.
        const listenedTo = [...replicas.values()].filter((replica) => streamsAt(replica).length > 0)
        const replica = listenedTo.length > 0 ? random.pick(listenedTo) : anyReplica()
        await end(replica)
        await serve(replica.name)
      },
    ],
    // For longer than the leases of a replica last, or for less.
    [
      'a replica stands still',
      async () => {
        const { child } = anyReplica().running
        child.kill('SIGSTOP')
        await pause(random.pick([1000, 8000]))
        child.kill('SIGCONT')
      },
    ],
    // Somebody sets the clock of a machine, and later sets it right.
    [
      'a clock jumps',
      async () => {
        const { name } = anyReplica()
        writeFileSync(clockOf(name), String(random.pick([-1, 1]) * (60_000 + random.below(86_400_000))))
        await pause(1500)
        if (random() < 0.5) writeFileSync(clockOf(name), '0')
      },
    ],
    [
      'the database restarts',
      async () => {
        await database.stop()
        await pause(random.below(1000))
        await database.start()
      },
    ],
    [
      'the database is killed',
      async () => {
        await database.kill()
        await database.start()
      },
    ],
    [
      'the database stands still',
      async () => {
        database.freeze()
        await pause(random.pick([500, 4000]))
        database.thaw()
      },
    ],
    [
      'the connections of the database are cut',
      async () => {
        await database.run(
          `select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'hikidashi'`,
        )
      },
    ],
  ]

  try {
    for (const name of names) await serve(name)
    if (options.behindNginx) proxy = await startProxyOfReplicas(proxyPort, ports, { forMany: true })
    for (const client of clients) void client.start()
    await calm()
    await options.sabotage?.(database, schema)
    await storm()
    await calm()
    const start = performance.now()
    const left = () => options.forMs - (performance.now() - start)
    for (let count = 0; options.forMs > 0 && (count < faults.length || left() > 0); count++) {
      const [name, fault] = faults[count] ?? random.pick(faults)
      happened.push(name)
      await Promise.all([storm(), fault()])
      await calm()
      if (options.progress) process.stderr.write(`${Math.round((performance.now() - start) / 1000)} s: ${name}\n`)
    }
    for (const client of clients) client.close()
    agent.destroy()
    await proxy?.close()
    proxy = undefined
    for (const replica of replicas.values())
      for (const [what, count] of Object.entries(await remainsIn(replica)))
        history.add({ kind: 'remains', what: `${what} of ${replica.name}`, count })
    for (const replica of [...replicas.values()]) await end(replica)
    const found = await database.run(
      `select (select count(*)::int from pg_stat_activity where application_name = 'hikidashi') as connections,
        (select count(*)::int from ${schema}.leases where expires > ${schema}.now_ms()) as leases`,
    )
    for (const [what, count] of Object.entries(found[0] ?? {}))
      history.add({ kind: 'remains', what, count: Number(count) })
  } finally {
    for (const client of clients) client.close()
    for (const replica of replicas.values()) await replica.stop('SIGKILL')
    agent.destroy()
    await proxy?.close()
    await items.close()
    rmSync(home, { recursive: true, force: true })
  }
  return history.facts
}

/** How long a replica may take to forget clients that are gone, in milliseconds: their sessions end after 5 s without a request. */
const forgettingMs = 60_000
/** Descriptors that a replica needs for itself: its port, its pipes, and its connections to the database and to the API. */
const ownDescriptors = 64

/** Returns the number of sessions, requests, connections and descriptors that a replica still holds for clients that are gone. */
async function remainsIn({ url, running }: Replica): Promise<Readonly<Record<string, number>>> {
  const end = performance.now() + forgettingMs
  for (;;) {
    const authorization = { Authorization: `Bearer ${tokenOf('chief')}`, Connection: 'close' }
    const text = await (await fetch(new URL('/metrics', url), { headers: authorization })).text()
    const gaugeOf = (name: string) => Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(text)?.[1] ?? Number.NaN)
    const remains = {
      sessions: gaugeOf('hikidashi_sessions'),
      requests: gaugeOf('hikidashi_requests_in_flight'),
      // One is that of this request.
      connections: gaugeOf('hikidashi_connections') - 1,
      descriptors: Math.max(0, readdirSync(`/proc/${running.child.pid}/fd`).length - ownDescriptors),
    }
    const counts = Object.values(remains)
    if (counts.some(Number.isNaN)) throw new Error(`A replica does not tell what it holds:\n${text}`)
    if (counts.every((count) => count === 0) || performance.now() > end) return remains
    await new Promise((resolve) => setTimeout(resolve, 250))
  }
}

/** How many clients are in each state. */
function stateOf(clients: readonly Client[]): string {
  const counts = new Map<string, number>()
  for (const { state, busy, stream } of clients)
    if (busy || stream === undefined) counts.set(state, (counts.get(state) ?? 0) + 1)
  return Array.from(counts, ([state, count]) => `${count} × ${state}`)
    .slice(0, 5)
    .join('; ')
}

const tokenOf = (id: string) => `hkd_${createHash('sha256').update(id).digest('hex')}`

/** The token of a principal, as the file of tokens has it. */
function storedTokenOf({ id, roles }: Principal) {
  const sha256 = createHash('sha256').update(tokenOf(id)).digest('hex')
  return { id, name: id, sha256, roles, created: '2026-01-01T00:00:00.000Z' }
}

function configOf(items: Items, schema: string, tokens: string) {
  return {
    mounts: {
      [address]: {
        ...{ provider: 'api', url: items.url, allowAddresses: ['127.0.0.1'], insecure: true, poll: '1s', routes },
        access,
      },
    },
    replicas: true,
    store: { postgres: { env: 'STORE' }, schema, connections: 4 },
    cursorSecret: { env: 'CURSORS' },
    http: {
      ...{ listen: '127.0.0.1:0', allowedHosts: ['localhost'], auth: { tokens }, sse: true, metrics: true },
      limits: {
        ...{ newConnections: 0, badTokens: 0, connectionsPerAddress: 1024, sessions: 1000, sessionIdle: '5s' },
        // The three principals are those of hundreds of clients.
        perPrincipal: { rate: 0, concurrent: 64, waiting: 1024, connections: 1024, sessions: 1000 },
      },
    },
  }
}
