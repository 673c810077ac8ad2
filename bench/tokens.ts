/**
 * Compares our counter of tokens (`src/context/tokens.ts`) with `countTokens` of gpt-tokenizer over kinds of text: megabytes a second, and the
 * difference of the counts. The library gets pieces of at most 32,768 characters that end with a line, and runs of over 256 characters
 * without white space cut, since its time grows with the square of their length.
 */
import { randomBytes } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { countTokens } from 'gpt-tokenizer/encoding/o200k_base'
import { openCounter } from '../src/context/tokens.ts'

const root = join(import.meta.dirname, '..')
/** Characters of each kind of text. */
const size = 1_000_000
const filesOf = (folder: string, end: string): string =>
  readdirSync(join(root, folder), { recursive: true })
    .map(String)
    .filter((name) => name.endsWith(end))
    .sort()
    .map((name) => readFileSync(join(root, folder, name), 'utf8'))
    .join('\n')
    .slice(0, size)

const texts: Readonly<Record<string, string>> = {
  'English (docs)': filesOf('docs', '.md'),
  'TypeScript (src)': filesOf('src', '.ts'),
  'minified JavaScript (dist)': filesOf('dist/explorer/page', '.js'),
  'Japanese (words of the page)': (
    filesOf('src/explorer/web', 'words.ts').match(/[\u3001-\u30ff\u4e00-\u9fff]+/g) ?? []
  ).join(''),
  'hexadecimal, one line': randomBytes(size / 2).toString('hex'),
  'base64, one line': randomBytes((size / 4) * 3).toString('base64'),
  'base64, lines of 76': (
    randomBytes((size / 4) * 3)
      .toString('base64')
      .match(/.{76}/g) ?? []
  ).join('\n'),
}

/** The count of the library, in pieces. */
function libraryCount(text: string): number {
  const pieces = text.match(/[\s\S]{1,32768}(?:\n|$)|[\s\S]{1,32768}/g) ?? []
  const runs = pieces.flatMap((piece) => piece.replace(/\S{256}(?=\S)/g, '$&\0').split('\0'))
  return runs.reduce((sum, run) => sum + countTokens(run, { disallowedSpecial: new Set() }), 0)
}

const counter = await openCounter('o200k_base')

/** Counts the second half of a text, after the first one has warmed up the code: megabytes a second of the processor, and tokens. */
async function measure(text: string, count: (text: string) => number | Promise<number>) {
  await count(text.slice(0, text.length / 2))
  const half = text.slice(text.length / 2)
  const before = process.cpuUsage()
  const tokens = await count(half)
  const { user, system } = process.cpuUsage(before)
  return { speed: Buffer.byteLength(half) / (user + system), tokens }
}

console.log('| text | ours, MB/s | library, MB/s | ours is faster | tokens of the library more or less |')
console.log('|---|---|---|---|---|')
for (const [name, text] of Object.entries(texts)) {
  const ours = await measure(text, counter.count)
  const theirs = await measure(text, libraryCount)
  const difference = ((theirs.tokens - ours.tokens) / ours.tokens) * 100
  console.log(
    `| ${name} | ${ours.speed.toFixed(1)} | ${theirs.speed.toFixed(1)} | ${(ours.speed / theirs.speed).toFixed(1)} × | ${difference.toFixed(2)} % |`,
  )
}
