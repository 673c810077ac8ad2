import { redactPhrase } from '../../secrets/find.ts'
import type { Io } from '../terminal/io.ts'
import { escapeLines } from '../terminal/text.ts'

/** Number of context lines around a difference. */
const context = 3

/**
 * Returns the difference of two texts as a unified diff with one hunk, as `patch` reads it. Equal texts have none.
 *
 * @param before Undefined if there was no file.
 */
export function unifiedDiff(file: string, before: string | undefined, after: string | undefined): string {
  if (before === after) return ''
  const [old, fresh] = [linesOf(before ?? ''), linesOf(after ?? '')]
  let start = 0
  while (start < old.length && start < fresh.length && old[start] === fresh[start]) start++
  let end = 0
  while (end < old.length - start && end < fresh.length - start && old.at(-1 - end) === fresh.at(-1 - end)) end++
  const from = Math.max(0, start - context)
  const rest = Math.max(0, end - context)
  const taken = { old: old.length - from - rest, fresh: fresh.length - from - rest }
  const lines = [
    ...old.slice(from, start).map((line) => ` ${line}`),
    ...old.slice(start, old.length - end).map((line) => `-${line}`),
    ...fresh.slice(start, fresh.length - end).map((line) => `+${line}`),
    ...old.slice(old.length - end, old.length - rest).map((line) => ` ${line}`),
  ].map((line) => (line.endsWith('\n') ? line : `${line}\n\\ No newline at end of file\n`))
  const names = [before === undefined ? '/dev/null' : file, after === undefined ? '/dev/null' : file]
  const header = `--- ${names[0]}\n+++ ${names[1]}\n@@ -${rangeOf(from, taken.old)} +${rangeOf(from, taken.fresh)} @@\n`
  return header + lines.join('')
}

/** The lines of a text, each with its end. */
const linesOf = (text: string) => (text === '' ? [] : text.split(/(?<=\n)/))

const rangeOf = (from: number, count: number) => `${count === 0 ? from : from + 1},${count}`

/**
 * Prints a diff. Possible secrets in the surrounding lines are hidden, since diffs are passed on. Control characters are escaped for
 * terminals.
 */
export async function showDiff(diff: string, { out }: Pick<Io, 'out'>): Promise<void> {
  const clean = diff.replace(/^[ -](?!-- ).*$/gm, redactPhrase)
  await out.write(out.isTerminal ? escapeLines(clean) : clean)
}
