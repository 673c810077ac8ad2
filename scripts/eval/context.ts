/**
 * Measures contexts: the query is the subject of a commit, the files are those before the commit, and the context should show the changes.
 *
 *     npm run eval:context -- [--repository NAME=FOLDER …] [--commits COUNT] [--files COUNT] [--since COUNT] [--search] [--only]
 *
 * For each budget: `any`, the share of the changed files that are in the context; `text`, the share that are there with text; and `hunks`,
 * the share of the changed places whose lines are in the context. The baselines take whole files in the order of BM25, over contents, and
 * over contents and paths, and skip files that do not fit. `--search` adds a row with a current search index. `--only` skips this repository.
 *
 * With `--since 2`, a first context is made of the files two commits earlier, and the second context gets its manifest. `reused` is the
 * share of the second context's tokens that are an unchanged prefix of the first; the row `hikidashi` has it without that manifest.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { fixed, progress, table } from '../../bench/support.ts'
import { type Assembled, assemble, type ManifestEntry, openCounter } from '../../src/context/index.ts'
import { createReadingCaches } from '../../src/context/memory.ts'
import { createCatalog } from '../../src/core/catalog.ts'
import type { View } from '../../src/core/view.ts'
import { search } from '../../src/providers/search/index.ts'
import { openSearchIndex } from '../../src/search/index.ts'
import { openStore, type Store } from '../../src/store/index.ts'
import { memory } from '../../test/support/memory.ts'
import { type Engine, plainBm25 } from './engines.ts'
import { type Change, openRepository, type Repository } from './git.ts'
import { isHeldBack, mean, ndcg, recall } from './measures.ts'

const budgets = [8000, 32_000]
const root = join(import.meta.dirname, '..', '..')
const { values } = parseArgs({
  options: {
    repository: { type: 'string', multiple: true, default: [] },
    commits: { type: 'string', default: '40' },
    files: { type: 'string', default: '10' },
    since: { type: 'string', default: '0' },
    search: { type: 'boolean', default: false },
    only: { type: 'boolean', default: false },
  },
})

type Hunks = Awaited<ReturnType<Repository['hunks']>>
type Figures = Map<string, number[]>

function add(figures: Figures, name: string, value: number): void {
  figures.set(name, [...(figures.get(name) ?? []), value])
}

/** The share of the changed places of which all lines are shown. */
function shownOf(hunks: Hunks, shows: (path: string, start: number, end: number) => boolean): number {
  const all = [...hunks].flatMap(([path, ranges]) => ranges.map(([start, end]) => ({ path, start, end })))
  return all.filter(({ path, start, end }) => shows(path, start, end)).length / Math.max(1, all.length)
}

function pathOf(uri: string): string {
  return decodeURIComponent(uri.slice('memory://r/'.length))
}

function judgeContext(
  figures: Figures,
  budget: number,
  context: Assembled,
  gold: ReadonlySet<string>,
  hunks: Hunks,
): void {
  const items = new Map(context.manifest.map((entry) => [pathOf(entry.uri), entry]))
  add(figures, `any ${budget}`, recall([...items.keys()], gold))
  const texts = [...items].filter(([, { level }]) => level === 'full' || level === 'windows').map(([path]) => path)
  add(figures, `text ${budget}`, recall(texts, gold))
  const shows = (path: string, start: number, end: number) => {
    const entry = items.get(path)
    if (entry === undefined) return false
    if (entry.level === 'full') return true
    return (entry.ranges ?? []).some((range) => range.start <= start && end <= range.end)
  }
  add(figures, `hunks ${budget}`, shownOf(hunks, shows))
}

async function judgeWhole(
  figures: Figures,
  order: readonly string[],
  files: ReadonlyMap<string, File>,
  gold: ReadonlySet<string>,
  hunks: Hunks,
): Promise<void> {
  const counter = await openCounter('o200k_base')
  add(figures, 'nDCG@10', ndcg(order, gold))
  for (const budget of budgets) {
    const taken = new Set<string>()
    let left = budget
    for (const path of order) {
      if (left < 20) break
      const tokens = await counter.count(files.get(path)?.text ?? '', undefined, left)
      if (tokens > left) continue
      taken.add(path)
      left -= tokens
    }
    add(figures, `any ${budget}`, recall([...taken], gold))
    add(figures, `text ${budget}`, recall([...taken], gold))
    add(
      figures,
      `hunks ${budget}`,
      shownOf(hunks, (path) => taken.has(path)),
    )
  }
}

