/** Draws samples of comments and paragraphs with a fixed seed, for a reader to judge. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from './source.ts'

export interface Paragraph {
  /** Path relative to the repository. */
  readonly file: string
  readonly line: number
  readonly text: string
}

/** Draws up to `count` of the items, without repetition. The same seed and items give the same sample. */
export function draw<T>(items: readonly T[], count: number, seed: number): readonly T[] {
  const rest = [...items]
  const next = random(seed)
  const drawn: T[] = []
  while (drawn.length < count && rest.length > 0) drawn.push(...rest.splice(Math.floor(next() * rest.length), 1))
  return drawn
}

/** Returns a generator of random numbers of at least 0 and below 1 (mulberry32). */
function random(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/** The paragraphs of README.md and `docs/`, without headings, tables and code. */
export function readParagraphs(): readonly Paragraph[] {
  const pages = readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' })
    .map((file) => `docs/${file.replaceAll('\\', '/')}`)
    .filter((file) => file.endsWith('.md'))
  return ['README.md', ...pages.sort()].flatMap((file) => paragraphsOf(file, readFileSync(join(root, file), 'utf8')))
}

/** The paragraphs of a page that have at least eight words. */
export function paragraphsOf(file: string, text: string): readonly Paragraph[] {
  const found: Paragraph[] = []
  let isCode = false
  let lines: string[] = []
  let first = 0
  const flush = () => {
    const whole = lines.join(' ').trim()
    if (whole.split(/\s+/).length >= 8) found.push({ file, line: first, text: whole })
    lines = []
  }
  for (const [index, line] of text.split('\n').entries()) {
    const isFence = /^\s*(?:```|~~~)/.test(line)
    if (isFence) isCode = !isCode
    if (isFence || isCode || line.trim() === '' || /^\s*(?:#|\||<|!\[)/.test(line)) flush()
    else {
      if (lines.length === 0) first = index + 1
      lines.push(line.trim())
    }
  }
  flush()
  return found
}
