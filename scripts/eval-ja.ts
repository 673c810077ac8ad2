/**
 * How well the search finds what Japanese questions ask for, without vectors: nDCG@10 and recall at 10 and 100, of documents of
 * which one answers each question. Beside it the trigram tokenizer of SQLite's FTS5, with its own BM25, over the same documents.
 *
 *     npm run eval:ja -- --data FOLDER
 *
 * The folder has `docs.jsonl` (`id`, `text`) and `queries.jsonl` (`id`, `text`, `relevant`: the id of a document, or several).
 * By default it is `../shared/data/retrieval-ja` beside this repository, or what EVAL_JA says.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { DatabaseSync } from '@photostructure/sqlite'
import { openSearchIndex } from '../src/search/index.ts'
import { openStore } from '../src/store/index.ts'

const root = join(import.meta.dirname, '..')
const { values } = parseArgs({
  options: {
    data: { type: 'string', default: process.env.EVAL_JA ?? join(root, '..', 'shared', 'data', 'retrieval-ja') },
    least: { type: 'string', default: '0.92' },
  },
})

interface Line {
  readonly id: string
  readonly text: string
  readonly relevant?: string | readonly string[]
}

const linesOf = (name: string): readonly Line[] =>
  readFileSync(join(resolve(values.data), name), 'utf8')
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map((line) => JSON.parse(line) as Line)

const documents = linesOf('docs.jsonl')
const questions = linesOf('queries.jsonl')
const most = 100

/** What is found for a question: documents, best first, each once. */
type Finder = (question: string) => Promise<readonly string[]>

async function evaluate(name: string, find: Finder): Promise<number> {
  let gain = 0
  let ten = 0
  let hundred = 0
  for (const { text, relevant = [] } of questions) {
    const wanted = new Set([relevant].flat())
    const found = await find(text)
    const gains = found.slice(0, 10).map((id, rank) => (wanted.has(id) ? 1 / Math.log2(rank + 2) : 0))
    const ideal = [...wanted].slice(0, 10).reduce((sum, _, rank) => sum + 1 / Math.log2(rank + 2), 0)
    gain += gains.reduce((sum, each) => sum + each, 0) / ideal
    ten += found.slice(0, 10).filter((id) => wanted.has(id)).length / wanted.size
    hundred += found.slice(0, most).filter((id) => wanted.has(id)).length / wanted.size
  }
  const mean = (sum: number) => (sum / questions.length).toFixed(4)
  console.log(`| ${name} | ${mean(gain)} | ${mean(ten)} | ${mean(hundred)} |`)
  return gain / questions.length
}

const folder = mkdtempSync(join(tmpdir(), 'hikidashi-eval-'))
const store = await openStore({ sqlite: { file: join(folder, 'store.sqlite') } })
try {
  const index = await openSearchIndex({ store, name: 'eval' })
  // Only the text counts: the documents are numbered, and have no titles.
  const uriOf = (place: number) => `eval://set/${place}`
  const ids = new Map(documents.map(({ id }, place) => [uriOf(place), id]))
  const all = documents.map(({ text }, place) => ({ uri: uriOf(place), mount: 'eval://set', version: '1', text }))
  await index.put(all)
  console.error(
    `${documents.length} documents, ${questions.length} questions, ${(await index.size()).passages} passages`,
  )
  console.log('|  | nDCG@10 | recall@10 | recall@100 |\n| --- | --- | --- | --- |')
  const reached = await evaluate('hikidashi, without vectors', async (question) => {
    const found = new Set<string>()
    for await (const { uri } of index.search({ text: question })) {
      found.add(ids.get(uri) ?? '')
      if (found.size === most) break
    }
    return [...found]
  })
  await index.close()

  const plain = new DatabaseSync(':memory:')
  plain.exec(`create virtual table docs using fts5 (text, tokenize = 'trigram')`)
  const insert = plain.prepare('insert into docs (rowid, text) values (?, ?)')
  for (const [place, { text }] of documents.entries()) insert.run(place + 1, text)
  const select = plain.prepare(`select rowid from docs where docs match ? order by rank limit ${most}`)
  await evaluate('SQLite FTS5, trigram', async (question) => {
    const points = [...question]
    const grams = new Set(points.slice(2).map((_, at) => points.slice(at, at + 3).join('')))
    const match = [...grams].map((gram) => `"${gram.replaceAll('"', '""')}"`).join(' OR ')
    if (match === '') return []
    return select.all(match).map((row) => documents[Number((row as { rowid: number }).rowid) - 1]?.id ?? '')
  })
  plain.close()
  if (reached < Number(values.least)) {
    console.error(`nDCG@10 is under ${values.least}.`)
    process.exitCode = 1
  }
} finally {
  await store.close()
  rmSync(folder, { recursive: true, force: true })
}
