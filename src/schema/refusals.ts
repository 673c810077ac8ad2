import type { RefinementCtx } from './types.ts'

/**
 * Creates the message with which a schema refuses a value. zod has one text for the fault and the fix, so they are its
 * two lines.
 */
export function refusal(message: string, fix: string): string {
  return `${message}\n${fix}`
}

/** Returns a function that refuses a member of a value, by the path of the member. */
export function createRefuser(context: RefinementCtx) {
  return (path: string | readonly string[], message: string, fix: string): void =>
    context.addIssue({ code: 'custom', path: [path].flat(), message: refusal(message, fix) })
}

export function partsOfRefusal(text: string): { readonly message: string; readonly fix: string } {
  const [message = '', fix = 'Correct the value.'] = text.split('\n')
  return { message, fix }
}

export const typeNames: Readonly<Record<string, string>> = {
  string: 'a string',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  object: 'an object',
  record: 'an object',
  array: 'an array',
}

export function unknownKeyRefusal(
  key: string,
  keys: readonly string[],
): { readonly message: string; readonly fix: string } {
  const suggestion = nearestWord(key, keys)
  return {
    message: 'This key is unknown.',
    fix:
      suggestion === undefined
        ? `Remove it. The keys here are: ${keys.join(', ')}.`
        : `Did you mean ${JSON.stringify(suggestion)}?`,
  }
}

/** The refusal names the nearest known word, or all of them. */
export function unknownWordRefusal(input: unknown, words: readonly string[], what: string): string {
  const list = words.map((word) => JSON.stringify(word)).join(', ')
  const choices = words.length === 1 ? `It must be ${list}.` : `It must be one of: ${list}.`
  if (typeof input !== 'string') return refusal(`The value is ${describeType(input)}.`, choices)
  const suggestion = nearestWord(input, words)
  const fix = suggestion === undefined ? choices : `Did you mean ${JSON.stringify(suggestion)}?`
  return refusal(`There is no ${what} ${JSON.stringify(input)}.`, fix)
}

/** In words, such as `an array`. */
export function describeType(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'an array'
  if (typeof value === 'number' && !Number.isInteger(value)) return 'a fraction'
  return typeNames[typeof value] ?? typeof value
}

/** Returns the word that was probably meant; `undefined` if none is near enough. */
export function nearestWord(word: string, words: readonly string[]): string | undefined {
  const most = Math.max(1, Math.floor(word.length / 3))
  const ranked = words
    .map((candidate) => ({ candidate, distance: distanceOf(word.toLowerCase(), candidate.toLowerCase(), most) }))
    .filter(({ distance }) => distance <= most)
    .sort((a, b) => a.distance - b.distance)
  return ranked[0]?.candidate
}

/**
 * Counts letters to insert, remove, replace or swap with their neighbour. If the lengths differ by more than `most`,
 * returns `most + 1`.
 */
function distanceOf(a: string, b: string, most: number): number {
  if (Math.abs(a.length - b.length) > most) return most + 1
  const rows: number[][] = [Array.from({ length: b.length + 1 }, (_, j) => j)]
  const at = (i: number, j: number) => rows[i]?.[j] ?? 0
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    rows.push(row)
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1]
      const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      row[j] = Math.min(
        at(i - 1, j) + 1,
        at(i, j - 1) + 1,
        at(i - 1, j - 1) + (same ? 0 : 1),
        ...(swapped ? [at(i - 2, j - 2) + 1] : []),
      )
    }
  }
  return at(a.length, b.length)
}

/** A key, or an index from 0. */
export type PathStep = string | number

/** A fault of a value in a configuration, before its position in the file is known. */
export interface Finding {
  readonly path: readonly PathStep[]
  readonly message: string
  readonly fix: string
}
