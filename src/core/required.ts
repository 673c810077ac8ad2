import { invalid } from './errors.ts'

/** What a value has to be, as a message says it. */
type Wanted = 'a text' | 'a number' | 'a function' | 'an array' | 'an object'

const fits: Readonly<Record<Wanted, (value: unknown) => boolean>> = {
  'a text': (value) => typeof value === 'string',
  'a number': (value) => typeof value === 'number',
  'a function': (value) => typeof value === 'function',
  'an array': Array.isArray,
  'an object': (value) => typeof value === 'object' && value !== null,
}

/**
 * Looks whether what a program gives to a public function has what the function cannot do without. TypeScript says the same, but
 * not to a program in JavaScript.
 *
 * @param what What was given, as the message names it: `files({ root })`.
 * @throws ResourceError `invalid` (reason `argument`); the message names the key and what it has to be.
 */
export function requireKeys(what: string, given: unknown, keys: Readonly<Record<string, Wanted>>): void {
  for (const [key, wanted] of Object.entries(keys)) {
    const value = typeof given === 'object' && given !== null ? Reflect.get(given, key) : undefined
    if (fits[wanted](value)) continue
    const found =
      value === undefined ? 'it is missing' : `it is ${value === null ? 'null' : `of the type ${typeof value}`}`
    throw invalid(`${what} needs "${key}", ${wanted}: ${found}.`, 'argument')
  }
}