interface File {
  readonly text: string
  /** The id of the blob. */
  readonly version: string
}

async function filesOf(repository: Repository, commit: string): Promise<ReadonlyMap<string, File>> {
  const tree = await repository.tree(commit)
  const blobs = await repository.texts(tree.values())
  return new Map(
    [...tree].flatMap(([path, version]) => {
      const text = blobs.get(version)
      return text === undefined ? [] : [[path, { text, version }] as const]
    }),
  )
}

/** Memory for all commits. A file has the id of its blob as version, so a file that the next commit did not change is not read again. */
const remembered = createReadingCaches()('eval')

function providerOf(files: ReadonlyMap<string, File>, time: number) {
  return memory(Object.fromEntries([...files].map(([path, file]) => [path, { ...file, modified: time }])))
}

function viewOf(files: ReadonlyMap<string, File>, time: number): View {
  const provider = providerOf(files, time)
  return createCatalog({ mounts: [{ address: 'memory://r', provider }] }).view({ id: 'eval', roles: [] })
}

/** Returns a view with a search, whose index is updated from the files of one commit to those of the next. */
async function searchedViewOf(files: ReadonlyMap<string, File>, time: number, store: Store) {
  const index = await openSearchIndex({ store, name: 'eval' })
  const mounts = () => {
    const mount = catalog.reader('memory://r')
    return mount === undefined ? [] : [{ mount, way: '' }]
  }
  const provider = search({ index, store, name: 'eval', mounts })
  const catalog = createCatalog({
    mounts: [
      { address: 'memory://r', provider: providerOf(files, time) },
      { address: 'search://r', provider },
    ],
  })
  provider.feed()
  while ((await provider.feedStatus())?.mounts.every(({ state }) => state === 'current') !== true) await sleep(20)
  return { view: catalog.view({ id: 'eval', roles: [] }), close: () => provider.close?.() }
}

/** Creates the baselines. They are updated from the files of one commit to those of the next. */
function createBaselines() {
  const engines: readonly Engine[] = [plainBm25('BM25, contents'), plainBm25('BM25, contents 0.6 + path 0.4', 0.4)]
  let there: ReadonlyMap<string, File> = new Map()
  return async (files: ReadonlyMap<string, File>): Promise<readonly Engine[]> => {
    const put = [...files].filter(([path, { version }]) => there.get(path)?.version !== version)
    const removed = [...there.keys()].filter((path) => !files.has(path))
    for (const engine of engines) {
      await engine.remove(removed)
      await engine.put(put.map(([id, { text }]) => ({ id, text })))
    }
    there = files
    return engines
  }
}

/** The share of a context's tokens that are also a prefix of an earlier context, in whole resources. */
function shareInCommon(earlier: readonly ManifestEntry[], { manifest, tokens }: Assembled): number {
  const common = manifest.findIndex(({ prefix }, at) => prefix !== earlier[at]?.prefix)
  const same = common < 0 ? manifest : manifest.slice(0, common)
  return same.reduce((sum, entry) => sum + entry.tokens, 0) / Math.max(1, tokens)
}

const afterEarlier = 'hikidashi, after an earlier one'
const withSearch = 'hikidashi, with a search'

interface Means {
  readonly ways: ReadonlyMap<string, Figures>
  readonly baselines: ReturnType<typeof createBaselines>
  /** Store of the search index. `undefined`: no search is evaluated. */
  readonly store: Store | undefined
}

