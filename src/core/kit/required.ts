import { invalid } from '../errors.ts'

/** The required type of a value, in the words of the message. */
type Wanted = 'a text' | 'a number' | 'a function' | 'an array' | 'an object'

const fits: Readonly<Record<Wanted, (value: unknown) => boolean>> = {
  'a text': (value) => typeof value === 'string',
  'a number': (value) => typeof value === 'number',
  'a function': (value) => typeof value === 'function',
  'an array': Array.isArray,
  'an object': (value) => typeof value === 'object' && value !== null,
}

/**
 * Checks that an argument of a public function has the keys that the function requires. TypeScript checks the same, but not for a
 * program in JavaScript.
 *
 * @param what Name of the argument in the message: `files({ root })`.
 * @throws ResourceError `invalid` (reason `argument`); the message names the key and its required type.
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

/**
 * Checks that a value is a provider: an object with `list` and `read`.
 *
 * @param call The call, as the message names it: `sliced(provider, options)`.
 * @throws ResourceError `invalid` (reason `argument`).
 */
export function requireProvider(call: string, provider: unknown): void {
  requireKeys(`The provider of ${call}`, provider, { list: 'a function', read: 'a function' })
}

/**
 * Checks that an argument is of a type.
 *
 * @param call The call, as the message names it: `compileTemplate(text)`.
 * @throws ResourceError `invalid` (reason `argument`).
 */
export function requireArgument(call: string, name: string, value: unknown, wanted: Wanted): void {
  requireKeys(call, { [name]: value }, { [name]: wanted })
}
