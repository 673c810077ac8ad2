import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Session, startSession } from './session.ts'
import { median } from './support.ts'

const repository = new URL('..', import.meta.url).pathname
const main = join(repository, 'dist/cli/main.js')
const budget = 8000

const firstQuestion = 'how are cursors sealed'
/** The queries of the later calls, all different. */
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
  'the explorer draws a screen twice when it is resized, and loses the line under the cursor; where are the states of the screens, and what fetches what they show?',
  'error kinds',
  'install size of the package',
]

/** Cost of one call: CPU time of the server with all threads but without git processes, duration, and peak memory of the server so far. */
interface Call {
  readonly cpuSeconds: number
  readonly seconds: number
  readonly peakMegabytes: number
}

/**
 * Calls `assemble_context` of the built server over stdio, with the configuration that `hikidashi init` writes in a clone of this
 * repository: files, history, settings and a search. An earlier server makes the index. Returns the first call, which is cold, and the
 * median and maximum of the later calls, each with another query.
 */
export async function callsOnInit(): Promise<readonly Row[]> {
  return withClone(async (clone, env) => {
    execFileSync(process.execPath, [main, 'init'], { cwd: clone, env, stdio: 'ignore' })
    const start = () => startSession(['--config', join(clone, 'hikidashi.json')], env, clone)
    const first = await start()
    await untilIndexed(first)
    await first.end()
    const session = await start()
    await untilIndexed(session)
    await untilIdle(session)
    return measureCalls(session)
  })
}

/** Makes the same calls with only the files of the clone, without an index. */
export async function callsWithoutIndex(): Promise<readonly Row[]> {
  return withClone(async (clone, env) => measureCalls(await startSession([clone, '--only', 'files'], env, clone)))
}

type Row = readonly [name: string, call: Call]

async function withClone<T>(run: (clone: string, env: NodeJS.ProcessEnv) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), 'hikidashi-context-'))
  try {
    const clone = join(folder, 'clone')
    execFileSync('git', ['clone', '--quiet', repository, clone])
    return await run(clone, { ...process.env, HOME: folder, XDG_STATE_HOME: join(folder, 'state') })
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Calls with the first query, with the later queries, and with the later queries again. Ends the session. */
async function measureCalls(session: Session): Promise<readonly Row[]> {
  try {
    const begun: Call = { cpuSeconds: session.cpuSeconds(), seconds: 0, peakMegabytes: peakOf(session) }
    const call = async (query: string): Promise<Call> => {
      const [cpu, time] = [session.cpuSeconds(), performance.now()]
      const { content } = await session.ask('tools/call', { name: 'assemble_context', arguments: { query, budget } })
      if (!Array.isArray(content)) throw new Error(`assemble_context has no answer to ${JSON.stringify(query)}`)
      return {
        cpuSeconds: session.cpuSeconds() - cpu,
        seconds: (performance.now() - time) / 1000,
        peakMegabytes: peakOf(session),
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
      ['the server before the first call', begun],
      ['first call', cold],
      ...rowsOf(`${later.length} later calls, other questions`, later),
      ...rowsOf('the same questions again', again),
    ]
  } finally {
    await session.end()
  }
}

const peakOf = (session: Session): number => (session.memory().most * 2 ** 20) / 1e6

async function untilIndexed(session: Session): Promise<void> {
  for (;;) {
    const { contents } = await session.ask('resources/read', { uri: 'search://clone?q=anchor' })
    const [found] = contents as readonly { readonly text: string }[]
    const { notes } = JSON.parse(found?.text ?? '{}') as { readonly notes?: readonly string[] }
    if (notes?.length === 0) return
    await sleep(100)
  }
}

/** Waits until the server is idle, because a mount may still open after the index of another one is complete. */
async function untilIdle(session: Session): Promise<void> {
  for (let before = Number.NEGATIVE_INFINITY; session.cpuSeconds() - before > 0.02; ) {
    before = session.cpuSeconds()
    await sleep(500)
  }
}

/** The median and the maximum of calls, as two rows. */
function rowsOf(name: string, calls: readonly Call[]): readonly Row[] {
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
