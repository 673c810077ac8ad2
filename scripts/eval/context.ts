/**
 * How much of the places that a commit changes can be read in a context that its subject asks for, out of the files as they were before it.
 *
 *     npm run eval:context -- [--repository NAME=FOLDER …] [--commits COUNT] [--files COUNT] [--since COUNT]
 *
 * Of each budget: the files of the commit that are there in any form, those with text, and `hunks`: the share of the changed places whose
 * lines are in the context. Beside it, in the same run: whole files in the order of BM25 over contents, and over contents and paths; a file that
 * does not fit is passed over.
 *
 * With `--since 2`: the same question is asked of the files two commits earlier first, and the second context is given the manifest of the first.
 * `reused` is the share of its tokens in front that are as they were; in the row above it, without that manifest.
 */
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { fixed, progress, table } from '../../bench/support.ts'
import { type Assembled, assemble, type ManifestEntry, openCounter } from '../../src/context/index.ts'
import { createCatalog } from '../../src/core/catalog.ts'
import type { View } from '../../src/core/view.ts'
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
  },
})

type Hunks = Awaited<ReturnType<Repository['hunks']>>
type Figures = Map<string, number[]>

function add(figures: Figures, name: string, value: number): void {
  figures.set(name, [...(figures.get(name) ?? []), value])
}

/** The share of the changed places that can be read: all of the lines of a place are shown. */
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
  texts: ReadonlyMap<string, string>,
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
      const tokens = await counter.count(texts.get(path) ?? '', undefined, left)
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

async function textsOf(repository: Repository, commit: string): Promise<ReadonlyMap<string, string>> {
  const tree = await repository.tree(commit)
  const blobs = await repository.texts(tree.values())
  return new Map([...tree].flatMap(([path, id]) => (blobs.has(id) ? [[path, blobs.get(id) ?? ''] as const] : [])))
}

function viewOf(texts: ReadonlyMap<string, string>, time: number): View {
  const provider = memory(Object.fromEntries([...texts].map(([path, text]) => [path, { text, modified: time }])))
  return createCatalog({ mounts: [{ address: 'memory://r', provider }] }).view({ id: 'eval', roles: [] })
}

/** The share of the tokens of a context that are in front of an earlier one, too, up to the end of a resource. */
function shareInCommon(earlier: readonly ManifestEntry[], { manifest, tokens }: Assembled): number {
  const common = manifest.findIndex(({ prefix }, at) => prefix !== earlier[at]?.prefix)
  const same = common < 0 ? manifest : manifest.slice(0, common)
  return same.reduce((sum, entry) => sum + entry.tokens, 0) / Math.max(1, tokens)
}

const afterEarlier = 'hikidashi, after an earlier one'

async function evaluate(repository: Repository, change: Change, ways: ReadonlyMap<string, Figures>): Promise<void> {
  const { commit, subject, time, modified } = change
  const texts = await textsOf(repository, `${commit}^`)
  const hunks = await repository.hunks(commit)
  const query = subject.replace(/\s*\(#\d+\)$/, '')
  const figuresOf = (name: string): Figures => ways.get(name) ?? new Map()

  const baselines: readonly Engine[] = [plainBm25('BM25, contents'), plainBm25('BM25, contents 0.6 + path 0.4', 0.4)]
  for (const engine of baselines) {
    await engine.put([...texts].map(([id, text]) => ({ id, text })))
    await judgeWhole(figuresOf(engine.name), await engine.find(query, 500), texts, modified, hunks)
  }
  const view = viewOf(texts, time)
  const since = Number(values.since)
  const earlierTexts = since === 0 ? new Map<string, string>() : await textsOf(repository, `${commit}~${since + 1}`)
  for (const budget of budgets) {
    const context = await assemble(view, { query, now: time, budget })
    judgeContext(figuresOf('hikidashi'), budget, context, modified, hunks)
    if (since > 0) {
      const { manifest: earlier } = await assemble(viewOf(earlierTexts, time), { query, now: time, budget })
      const after = await assemble(view, { query, now: time, budget, earlier })
      judgeContext(figuresOf(afterEarlier), budget, after, modified, hunks)
      add(figuresOf(afterEarlier), `reused ${budget}`, (after.reusedPrefixTokens ?? 0) / Math.max(1, after.tokens))
      add(figuresOf('hikidashi'), `reused ${budget}`, shareInCommon(earlier, context))
    }
    if (budget !== budgets[0]) continue
    const ranked = [...context.items, ...context.omitted].sort((a, b) => b.explanation.score - a.explanation.score)
    add(
      figuresOf('hikidashi'),
      'nDCG@10',
      ndcg(
        ranked.map(({ uri }) => pathOf(uri)),
        modified,
      ),
    )
  }
}

const isAgain = Number(values.since) > 0
const given = values.repository.map((one) => [one.slice(0, one.indexOf('=')), one.slice(one.indexOf('=') + 1)] as const)
for (const [name, folder] of [['this repository', root] as const, ...given]) {
  const repository = openRepository(name, resolve(folder))
  const changes = (await repository.changes(Number(values.files)))
    .filter(({ subject }) => subject.split(/\s+/).length >= 3)
    .slice(0, Number(values.commits))
  const ways = new Map<string, Figures>(
    ['hikidashi', ...(isAgain ? [afterEarlier] : []), 'BM25, contents', 'BM25, contents 0.6 + path 0.4'].map((way) => [
      way,
      new Map(),
    ]),
  )
  for (const [at, change] of changes.entries()) {
    progress(`${name}: ${at + 1} of ${changes.length}`)
    await evaluate(repository, change, ways)
  }
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
