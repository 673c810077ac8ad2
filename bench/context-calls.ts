import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { openCatalog } from '../src/config/build.ts'
import { loadConfig } from '../src/config/load.ts'
import { planConfig, searchesOf } from '../src/config/plan.ts'
import { createAssembleTool } from '../src/context/index.ts'
import type { Principal } from '../src/core/provider.ts'
import { createScrubber } from '../src/core/scrub.ts'
import { median } from './support.ts'

const repository = new URL('..', import.meta.url).pathname
const callMs = 60_000

const firstQuestion = 'how are cursors sealed'
/** What the later calls ask for, each something else. */
const laterQuestions: readonly string[] = [
  'access rules of mounts',
  'redaction of secrets',
  'watching files',
  'budget of tokens',
  'git history',
  'how does a client hear that a list changed',
  'JSON schema of the configuration',
  'which limits hold for child processes',
  'parse an RFC 6570 template',
  'where is the index of the search kept, and when is it built again',
  'what happens when a mount does not answer',
  'explorer virtual list scroll',
  'postgres foreign keys',
  'OAuth protected resource metadata',
  'sessions over HTTP end when they are idle',
  'completion of paths',
  'benchmarks',
  'createCatalog',
  'Japanese words of two characters',
  'memory of vectors and embeddings',
  'subscribe to a resource and unsubscribe again',
  'the terminal interface draws a screen twice when it is resized, and loses the line under the cursor; where are the states of the screens, and what fetches what they show?',
  'error kinds',
  'install size of the package',
]

/** What one call took: CPU of this process with all of its threads, without git's; and how far the memory of the process had grown. */
interface Call {
  readonly cpuSeconds: number
  readonly seconds: number
  readonly peakMegabytes: number
}

/**
 * Calls `assemble_context` on what `hikidashi init` writes in a clone of this repository: files, history, settings and a search. The first
 * call is cold; of the others, which ask for something else each time, the median and the longest are told.
 */
export async function callsOnInit(): Promise<readonly (readonly [name: string, call: Call])[]> {
  const folder = mkdtempSync(join(tmpdir(), 'hikidashi-context-'))
  const clone = join(folder, 'clone')
  try {
    execFileSync('git', ['clone', '--quiet', repository, clone])
    const env = { ...process.env, HOME: folder, XDG_STATE_HOME: join(folder, 'state') }
    const main = join(repository, 'src/cli/main.ts')
    execFileSync(process.execPath, [...process.execArgv, main, 'init'], { cwd: clone, env, stdio: 'ignore' })
    const loaded = await loadConfig(join(clone, 'hikidashi.json'), { env })
    if ('problems' in loaded) throw new Error('what init writes cannot be loaded')
    const catalog = await openCatalog(planConfig(loaded.config), {
      log: () => {},
      scrubber: createScrubber([]),
      store: { sqlite: { file: join(folder, 'store.sqlite') } },
    })
    try {
      const principal: Principal = { id: 'bench', roles: [] }
      const searches = searchesOf(catalog)
      for (const { provider } of searches) provider.feed()
      const isIndexed = async () => {
        const states = await Promise.all(searches.map(({ provider }) => provider.feedStatus()))
        return states.every((status) => status?.mounts.every(({ state }) => state === 'current') === true)
      }
      while (!(await isIndexed())) await sleep(100)
      const tool = createAssembleTool(catalog.view(principal))
      const call = async (query: string): Promise<Call> => {
        globalThis.gc?.()
        const [cpu, start] = [process.cpuUsage(), performance.now()]
        let peak = process.memoryUsage.rss()
        const timer = setInterval(() => {
          peak = Math.max(peak, process.memoryUsage.rss())
        }, 20)
        await tool.call({ query, budget: 8000 }, { principal, signal: AbortSignal.timeout(callMs) })
        clearInterval(timer)
        const { user, system } = process.cpuUsage(cpu)
        return {
          cpuSeconds: (user + system) / 1e6,
          seconds: (performance.now() - start) / 1000,
          peakMegabytes: Math.max(peak, process.memoryUsage.rss()) / 1e6,
        }
      }
      const callAll = async () => {
        const calls: Call[] = []
        for (const query of laterQuestions) calls.push(await call(query))
        return calls
      }
      const cold = await call(firstQuestion)
      const later = await callAll()
      const again = await callAll()
      return [
        ['first call', cold],
        ...rowsOf(`${later.length} later calls, other questions`, later),
        ...rowsOf('the same questions again', again),
      ]
    } finally {
      await catalog.close()
    }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** The median and the most of calls, as two rows. */
function rowsOf(name: string, calls: readonly Call[]): readonly (readonly [string, Call])[] {
  const of = (key: keyof Call) => calls.map((call) => call[key])
  const peakMegabytes = Math.max(...of('peakMegabytes'))
  return [
    [`${name}: median`, { cpuSeconds: median(of('cpuSeconds')), seconds: median(of('seconds')), peakMegabytes }],
    [
      `${name}: the longest`,
      { cpuSeconds: Math.max(...of('cpuSeconds')), seconds: Math.max(...of('seconds')), peakMegabytes },
    ],
  ]
}
