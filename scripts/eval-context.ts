import { execFile, spawn } from 'node:child_process'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { fixed, progress, table } from '../bench/support.ts'
import { bm25, countTerms, queryTerms } from '../src/context/bm25.ts'
import { assemble, openCounter } from '../src/context/index.ts'
import { createCatalog } from '../src/core/catalog.ts'
import { isText } from '../src/core/utf8.ts'
import { memory } from '../test/support/memory.ts'

// How well a context is assembled, on the history of a repository: the subject of a commit is the query, the state before it is
// what there is to choose from, and the files that it modified are what should be found. Beside it, in the same run, plain BM25 of what the files
// say, and "whole files until the budget is full".

const { values } = parseArgs({
  options: {
    repository: { type: 'string', default: join(import.meta.dirname, '..') },
    commits: { type: 'string', default: '40' },
    files: { type: 'string', default: '10' },
  },
})
const most = { commits: Number(values.commits), files: Number(values.files), size: 400_000 }
const budgets = [8000, 32_000]

const safe = ['--no-pager', '--no-optional-locks', '-c', 'core.fsmonitor=false', '-c', 'protocol.allow=never']
const environment = { ...process.env, GIT_CONFIG_NOSYSTEM: '1', GIT_TERMINAL_PROMPT: '0', GIT_NO_LAZY_FETCH: '1' }

function git(...args: readonly string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const options = { cwd: values.repository, maxBuffer: 256 * 1024 * 1024, env: environment }
    execFile('git', [...safe, ...args], options, (error, stdout) => (error === null ? resolve(stdout) : reject(error)))
  })
}

/** The texts of blobs, by their ids. What is no text, or large, is left out. */
async function blobs(ids: readonly string[]): Promise<ReadonlyMap<string, string>> {
  const child = spawn('git', [...safe, 'cat-file', '--batch'], { cwd: values.repository, env: environment })
  child.stdin.end(ids.map((id) => `${id}\n`).join(''))
  const chunks: Buffer[] = []
  for await (const chunk of child.stdout) chunks.push(chunk as Buffer)
  const all = Buffer.concat(chunks)
  const texts = new Map<string, string>()
  for (let at = 0; at < all.length; ) {
    const end = all.indexOf(10, at)
    const [id = '', , size = ''] = all.toString('latin1', at, end).split(' ')
    const bytes = all.subarray(end + 1, end + 1 + Number(size))
    if (bytes.length <= most.size && isText(bytes)) texts.set(id, bytes.toString('utf8'))
    at = end + 2 + Number(size)
  }
  return texts
}

interface Case {
  readonly commit: string
  readonly subject: string
  readonly time: number
  readonly gold: ReadonlySet<string>
}

/** The newest commits that modify some, and not too many, files that are there before. */
async function cases(): Promise<readonly Case[]> {
  const log = await git(
    'log',
    '--no-merges',
    '--no-renames',
    '--diff-filter=M',
    '--name-only',
    '-z',
    '--format=%x01%H%x02%ct%x02%s%x03',
  )
  const all = log.split('\x01').flatMap((record): readonly Case[] => {
    const [head = '', names = ''] = record.split('\x03')
    const [commit = '', seconds = '', subject = ''] = head.split('\x02')
    const gold = new Set(
      names
        .split('\0')
        .map((name) => name.trim())
        .filter((name) => name !== '' && name !== 'package-lock.json'),
    )
    return commit === '' || gold.size === 0 || gold.size > most.files
      ? []
      : [{ commit, subject, time: 1000 * Number(seconds), gold }]
  })
  return all.slice(0, most.commits)
}

interface State {
  readonly texts: ReadonlyMap<string, string>
  readonly changes: ReadonlyMap<string, number>
  readonly modified: ReadonlyMap<string, number>
}

const known = new Map<string, string>()

/** The files as they were before a commit, and what the history until then says of them. */
async function stateBefore(commit: string): Promise<State> {
  const tree = await git('ls-tree', '-r', '-z', '--full-tree', `${commit}^`)
  const files = tree.split('\0').flatMap((line) => {
    const [, type, id, path] = /^\d+ (\w+) ([0-9a-f]+)\t(.*)$/s.exec(line) ?? []
    return type === 'blob' && id !== undefined && path !== undefined ? [{ id, path }] : []
  })
  const missing = [...new Set(files.map(({ id }) => id))].filter((id) => !known.has(id))
  for (const [id, text] of await blobs(missing)) known.set(id, text)
  const changes = new Map<string, number>()
  const modified = new Map<string, number>()
  const log = await git('log', '--no-merges', '--no-renames', '--name-only', '-z', '--format=%x01%ct%x03', `${commit}^`)
  for (const record of log.split('\x01')) {
    const [seconds = '', names = ''] = record.split('\x03')
    for (const name of names.split('\0').map((each) => each.trim())) {
      changes.set(name, (changes.get(name) ?? 0) + 1)
      if (!modified.has(name)) modified.set(name, 1000 * Number(seconds))
    }
  }
  const texts = files.flatMap(({ id, path }) => {
    const text = known.get(id)
    return text === undefined ? [] : [[path, text] as const]
  })
  return { texts: new Map(texts), changes, modified }
}