async function evaluate(repository: Repository, change: Change, { ways, baselines, store }: Means): Promise<void> {
  const { commit, subject, time, modified } = change
  const files = await filesOf(repository, `${commit}^`)
  const hunks = await repository.hunks(commit)
  const query = subject.replace(/\s*\(#\d+\)$/, '')
  const figuresOf = (name: string): Figures => ways.get(name) ?? new Map()

  for (const engine of await baselines(files))
    await judgeWhole(figuresOf(engine.name), await engine.find(query, 500), files, modified, hunks)
  const now = Math.max(time, 10_000)
  const asked = { query, now, memory: remembered }
  const judgeOwn = async (name: string, view: View): Promise<void> => {
    for (const budget of budgets) {
      const context = await assemble(view, { ...asked, budget })
      judgeContext(figuresOf(name), budget, context, modified, hunks)
      if (budget !== budgets[0]) continue
      const ranked = [...context.items, ...context.omitted].sort((a, b) => b.explanation.score - a.explanation.score)
      const order = ranked.map(({ uri }) => pathOf(uri))
      add(figuresOf(name), 'nDCG@10', ndcg(order, modified))
    }
  }
  const view = viewOf(files, time)
  await judgeOwn('hikidashi', view)
  if (store !== undefined) {
    const searched = await searchedViewOf(files, time, store)
    await judgeOwn(withSearch, searched.view)
    await searched.close()
  }
  const since = Number(values.since)
  if (since === 0) return
  const earlierView = viewOf(await filesOf(repository, `${commit}~${since + 1}`), time)
  for (const budget of budgets) {
    const context = await assemble(view, { ...asked, budget })
    const { manifest: earlier } = await assemble(earlierView, { ...asked, budget })
    const after = await assemble(view, { ...asked, budget, earlier })
    judgeContext(figuresOf(afterEarlier), budget, after, modified, hunks)
    add(figuresOf(afterEarlier), `reused ${budget}`, (after.reusedPrefixTokens ?? 0) / Math.max(1, after.tokens))
    add(figuresOf('hikidashi'), `reused ${budget}`, shareInCommon(earlier, context))
  }
}

/** Whether a subject is long enough to be a query: three words, or three characters of a script without spaces. */
function isQuestion(subject: string): boolean {
  return subject.split(/\s+/).length >= 3 || /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]{3}/u.test(subject)
}

const isAgain = Number(values.since) > 0
const given = values.repository.map((one) => [one.slice(0, one.indexOf('=')), one.slice(one.indexOf('=') + 1)] as const)
for (const [name, place] of [...(values.only ? [] : [['this repository', root] as const]), ...given]) {
  const repository = openRepository(name, resolve(place))
  const changes = (await repository.changes(Number(values.files)))
    .filter(({ subject }) => isQuestion(subject))
    .slice(0, Number(values.commits))
  const ways = new Map<string, Figures>(
    [
      'hikidashi',
      ...(values.search ? [withSearch] : []),
      ...(isAgain ? [afterEarlier] : []),
      'BM25, contents',
      'BM25, contents 0.6 + path 0.4',
    ].map((way) => [way, new Map()]),
  )
  const folder = mkdtempSync(join(tmpdir(), 'hikidashi-eval-'))
  const store = values.search ? await openStore({ sqlite: { file: join(folder, 'store.sqlite') } }) : undefined
  const means = { ways, baselines: createBaselines(), store }
  for (const [at, change] of changes.entries()) {
    if (at % 10 === 0) progress(`${name}: ${at + 1} of ${changes.length}`)
    await evaluate(repository, change, means)
  }
  await store?.close()
  rmSync(folder, { recursive: true, force: true })
  const columns = [
    'nDCG@10',
    ...budgets.flatMap((budget) => [`any ${budget}`, `text ${budget}`, `hunks ${budget}`]),
    ...(isAgain ? budgets.map((budget) => `reused ${budget}`) : []),
  ]
  const held = changes.map(({ commit }) => isHeldBack(commit))
  const rows = [...ways].map(([way, figures]) => [
    way,
    ...columns.map((column) => fixed(mean(figures.get(column) ?? []), 3)),
    ...budgets.map((budget) => fixed(mean((figures.get(`hunks ${budget}`) ?? []).filter((_, at) => held[at])), 3)),
  ])
  const more = budgets.map((budget) => `hunks ${budget}, half held back`)
  process.stdout.write(`\n**${name}**: ${changes.length} commits\n\n${table(['', ...columns, ...more], rows)}\n`)
}
process.exit()
