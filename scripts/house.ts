/**
 * `npm run house`: prints figures about the code, beside those of 2026-11-22 and the targets, and a sample of comments and paragraphs
 * for a reader to judge. `--seed N` draws another sample. `--list` lists the circles, the long functions and the files with one importer.
 * `--origins` counts the lines that are still those of 2026-11-22, which takes some minutes and needs the history of the repository.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { circlesOf } from './house/circles.ts'
import { countOrigins } from './house/origins.ts'
import { traceRead } from './house/read-path.ts'
import { draw, readParagraphs } from './house/sample.ts'
import { readSource, root, type SourceFile } from './house/source.ts'
import { maxSameNames, repeatedNames, riddleIn } from './house/words.ts'

const maxFunctionLines = 120
const maxFileLines = 300
const sampledComments = 20
const sampledParagraphs = 10
/** The last commit of 2026-11-22. The first column of the table has its figures. */
const firstMeasured = '0e9cdf0c70548fb27c897cbe1fb9917ab430ad49'

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: '1' },
    list: { type: 'boolean', default: false },
    origins: { type: 'boolean', default: false },
  },
})
const seed = Number(values.seed)
if (!Number.isSafeInteger(seed)) throw new Error(`--seed needs a whole number, not ${JSON.stringify(values.seed)}.`)

const files = readSource()
const lines = files.reduce((sum, file) => sum + file.lines, 0)
const single = singlyImported(files)
const loadedLater = new Set(files.flatMap(({ loads }) => loads))
const long = files.flatMap((file) => file.functions).filter((found) => found.lines > maxFunctionLines)
const large = files.filter((file) => file.lines > maxFileLines)
const sentences = files.flatMap((file) => [...file.comments, ...file.texts])
const riddles = sentences.filter(({ text }) => riddleIn(text) !== undefined).length
const withoutUnit = files.flatMap((file) => file.withoutUnit.map((name) => `${file.file} ${name}`))
const circles = circlesOf(files)
const started = readFileSync(join(root, 'test/data/start/serve-folder.txt'), 'utf8')
const loaded = started.split('\n').filter((line) => line.startsWith('src/')).length
const read = await traceRead()

const rows: readonly (readonly [string, string, string | number, string])[] = [
  ['lines in `src`', '93,860', lines.toLocaleString('en'), '≤ 88,500'],
  ['code files', '966', files.length.toLocaleString('en'), '≤ 650'],
  ['files with one importer', '422', single.length, '≤ 150'],
  ['of them also loaded on demand', '', single.filter((file) => loadedLater.has(file)).length, ''],
  [`functions over ${maxFunctionLines} lines`, '33', long.length, '≤ 8'],
  [`files over ${maxFileLines} lines`, '', large.length, '0'],
  ['import circles (at run time)', '17 (2)', `${circles.length} (${circlesOf(files, true).length})`, '0'],
  ['sentences of comments and texts that begin with "what", "whoever" or "where"', '', riddles, '0'],
  [`names of types that more than ${maxSameNames} files declare`, '46', repeatedNames(files).length, '0'],
  ['numbers whose comment gives a unit and whose name does not', '95', withoutUnit.length, '0'],
  ['own modules loaded by `serve DIR --stdio`', '302', loaded, '≤ 190'],
  ['files that run for a small read over HTTP', '65', read.files.length, '40'],
  ['functions that run for it', '221', read.functions, '140'],
  ['files that run when the same file is read again at once', '65', read.again.files.length, '40'],
  ['functions that run for that', '221', read.again.functions, '140'],
]
const table = rows.map((row) => `| ${row.join(' | ')} |`)
print('| | 2026-11-22 | now | target |', '|---|---|---|---|', ...table)

if (values.list) {
  print('', 'Import circles:', ...circles.map((circle) => `  ${circle.join(', ')}`))
  print(
    '',
    'Long functions:',
    ...long.map((found) => `  ${found.file}:${found.line} ${found.name} (${found.lines} lines)`),
  )
  print('', 'Large files:', ...large.map((file) => `  ${file.file} (${file.lines} lines)`))
  print('', 'Names of many types:', ...repeatedNames(files).map((name) => `  ${name}`))
  print('', 'Numbers without a unit:', ...withoutUnit.map((name) => `  ${name}`))
  print('', 'Files with one importer:', ...single.map((file) => `  ${file}`))
  print('', 'Files that run for a small read:', ...read.files.map((file) => `  ${file}`))
}

if (values.origins) {
  process.stderr.write('Looking for the origin of each line. This takes some minutes.\n')
  const { found, shared } = await countOrigins(
    firstMeasured,
    files.map(({ file }) => file),
  )
  const row = (title: string, of: 'old' | 'same' | 'faster' | 'feature') =>
    `| ${title} | ${Math.round(found[of]).toLocaleString('en')} | ${Math.round(shared[of]).toLocaleString('en')} |`
  print('', '| lines of `src`, by origin | `git blame` | lines written again shared out |', '|---|---|---|')
  print(row('the code of 2026-11-22', 'old'), row('written again, the same behaviour', 'same'))
  print(
    row('the same behaviour with less time or memory', 'faster'),
    row('features and mended faults since', 'feature'),
  )
}

const comments = draw(
  files.flatMap((file) => file.comments),
  sampledComments,
  seed,
)
print('', `${sampledComments} comments (seed ${seed}):`)
for (const comment of comments) print('', `src/${comment.file}:${comment.line}`, `  ${comment.text}`)
print('', `${sampledParagraphs} paragraphs of the documentation (seed ${seed}):`)
for (const paragraph of draw(readParagraphs(), sampledParagraphs, seed))
  print('', `${paragraph.file}:${paragraph.line}`, `  ${paragraph.text}`)

function singlyImported(all: readonly SourceFile[]): readonly string[] {
  const importers = new Map<string, Set<string>>()
  for (const { file, imports } of all)
    for (const target of imports) importers.set(target.file, (importers.get(target.file) ?? new Set()).add(file))
  return [...importers].flatMap(([file, from]) => (from.size === 1 ? [file] : [])).sort()
}

function print(...texts: readonly string[]): void {
  process.stdout.write(`${texts.join('\n')}\n`)
}
