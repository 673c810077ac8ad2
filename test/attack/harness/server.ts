import { createLog } from '../../../src/cli/terminal/log.ts'
import type { Log } from '../../../src/core/log.ts'
import { createScrubber } from '../../../src/core/scrub.ts'
import {
  compileAccess,
  createCatalog,
  fileAddress,
  type Mount,
  notFound,
  type Principal,
  type Provider,
} from '../../../src/index.ts'
import { files } from '../../../src/providers/files/index.ts'
import { type HttpLimits, localPrincipal, serveHttp, serveStdio } from '../../../src/server/index.ts'
import { sliced } from '../../../src/wrap/sliced.ts'
import { memory } from '../../support/memory.ts'
import { faulty } from './faults.ts'
import { guises } from './guises.ts'
import { known, knownSecrets } from './known.ts'

/** The composition of the server under attack, as JSON in its first argument. */
export interface Setup {
  readonly transport: 'stdio' | 'http'
  readonly root: string
  readonly principal?: Principal
  /** The secret of the cursors. */
  readonly secret?: string
  /** Number of entries at `mem://many`. Without it, there is no such mount. */
  readonly many?: number
  readonly pages?: Readonly<Record<string, number>>
  readonly limits?: Partial<HttpLimits>
  readonly sse?: boolean
  readonly timeout?: number
  /** Time for requests in flight after the end of the input, in milliseconds. */
  readonly grace?: number
  /** Serves a source with the secrets of the environment, which are registered as known: `known://values`. */
  readonly known?: boolean
  /** Whether it has the mount `fault://planted`, which commits faults on request. */
  readonly faulty?: true
  /** Whether there is a mount of entries with hostile metadata: `guise://hostile`. */
  readonly guises?: true
}

/** Counts the calls of the other mounts, and serves the number at `count://calls/made`. */
function counted(provider: Provider, calls: { made: number }): Provider {
  const isControl = (path: string) => path === 'control.txt'
  return {
    ...provider,
    async *list(query, context) {
      calls.made++
      yield* provider.list(query, context)
    },
    read: (request, context) => {
      if (!isControl(request.path)) calls.made++
      return provider.read(request, context)
    },
    ...(provider.stat === undefined
      ? {}
      : {
          stat: (path, context) => {
            if (!isControl(path)) calls.made++
            return provider.stat?.(path, context) ?? Promise.reject(notFound())
          },
        }),
  }
}

/** Returns the memory in use after a garbage collection, in MiB. */
async function keptMemory(): Promise<number> {
  // Promises and finalizers need a few turns to close their resources.
  for (let i = 0; i < 3; i++) {
    globalThis.gc?.()
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  const { heapUsed, external } = process.memoryUsage()
  return Math.round((heapUsed + external) / 1024 / 1024)
}

function hanging(): Provider {
  // Blocks like a system call that does not return.
  setInterval(() => {}, 60_000)
  return {
    async *list() {},
    read: ({ path }, { signal }) => {
      if (path === 'forever') return new Promise(() => {})
      if (path !== 'hang') return Promise.reject(notFound())
      return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
    },
  }
}

async function main(setup: Setup): Promise<void> {
  const calls = { made: 0 }
  const rules = [{ allow: ['*'] }, { deny: ['*'], match: ['denied/**', '**/*.key', 'denied.txt'] }]
  const guarded = memory({ 'open.txt': 'open\n', 'denied.txt': 'no\n', 'denied/in.txt': 'no\n', 'server.key': 'no\n' })
  const state: Provider = {
    async *list() {},
    read: async ({ path }) => {
      if (path === 'kept') return [{ text: String(await keptMemory()) }]
      if (path !== 'made') throw notFound()
      return [{ text: JSON.stringify({ ...calls, polluted: Object.keys(Object.getPrototypeOf({})) }) }]
    },
  }
  const mounts: readonly Mount[] = [
    { address: fileAddress(setup.root), provider: sliced(counted(await files({ root: setup.root }), calls)) },
    { address: 'count://calls', provider: state },
    { address: 'rule://guarded', provider: counted(guarded, calls), access: compileAccess(rules) },
    { address: 'slow://source', provider: hanging() },
    ...(setup.known === true ? [{ address: 'known://values', provider: known(knownSecrets()) }] : []),
    { address: 'key://objects', provider: counted(memory({ toStringx: 'x' }), calls) },
    ...(setup.guises ? [{ address: 'guise://hostile', provider: memory(guises) }] : []),
    ...(setup.faulty ? [{ address: 'fault://planted', provider: faulty() }] : []),
    ...(setup.many === undefined
      ? []
      : [
          {
            address: 'mem://many',
            provider: memory(
              Object.fromEntries([...Array(setup.many).keys()].map((i) => [`e${String(i).padStart(7, '0')}`, `${i}`])),
            ),
          },
          {
            address: 'mem://none',
            provider: memory(Object.fromEntries([...Array(5000).keys()].map((i) => [`n${i}`, '']))),
            access: compileAccess([{ allow: ['nobody'] }]),
          },
        ]),
  ]
  const scrubber = setup.known === true ? createScrubber(knownSecrets()) : undefined
  const write = (line: string) => void process.stderr.write(line)
  const log: Log =
    scrubber !== undefined
      ? createLog({ level: 'debug', format: 'text', write, scrubber })
      : (level, message, facts) =>
          write(`${level} ${message} ${facts?.error instanceof Error ? facts.error.stack : ''}\n`)
  const catalog = createCatalog({
    mounts,
    log,
    ...(setup.secret === undefined ? {} : { secret: Buffer.from(setup.secret) }),
    ...(setup.pages === undefined ? {} : { pages: setup.pages }),
  })
  const options = {
    name: 'attacked',
    version: '0.0.0',
    view: catalog.view,
    log,
    principal: setup.principal ?? localPrincipal,
    ...(setup.timeout === undefined ? {} : { timeoutMs: setup.timeout }),
    ...(scrubber === undefined ? {} : { scrubber }),
  }
  if (setup.transport === 'stdio') {
    await serveStdio({ ...options, ...(setup.grace === undefined ? {} : { grace: setup.grace }) })
    process.exit(0)
  }
  const service = await serveHttp({
    ...options,
    host: '127.0.0.1',
    port: 0,
    ...(setup.limits === undefined ? {} : { limits: setup.limits }),
    ...(setup.sse === undefined ? {} : { sse: setup.sse }),
  })
  process.stderr.write(`listening on ${service.url}\n`)
  // A hanging call would keep the process until it is killed.
  process.once(
    'SIGTERM',
    () =>
      void service
        .close()
        .then(() => catalog.close())
        .then(() => process.exit(0)),
  )
}

await main(JSON.parse(process.argv[2] ?? '{}') as Setup)
