import type { z } from 'zod'

/** A field of a record that is wrong. */
export interface Fault {
  /** Such as `votes[0].confidence`; empty where it is the record as a whole. */
  readonly field: string
  /** Field and reason, in one line. */
  readonly text: string
}

/** Maximum number of faults reported at once, and maximum number of characters shown of an unknown name. */
const [maxFaults, maxName] = [5, 64]

const typeWords: Readonly<Record<string, string>> = {
  string: 'a text',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  object: 'an object',
  array: 'an array',
}

/** Returns the message for one wrong value. It repeats numbers and lengths, and nothing else of the input. */
export function wordsFor(issue: z.core.$ZodRawIssue): string | undefined {
  switch (issue.code) {
    case 'invalid_type':
      if (issue.input === undefined) return 'It is missing.'
      return `It is ${typeOf(issue.input)}, and must be ${typeWords[issue.expected] ?? issue.expected}.`
    case 'invalid_value':
      return `It must be one of ${issue.values.map((value) => JSON.stringify(value)).join(', ')}.`
    case 'too_small':
    case 'too_big': {
      const bound = issue.code === 'too_small' ? issue.minimum : issue.maximum
      const word = issue.code === 'too_small' ? 'at least' : 'at most'
      const { input } = issue
      if (typeof input === 'string')
        return input === '' ? 'It is empty.' : `It has ${input.length} characters, and may have ${word} ${bound}.`
      if (Array.isArray(input))
        return input.length === 0 ? 'It is empty.' : `There are ${input.length}, and may be ${word} ${bound}.`
      return `It is ${String(input)}, and must be ${word} ${bound}.`
    }
    case 'unrecognized_keys': {
      const names = issue.keys.slice(0, 3).map((key) => JSON.stringify(key.slice(0, maxName).toWellFormed()))
      return `There is no such key as ${names.join(', ')}${issue.keys.length > 3 ? ' and others' : ''}.`
    }
    default:
      return undefined
  }
}

export function faultsOf(issues: readonly z.core.$ZodIssue[]): readonly Fault[] {
  return issues.slice(0, maxFaults).map(({ path, message }) => {
    const field = path.reduce<string>((before, step) => {
      if (typeof step === 'number') return `${before}[${step}]`
      return before === '' ? String(step) : `${before}.${String(step)}`
    }, '')
    return { field, text: field === '' ? message : `${field}: ${message}` }
  })
}

function typeOf(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'an array'
  if (typeof value === 'number') return Number.isFinite(value) ? `the number ${value}` : 'no finite number'
  return typeWords[typeof value] ?? typeof value
}
