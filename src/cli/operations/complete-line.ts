import { createProgram } from '../program.ts'
import type { ProcessIo } from '../terminal/io.ts'
import { escapeText } from '../terminal/text.ts'
import { splitCommand } from './command-line.ts'
import { completeUris } from './completion-uris.ts'
import { type Candidate, fitting, wantedAt } from './completion-words.ts'

/**
 * Answers a shell that completes a word (`hikidashi __complete`): with `words`, the words behind the name of the program, up to the
 * one at the cursor; with `bash`, the line, the place of the cursor, and the characters at which bash begins a new word.
 *
 * It prints a candidate on each line, and nothing at all where anything is wrong: nobody who presses a key wants an error.
 */
export async function completeLine(args: readonly string[], io: ProcessIo): Promise<void> {
  try {
    const [shell, ...rest] = args
    const { words, breaks } = shell === 'bash' ? bashWords(rest) : { words: rest, breaks: '' }
    const { candidates, files } = await candidatesFor(words, io)
    const skipped = brokenOff(words.at(-1) ?? '', breaks)
    const lines = candidates.map(({ value, about }) => lineOf(value.slice(skipped), about))
    await io.out.write([...lines, ...(files === undefined ? [] : [`:${files}\n`])].join(''))
  } catch {
    // What was printed until then is good.
  }
}

interface Found {
  readonly candidates: readonly Candidate[]
  readonly files?: 'files' | 'folders'
}

async function candidatesFor(words: readonly string[], io: ProcessIo): Promise<Found> {
  const quiet: ProcessIo = { ...io, say: () => {}, complain: () => {}, saysToTerminal: false }
  const program = await createProgram(quiet, (name) => words.slice(0, -1).includes(name))
  const wanted = wantedAt(program, words)
  const { kind, typed, prefix } = wanted
  const whole = (found: readonly Candidate[]) => found.map((one) => ({ ...one, value: prefix + one.value }))
  if (kind === undefined) return { candidates: whole(fitting(wanted.candidates, typed)) }
  if (kind === 'files' || kind === 'folders') return { candidates: [], files: kind }
  const candidates = whole(await completeUris(wanted, io.secrets).catch(() => []))
  // A path can stand for a URI, where it is of this machine.
  const isPath = kind === 'uri' && !/^[A-Za-z][\w+.-]*:/.test(typed) && !wanted.given.has('url')
  return isPath ? { candidates, files: 'files' } : { candidates }
}

/** The words of a line of bash up to the cursor. A quote need not be closed yet. */
function bashWords([line = '', point, breaks = '']: readonly string[]): {
  readonly words: readonly string[]
  readonly breaks: string
} {
  const typed = line.slice(0, point === undefined ? line.length : Number(point))
  for (const end of ['', '"', "'"])
    try {
      const words = splitCommand(typed + end, 'linux').slice(1)
      return { words: /\s$/.test(typed) && end === '' ? [...words, ''] : words, breaks }
    } catch {
      // There is a quote, then.
    }
  return { words: [''], breaks }
}

/** How much of a word bash does not replace: what stands before the last character at which it begins a new one. */
function brokenOff(word: string, breaks: string): number {
  return Math.max(...[':', '='].map((mark) => (breaks.includes(mark) ? word.lastIndexOf(mark) + 1 : 0)))
}

function lineOf(value: string, about: string | undefined): string {
  const [first = ''] = (about ?? '').split('\n')
  return first === '' ? `${value}\n` : `${escapeText(value)}\t${escapeText(first)}\n`
}
