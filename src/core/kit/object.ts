import { invalid } from '../errors.ts'

type MaybeKeys<T> = { [Key in keyof T]-?: undefined extends T[Key] ? Key : never }[keyof T]

type Defined<T> = Omit<T, MaybeKeys<T>> & { [Key in MaybeKeys<T>]?: Exclude<T[Key], undefined> }

/**
 * Returns the members of an object that are not `undefined`. With `exactOptionalPropertyTypes`, an optional member may be missing,
 * but not `undefined`: `{ root, ...defined({ title, limit }) }`.
 */
export function defined<const T extends object>(members: T): Defined<T> {
  const keptMembers: Record<string, unknown> = {}
  for (const [key, value] of Object.entries(members)) if (value !== undefined) keptMembers[key] = value
  return keptMembers as Defined<T>
}

type Members = Readonly<Record<string, unknown>>

/** Whether a value is an object, and neither null nor an array. */
export function isObject(value: unknown): value is Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Returns the value of a JSON text; undefined for any other text. */
export function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Returns a text that is not empty, with lone surrogates replaced; undefined for any other value. */
export function nonEmptyText(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value.toWellFormed() : undefined
}

/** Parses ISO 8601 to milliseconds since 1970; undefined for no time. A time without a zone counts as UTC, not as this machine's zone. */
export function parseIsoTime(value: unknown): number | undefined {
  if (typeof value !== 'string') return undefined
  const time = Date.parse(/^\d{4}-\d\d-\d\dT[\d:.]+$/.test(value) ? `${value}Z` : value)
  return Number.isFinite(time) ? time : undefined
}

export function stringItems(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((one) => typeof one === 'string') : []
}

export function objectsIn(value: unknown): readonly Members[] {
  return Array.isArray(value) ? value.filter(isObject) : []
}

/** Whether a value can be a number of items or bytes: a safe integer from 0 on. */
export function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0
}

export function objectSchema<P extends Members>(required: readonly string[], properties: P) {
  return { type: 'object', properties, ...(required.length === 0 ? {} : { required }) } as const
}

export function objectOf(value: unknown): Members {
  return isObject(value) ? value : {}
}

/** Returns an own member of an object; undefined for any other value. */
export function memberOf(value: unknown, key: string): unknown {
  return isObject(value) && Object.hasOwn(value, key) ? value[key] : undefined
}

type ExpectedType = 'a string' | 'a number' | 'a function' | 'an array' | 'an object'

const fits: Readonly<Record<ExpectedType, (value: unknown) => boolean>> = {
  'a string': (value) => typeof value === 'string',
  'a number': (value) => typeof value === 'number',
  'a function': (value) => typeof value === 'function',
  'an array': Array.isArray,
  'an object': (value) => typeof value === 'object' && value !== null,
}

/**
 * Checks that an argument has the keys that a public function requires, for callers without TypeScript.
 * @param what Name of the argument in the message: `files({ root })`.
 * @throws ResourceError `invalid` (reason `argument`); the message names the key and its required type.
 */
export function requireKeys(what: string, argument: unknown, keys: Readonly<Record<string, ExpectedType>>): void {
  for (const [key, expectedType] of Object.entries(keys)) {
    const value = typeof argument === 'object' && argument !== null ? Reflect.get(argument, key) : undefined
    if (fits[expectedType](value)) continue
    const fault =
      value === undefined ? 'it is missing' : `it is ${value === null ? 'null' : `of the type ${typeof value}`}`
    throw invalid(`${what} needs "${key}", ${expectedType}: ${fault}.`, 'argument')
  }
}

/**
 * @param call The call, as the message names it: `sliced(provider, options)`.
 * @throws ResourceError `invalid` (reason `argument`) for a value without `list` and `read`.
 */
export function requireProvider(call: string, provider: unknown): void {
  requireKeys(`The provider of ${call}`, provider, { list: 'a function', read: 'a function' })
}

/**
 * @param call The call, as the message names it: `compileTemplate(text)`.
 * @throws ResourceError `invalid` (reason `argument`) for a value of another type.
 */
export function requireArgument(call: string, name: string, value: unknown, expectedType: ExpectedType): void {
  requireKeys(call, { [name]: value }, { [name]: expectedType })
}

/** @throws ResourceError `invalid` (reason `configuration`) for a number that is not whole or not within the bounds. */
export function requireInteger(name: string, value: number, least: number, most: number): number {
  if (Number.isSafeInteger(value) && value >= least && value <= most) return value
  throw invalid(`${name} must be a whole number from ${least} to ${most}.`, 'configuration')
}

/** Whether objects and arrays are nested over `levels` deep. */
export function isDeeperThan(levels: number, value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false
  return levels === 0 || Object.values(value).some((one) => isDeeperThan(levels - 1, one))
}