/** Normalised discounted cumulative gain of the first ten. */
function ndcg(paths: readonly string[], gold: ReadonlySet<string>): number {
  const gain = paths.slice(0, 10).reduce((sum, path, at) => sum + (gold.has(path) ? 1 / Math.log2(at + 2) : 0), 0)
  let ideal = 0
  for (let at = 0; at < Math.min(10, gold.size); at++) ideal += 1 / Math.log2(at + 2)
  return gain / ideal
}

const recall = (paths: readonly string[], gold: ReadonlySet<string>) =>
  paths.filter((path) => gold.has(path)).length / gold.size

const measures = new Map<string, number[]>()
function add(name: string, value: number): void {
  measures.set(name, [...(measures.get(name) ?? []), value])
}

function byBm25(texts: ReadonlyMap<string, string>, subject: string): readonly string[] {
  const paths = [...texts.keys()]
  const scores = bm25(paths.map((path) => countTerms(texts.get(path) ?? '', queryTerms(subject))))
  return paths
    .map((path, index) => ({ path, score: scores[index] ?? 0 }))
    .filter(({ score }) => score > 0)
    .sort((a, b) => b.score - a.score || (a.path < b.path ? -1 : 1))
    .map(({ path }) => path)
}

/** Whole files in order. `isLast`: the first that does not fit ends it; else it is passed over. */
async function whole(paths: readonly string[], texts: ReadonlyMap<string, string>, budget: number, isLast: boolean) {
  const counter = await openCounter('o200k_base')
  const taken: string[] = []
  let left = budget
  for (const path of paths) {
    if (left < 20) break
    const tokens = await counter.count(texts.get(path) ?? '')
    if (tokens <= left) {
      taken.push(path)
      left -= tokens
    } else if (isLast) break
  }
  return taken
}

async function evaluate({ commit, subject, time, gold }: Case): Promise<void> {
  const { texts, changes, modified } = await stateBefore(commit)
  const entries = [...texts].map(([path, text]) => [path, { text, modified: modified.get(path) ?? time }] as const)
  const catalog = createCatalog({ mounts: [{ address: 'memory://r', provider: memory(Object.fromEntries(entries)) }] })
  const view = catalog.view({ id: 'eval', roles: [] })
  const paths = new Map<string, string>()
  for (let cursor: string | undefined, more = true; more; more = cursor !== undefined) {
    const page = await view.list(cursor === undefined ? {} : { cursor })
    const names = [...texts.keys()]
    for (const { uri } of page.items) paths.set(uri, decodeURIComponent(uri.slice('memory://r/'.length)))
    cursor = names.length === 0 ? undefined : page.nextCursor
  }
  const pathOf = (one: { readonly uri: string }) => paths.get(one.uri) ?? ''
  const common = { query: subject, now: time, changes: (uri: string) => changes.get(paths.get(uri) ?? '') }

  const order = byBm25(texts, subject)
  add('plain BM25/nDCG@10', ndcg(order, gold))
  const variants = { 'without history': { query: subject, now: time, halfLife: 1e15 }, hikidashi: common }
  for (const [name, given] of Object.entries(variants)) {
    for (const budget of budgets) {
      const { items, omitted } = await assemble(view, { ...given, budget })
      if (budget === budgets[0]) {
        const ranked = [...items, ...omitted].sort((a, b) => b.explanation.score - a.explanation.score)
        add(`${name}/nDCG@10`, ndcg(ranked.map(pathOf), gold))
      }
      add(`${name}/recall at ${budget}`, recall(items.map(pathOf), gold))
      const read = items.filter(({ level }) => level === 'full' || level === 'windows')
      add(`${name}/of it with text at ${budget}`, recall(read.map(pathOf), gold))
      const outlined = items.filter(({ level }) => level !== 'link')
      add(`${name}/with an outline at least at ${budget}`, recall(outlined.map(pathOf), gold))
    }
  }
  for (const budget of budgets) {
    const skipping = recall(await whole(order, texts, budget, false), gold)
    const stopping = recall(await whole(order, texts, budget, true), gold)
    for (const kind of ['recall', 'with an outline at least', 'of it with text']) {
      add(`plain BM25/${kind} at ${budget}`, skipping)
      add(`whole files until the budget is full/${kind} at ${budget}`, stopping)
    }
  }
}

const all = await cases()
if (all.length === 0) throw new Error('The history has no commit that can be judged.')
for (const [index, one] of all.entries()) {
  progress(`${index + 1} of ${all.length}: ${one.subject.slice(0, 80)}`)
  await evaluate(one)
}
const mean = (list: readonly number[] | undefined) =>
  list === undefined ? '' : fixed(list.reduce((sum, each) => sum + each, 0) / list.length, 3)
const columns = [
  'nDCG@10',
  ...budgets.flatMap((budget) => [
    `recall at ${budget}`,
    `with an outline at least at ${budget}`,
    `of it with text at ${budget}`,
  ]),
]
const rows = ['whole files until the budget is full', 'plain BM25', 'without history', 'hikidashi'].map((name) => [
  name,
  ...columns.map((column) => mean(measures.get(`${name}/${column}`))),
])
process.stdout.write(`${all.length} commits\n\n${table(['', ...columns], rows)}\n`)
