import { Agent } from 'node:http'
import { createCatalog } from '../../src/core/catalog.ts'
import type { Principal } from '../../src/core/provider.ts'
import { type HttpService, serveHttp } from '../../src/server/http/serve-http.ts'
import { pause } from '../support/live.ts'
import { type Client, createClient, makeTrouble } from './client.ts'
import { createHistory, createPatience, createRandom, type Fact, type Random } from './history.ts'
import type { Link, Message } from './link.ts'
import { openHttp } from './link-http.ts'
import { openPipes, pipesTo } from './link-stdio.ts'
import { createSources, type Fault, lateMounts, principals, versionOf } from './sources.ts'
import type { Rules } from './validate.ts'

export interface WorldOptions {
  readonly seed: number
  readonly clients: number
  readonly writers: number
  /** Storms, each followed by a quiet moment. */
  readonly storms: number
  /** How often each writer writes in a storm, and how often clients make trouble. */
  readonly writes: number
  readonly troubles: number
  /** How long it may take until all is quiet, in milliseconds. What has not come then never will. */
  readonly patience: number
  readonly fault?: Fault
}

/** What each client is, by its number: the transports and revisions in turn. */
const kinds: readonly (readonly [transport: 'http' | 'stdio', revision: string])[] = [
  ['http', '2026-07-28'],
  ['http', '2025-11-25'],
  ['stdio', '2026-07-28'],
  ['http', '2026-07-28'],
  ['http', '2025-03-26'],
  ['stdio', '2025-11-25'],
  ['http', '2025-06-18'],
  ['stdio', '2024-11-05'],
]

export const rules: Rules = {
  maySee: (principal, uri) => {
    if (uri.startsWith('mem://world/secret/')) return principal === 'chief'
    if (uri.startsWith('mem://world/team/')) return principal !== 'guest'
    return uri.startsWith('mem://') && !uri.startsWith('mem://nowhere/')
  },
  covers: (asked, uri) => asked.endsWith('/') && uri.startsWith(asked),
  isStable: (uri) => !uri.includes('/come/') && !uri.includes('/own/'),
  exact: true,
}

