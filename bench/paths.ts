/**
 * Measures each special path of the server with and without it: `npx tsx bench/paths.ts [--rounds N] [--seconds N] [--only NAME,...]
 * [--guarantees]`. For each path, a copy of the sources in which it is replaced by the plain form is bundled. `--guarantees` measures instead
 * what the guarantees of a read cost. Both servers do the same work in turns, within one run. The
 * load comes from wrk, which is a package of Debian. Linux only: it reads `/proc`.
 */
import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'
import { costOf, idMark } from './resources/load.ts'
import { type Running, start } from './resources/running.ts'
import { guarantees, paths, type SpecialPath, type Work } from './special-paths.ts'
import { fixed, median, progress, table } from './support.ts'

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '2' },
    only: { type: 'string', default: '' },
    guarantees: { type: 'boolean', default: false },
  },
})

const root = resolve(import.meta.dirname, '..')
const temporary = mkdtempSync(join(tmpdir(), 'hikidashi-paths-'))
const folder = join(temporary, 'folder')
const env = { ...process.env, XDG_STATE_HOME: join(temporary, 'state'), XDG_CACHE_HOME: join(temporary, 'cache') }
/** Number of files that are read, as in a large project, and of files that are listed, as in a large shared folder. */
const files: Readonly<Record<Work, readonly string[]>> = { read: namesOf(2000), list: namesOf(40_000) }

function namesOf(count: number): readonly string[] {
  return Array.from({ length: count }, (_, at) => `d${at % 20}/f-${String(at).padStart(6, '0')}.txt`)
}

function makeFolder(work: Work): void {
  for (let at = 0; at < 20; at++) mkdirSync(join(folder, work, `d${at}`), { recursive: true })
  const text = work === 'read' ? `${'A line of a file that is served. '.repeat(31)}\n` : ''
  for (const file of files[work]) writeFileSync(join(folder, work, file), text)
}

/** Bundles the sources, without a path if one is given. Returns the folder of the build. */
function build(name: string, without?: SpecialPath): string {
  const copy = join(temporary, name)
  mkdirSync(copy)
  for (const part of ['src', 'scripts', 'package.json', 'config.schema.json'])
    cpSync(join(root, part), join(copy, part), { recursive: true })
  symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'))
  for (const [code, plain] of without?.replaced ?? []) {
    const file = join(copy, 'src', without?.file ?? '')
    const [before, after, ...others] = readFileSync(file, 'utf8').split(code)
    if (before === undefined || after === undefined || others.length > 0)
      throw new Error(`${file} does not have this code once:\n${code}`)
    writeFileSync(file, `${before}${plain}${after}`)
  }
  const bundling = `await (await import(${JSON.stringify(pathToFileURL(join(copy, 'scripts/bundle.ts')).href)})).bundle({ target: ${JSON.stringify(join(copy, 'dist'))} })`
  execFileSync(process.execPath, ['--import', import.meta.resolve('tsx'), '--input-type=module', '-e', bundling])
  return copy
}

async function serve({ name, work }: SpecialPath, built: string): Promise<Running> {
  const command = () => [join(built, 'dist/cli/main.js'), 'serve', join(folder, work), '--only', 'files', '--http', '0']
  const contender = { name, revision: '2026-07-28', uriOf: () => '', lists: true, tells: false, command } as const
  const running = await start(contender, join(folder, work), env)
  // Most hosts listen for changes: the folder is then watched.
  if (work === 'list') await running.client.listen([uriOf(work, files[work][0] ?? '')], () => {})
  return running
}

const uriOf = (work: Work, file: string) => pathToFileURL(join(folder, work, file)).href

/** CPU of one read, or of one entry of a list, in microseconds. */
async function costOfWork(work: Work, running: Running, seconds: number): Promise<number> {
  if (work === 'list') return costOfLists(running, seconds)
  const requests = files[work].map((file) => running.client.sent('resources/read', { uri: uriOf(work, file) }, idMark))
  const { cpu } = await costOf(running, { requests, minBytes: 1000, connections: 32, seconds, temporary })
  return cpu
}

async function costOfLists(running: Running, seconds: number): Promise<number> {
  const before = running.cpuMs()
  const end = performance.now() + seconds * 1000
  let entries = 0
  while (performance.now() < end) {
    let cursor: string | undefined
    do {
      const page = (await running.client.call('resources/list', cursor === undefined ? {} : { cursor })) as {
        readonly resources: readonly unknown[]
        readonly nextCursor?: string
      }
      entries += page.resources.length
      cursor = page.nextCursor
    } while (cursor !== undefined)
  }
  return ((running.cpuMs() - before) * 1000) / entries
}

async function compare(path: SpecialPath, plainBuild: string): Promise<readonly string[]> {
  const running: Running[] = []
  try {
    for (const built of [plainBuild, build('without', path)]) running.push(await serve(path, built))
    const costs: [number[], number[]] = [[], []]
    // The first round warms up: every file is read before, and V8 compiles the code of the server while it runs.
    for (let round = -1; round < Number(values.rounds); round++)
      for (const side of round % 2 === 0 ? ([0, 1] as const) : ([1, 0] as const)) {
        const server = running[side]
        if (server === undefined) continue
        const cost = await costOfWork(path.work, server, round < 0 ? 8 : Number(values.seconds))
        if (round >= 0) costs[side].push(cost)
      }
    const [used, without] = [median(costs[0]), median(costs[1])]
    return [
      path.name,
      path.work,
      fixed(used),
      fixed(without),
      `${fixed(100 * (values.guarantees ? used / without - 1 : 1 - used / without), 0)} %`,
    ]
  } finally {
    for (const server of running) await server.end()
    rmSync(join(temporary, 'without'), { recursive: true, force: true })
  }
}

try {
  makeFolder('read')
  makeFolder('list')
  const complete = build('with')
  const rows: (readonly string[])[] = []
  const chosen = values.guarantees ? guarantees : paths
  for (const path of chosen.filter(({ name }) => values.only.split(',').some((part) => name.includes(part)))) {
    progress(path.name)
    rows.push(await compare(path, complete))
    progress(rows.at(-1)?.join(', ') ?? '')
  }
  console.log(table(['path', 'work', 'with, µs', 'without, µs', values.guarantees ? 'costs' : 'saves'], rows))
} finally {
  rmSync(temporary, { recursive: true, force: true })
}
