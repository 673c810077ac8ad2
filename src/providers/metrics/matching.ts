import { invalid } from '../../core/errors.ts'
import type { Matcher } from './selector.ts'
import type { Labels } from './source.ts'

/** One step of a simple pattern: a character, any character, or any number of characters. */
type Step = { readonly character: string } | { readonly any: 'one' | 'many' }

/**
 * Compiles matchers into a test of labels, which takes time proportional to the texts. A missing label counts as empty.
 *
 * Of regular expressions, only alternatives of texts with `.`, `.*` and `.+` are supported: others can take exponential time.
 *
 * @throws ResourceError `invalid` (reason `match`) for any other regular expression.
 */
export function compileMatchers(matchers: readonly Matcher[]): (labels: Labels) => boolean {
  const tests = matchers.map(({ label, operator, value }) => {
    const test = operator === '=' || operator === '!=' ? (text: string) => text === value : compilePattern(value)
    const wanted = operator === '=' || operator === '=~'
    return (labels: Labels) => test(labels.get(label) ?? '') === wanted
  })
  return (labels) => tests.every((test) => test(labels))
}

function compilePattern(pattern: string): (text: string) => boolean {
  const alternatives = splitAlternatives(pattern).map(parseSteps)
  return (text) => alternatives.some((steps) => matches(steps, Array.from(text)))
}

function splitAlternatives(pattern: string): readonly string[] {
  const parts = ['']
  for (const [piece] of pattern.matchAll(/\\?[\s\S]/gu)) {
    if (piece === '|') parts.push('')
    else parts[parts.length - 1] += piece
  }
  return parts
}

function parseSteps(pattern: string): readonly Step[] {
  const steps: Step[] = []
  for (const [piece] of pattern.matchAll(/\.[*+]?|\\[\s\S]|[\s\S]/gu)) {
    if (piece === '.*') steps.push({ any: 'many' })
    else if (piece === '.+') steps.push({ any: 'one' }, { any: 'many' })
    else if (piece === '.') steps.push({ any: 'one' })
    else if (/^\\[^A-Za-z0-9]$/u.test(piece)) steps.push({ character: piece.slice(1) })
    else if (/^[^\\[\](){}*+?^$]$/u.test(piece)) steps.push({ character: piece })
    else
      throw invalid(
        'Of regular expressions, the measurements of this server know alternatives (a|b) of texts with ., .* and .+ in them: write such a one.',
        'match',
      )
  }
  return steps
}

/** Whether the steps match a whole text: glob matching, with backtracking only to the last `.*`. */
function matches(steps: readonly Step[], text: readonly string[]): boolean {
  let at = 0
  let step = 0
  let again: { readonly step: number; at: number } | undefined
  while (at < text.length) {
    const current = steps[step]
    if (current !== undefined && 'any' in current && current.any === 'many') {
      again = { step, at }
      step++
    } else if (current !== undefined && ('any' in current || current.character === text[at])) {
      step++
      at++
    } else if (again !== undefined) {
      again.at++
      at = again.at
      step = again.step + 1
    } else return false
  }
  return steps.slice(step).every((left) => 'any' in left && left.any === 'many')
}