/** Lets clients and writers at a server, and tells what they saw. The same seed lets them want the same. */
export async function run(options: WorldOptions): Promise<readonly Fact[]> {
  const { seed, patience, fault = {} } = options
  const history = createHistory()
  const random = createRandom(seed)
  const sources = createSources(history, createRandom(random.below(2 ** 31)), fault)
  // The checks look at each quiet moment: nothing may be held back then. What the throttle holds back is in test/unit/throttle.test.ts.
  const changes = { subscriptions: 5000, perPrincipal: 100_000, listIntervalMs: 0 }
  const catalog = createCatalog({ mounts: sources.mounts, changes })
  const view = (principal: Principal) => {
    const whole = catalog.view(principal)
    return fault.view?.(whole, principal, catalog) ?? whole
  }
  const shared = { view, name: 'world', version: '0', log: () => {} }
  const serve = (principal: Principal) =>
    serveHttp({ ...shared, principal, host: '127.0.0.1', port: 0, limits: { drain: 2000 } })
  const services = new Map<string, HttpService>()
  for (const principal of principals) services.set(principal.id, await serve(principal))
  const agent = new Agent({ keepAlive: true, maxSockets: 64 })

  const newClient = (number: number): Client => {
    const principal = principals[number % principals.length] as Principal
    const [transport, revision] = kinds[number % kinds.length] as (typeof kinds)[number]
    const own = createRandom(random.below(2 ** 31))
    const connect = async (stray: (message: Message) => void): Promise<Link> => {
      if (transport === 'stdio') return openPipes(pipesTo({ ...shared, principal }), revision, stray)
      return openHttp(services.get(principal.id)?.url ?? '', agent, revision)
    }
    return createClient({
      ...{ number, principal: principal.id, history, random: own, connect, versionOf },
      wish: () => wishOf(number, own, sources.uris, sources.bells),
      acknowledged: (uris) => {
        // The moment at which a watch that is not armed is found out.
        for (const uri of uris) if (uri.endsWith(`/own/${number}`)) sources.write(uri)
      },
    })
  }
  const clients = Array.from({ length: options.clients }, (_, number) => newClient(number))
  const bellsOf = (client: Client) =>
    sources.bells.filter((_, i) => i < 2 || i === 2 + (clients.indexOf(client) % lateMounts))

  const until = createPatience(history, patience)
  const idle = async (those: readonly Client[]): Promise<void> => {
    let done = false
    void Promise.all(those.map((client) => client.idle())).then(() => {
      done = true
    })
    await until('an answer', () => done)
  }

  /**
   * Rings the bells, and waits until every client has heard its own. Whoever begins anew meanwhile, as one does that slept
   * while its service ended, hears them the next time. Resolves to whether nobody did.
   */
  const ring = async (awake: readonly Client[]): Promise<boolean> => {
    const missing = () => awake.filter(({ stream }) => stream === undefined)
    const stuck = () => {
      const those = missing().map((client) => {
        const number = clients.indexOf(client)
        return `${number} (${kinds[number % kinds.length]?.join(' ')}: ${client.state})`
      })
      return ` (${sources.watched ? 'watched' : 'not watched'}; clients ${those.join(', ')})`
    }
    await until('a stream', () => sources.watched && missing().length === 0, 5, stuck)
    const before = awake.map((client) => ({
      ...{ client, stream: client.stream },
      bells: bellsOf(client).map((bell) => ({ bell, heard: client.heard(bell) })),
    }))
    for (const bell of sources.bells) sources.write(bell)
    const isSame = ({ client, stream }: (typeof before)[number]) => client.stream === stream
    await until('a bell', () =>
      before.every((one) => !isSame(one) || one.bells.every(({ bell, heard }) => one.client.heard(bell) > heard)),
    )
    return before.every(isSame)
  }

  /** Waits until everything that has happened was told to everybody who can hear. */
  const calm = async (): Promise<void> => {
    const awake = clients.filter(({ stalled }) => !stalled)
    await idle(awake)
    // What was told in one go may come in any order; what is told after that comes after it. A client that was told of the
    // bells once more, since it resumed or a source came back, is one behind.
    let rounds = 0
    for (let all = 0; rounds < 4 && all < 20; all++) rounds = (await ring(awake)) ? rounds + 1 : 0
    await until('a round in which nobody begins anew', () => rounds === 4)
    await idle(awake)
    const streams = awake.flatMap(({ stream }) => (stream === undefined ? [] : [stream]))
    // Nobody says so, but by now a session is told of the list.
    for (const client of awake)
      if (client.stream !== undefined && client.link?.modern === false)
        history.add({ kind: 'ack', stream: client.stream, uris: [], list: true })
    history.add({ kind: 'quiet', streams })
  }

  const writer = async (own: Random): Promise<void> => {
    for (let i = 0; i < options.writes; i++) {
      const kind = own()
      if (kind < 0.1) sources.write(`mem://world/come/${own.below(10)}`, own() < 0.5)
      else sources.write(kind < 0.5 ? (sources.uris[own.below(20)] ?? '') : own.pick(sources.uris))
      await pause(5 + own.below(100))
    }
  }

  /** Restarts, stalls and whatever else clients do, one after the other. */
  const trouble = async (): Promise<void> => {
    for (let i = 0; i < options.troubles; i++) {
      makeTrouble(random.pick(clients), random)
      if (random() < 0.05) sources.lose(random)
      await pause(random.below(12))
    }
  }

  /** Ends the service of a principal as an operator does. */
  const end = async (principal: Principal): Promise<void> => {
    const those = clients.filter((client, number) => {
      const [transport] = kinds[number % kinds.length] as (typeof kinds)[number]
      return transport === 'http' && number % principals.length === principals.indexOf(principal) && !client.stalled
    })
    const streams = those
      .filter(({ link }) => link?.modern)
      .flatMap(({ stream }) => (stream === undefined ? [] : [stream]))
    history.add({ kind: 'closing', streams })
    await services.get(principal.id)?.close()
    await until('an end', () => those.every(({ stream }) => stream === undefined || !streams.includes(stream)))
  }

  const restart = async (principal: Principal): Promise<void> => {
    await end(principal)
    services.set(principal.id, await serve(principal))
  }

  for (const client of clients) void client.start()
  await calm()
  for (let storm = 0; storm < options.storms; storm++) {
    const writers = Array.from({ length: options.writers }, () => writer(createRandom(random.below(2 ** 31))))
    await Promise.all([...writers, storm === 1 ? restart(principals[1] as Principal) : trouble()])
    // Some sleep through the calm.
    for (const client of clients) if (client.stalled && random() < 0.9) client.flow()
    await calm()
  }
  for (const client of clients) client.flow()
  await calm()

  for (const client of clients) client.retire()
  for (const principal of principals) await end(principal)
  for (const client of clients) client.close()
  agent.destroy()
  await until('the end of the watches', () => sources.watching === 0)
  history.add({ kind: 'remains', what: 'watch', count: sources.watching })
  await catalog.close()
  return history.facts
}

function wishOf(number: number, random: Random, uris: readonly string[], bells: readonly string[]) {
  const late = number % lateMounts
  const keeps = bells.filter((_, i) => i < 2 || i === 2 + late)
  const own = `mem://late-${late}/own/${number}`
  const some = random.some(uris, 6)
  const others = [
    'mem://world/come/3',
    'mem://world/secret/',
    'mem://world/',
    'mem://plain/deep/',
    'mem://nowhere/x',
    ':',
  ]
  const asked = [...new Set([...some, own, ...random.some(others, 2), ...keeps])]
  return { uris: asked, follows: [...some.slice(0, 2), own], keeps, list: random() < 0.5 }
}
