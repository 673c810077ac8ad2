/**
 * `npm run house`: the numbers of the code, beside those of 2026-11-22 and the targets, and a sample of comments and paragraphs
 * for a reader to judge. `--seed N` draws others, `--list` names the circles, the long functions and the files with one importer.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { circlesOf } from './house/circles.ts'
import { traceRead } from './house/read-path.ts'
import { draw, readParagraphs } from './house/sample.ts'
import { readSource, root, type SourceFile } from './house/source.ts'
import { riddleIn } from './house/words.ts'

const maxFunctionLines = 120
const maxFileLines = 300
const sampledComments = 20
const sampledParagraphs = 10

const { values } = parseArgs({
  options: { seed: { type: 'string', default: '1' }, list: { type: 'boolean', default: false } },
})
const seed = Number(values.seed)
if (!Number.isSafeInteger(seed)) throw new Error(`--seed needs a whole number, not ${JSON.stringify(values.seed)}.`)

const files = readSource()
const lines = files.reduce((sum, file) => sum + file.lines, 0)
const single = singlyImported(files)
const loadedLater = new Set(files.flatMap(({ loads }) => loads))
const long = files.flatMap((file) => file.functions).filter((found) => found.lines > maxFunctionLines)
const large = files.filter((file) => file.lines > maxFileLines)
const riddles = files.flatMap((file) => file.comments).filter(({ text }) => riddleIn(text) !== undefined).length
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
  ['sentences of comments that begin with "what", "whoever" or "where"', '', riddles, '0'],
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
  print('', 'Files with one importer:', ...single.map((file) => `  ${file}`))
  print('', 'Files that run for a small read:', ...read.files.map((file) => `  ${file}`))
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
