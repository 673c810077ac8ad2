import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Context, Provider } from '../src/core/provider.ts'
import { git } from '../src/providers/git/index.ts'
import { fixed, measure, median, progress, table } from './support.ts'

const refs = 300_000
const names = 1_000_000
const context: Context = { principal: { id: 'bench', roles: [] }, signal: new AbortController().signal }

interface Step {
  readonly ms: number
  readonly pause: number
  readonly heap: number
}

/** Makes a repository with a commit of one file on `main`. Returns the id of the commit. */
function makeRepository(dir: string): string {
  mkdirSync(dir)
  const run = (args: readonly string[], input = '') =>
    execFileSync('git', ['-C', dir, ...args], { input, encoding: 'utf8', maxBuffer: 1e9 }).trim()
  run(['init', '--quiet', '--initial-branch=main'])
  const blob = run(['hash-object', '-w', '--stdin'], 'one\n')
  return commitOf(dir, [`100644 blob ${blob}\ta.txt`], 'main')
}

function commitOf(dir: string, lines: readonly string[], branch: string): string {
  const run = (args: readonly string[], input = '') =>
    execFileSync('git', ['-C', dir, ...args], { input, encoding: 'utf8', maxBuffer: 1e9 }).trim()
  const tree = run(['mktree'], `${lines.join('\n')}\n`)
  const commit = run(['-c', 'user.name=b', '-c', 'user.email=b@b', 'commit-tree', '-m', 'made', tree])
  run(['update-ref', `refs/heads/${branch}`, commit])
  return commit
}

async function firstOf(provider: Provider, prefix: string, count: number): Promise<void> {
  for await (const _ of provider.list({ prefix }, context)) if (--count === 0) break
}

async function roundOf(dir: string, wide: string): Promise<Readonly<Record<string, Step>>> {
  const steps: Record<string, Step> = {}
  const step = async <T>(name: string, run: () => Promise<T>): Promise<T> => {
    const { value, ms, pause } = await measure(run)
    steps[name] = { ms, pause, heap: process.memoryUsage().heapUsed / 1e6 }
    return value
  }
  const provider = await step(`open ${refs} packed refs`, () => git({ repository: dir, watch: false }))
  await step('the first read of a branch', () =>
    provider.read({ path: 'branch-000001/a.txt', params: new Map() }, context),
  )
  await step('the first listing of refs/heads/', () => firstOf(provider, 'refs/heads/', 3))
  await step('the next listing of refs/heads/', () => firstOf(provider, 'refs/heads/', 3))
  const [template] = (await provider.templates?.(context)) ?? []
  const request = {
    template: template?.template ?? '',
    argument: { name: 'ref', value: 'branch-' },
    arguments: new Map(),
  }
  await step('completing a branch', async () => provider.complete?.(request, context))
  await provider.close?.()
  const trees = await git({ repository: wide, watch: false })
  await step(`the first listing of a tree of ${names} names`, () => firstOf(trees, 'wide/', 500))
  await step('the next listing of that tree', () => firstOf(trees, 'wide/', 500))
  await step('reading one of its files', () => trees.read({ path: 'wide/file-0299999', params: new Map() }, context))
  await trees.close?.()
  return steps
}

/** Measures steps on a repository with very many refs, and on a tree with very many names: duration and longest event loop pause. */
export async function measureLarge(folder: string, rounds: number): Promise<string> {
  progress(`making ${refs} refs, and a tree of ${names} names …`)
  const [dir, wide] = [join(folder, 'refs'), join(folder, 'wide')]
  const commit = makeRepository(dir)
  const packed = Array.from({ length: refs }, (_, i) => `${commit} refs/heads/branch-${String(i).padStart(6, '0')}\n`)
  writeFileSync(join(dir, '.git/packed-refs'), `# pack-refs with: peeled fully-peeled sorted \n${packed.join('')}`)
  makeRepository(wide)
  const blob = execFileSync('git', ['-C', wide, 'rev-parse', 'main:a.txt'], { encoding: 'utf8' }).trim()
  const lines = Array.from({ length: names }, (_, i) => `100644 blob ${blob}\tfile-${String(i).padStart(7, '0')}`)
  commitOf(wide, lines, 'wide')
  packed.length = 0
  lines.length = 0
  const all: Readonly<Record<string, Step>>[] = []
  for (let round = 0; round < rounds; round++) all.push(await roundOf(dir, wide))
  const rows = Object.keys(all[0] ?? {}).map((name) => {
    const of = (key: keyof Step) => median(all.map((steps) => steps[name]?.[key] ?? Number.NaN))
    return [name, fixed(of('ms'), 0), fixed(of('pause'), 0), fixed(of('heap'), 0)]
  })
  return table(['', 'ms', 'longest pause of the event loop, ms', 'heap, MB'], rows)
}
