/** Keys whose values may be `undefined`. */
type MaybeKeys<T> = { [Key in keyof T]-?: undefined extends T[Key] ? Key : never }[keyof T]

/** The same members, of which those that may be `undefined` may be missing instead. */
type Defined<T> = Omit<T, MaybeKeys<T>> & { [Key in MaybeKeys<T>]?: Exclude<T[Key], undefined> }

/**
 * Returns the members of an object that are not `undefined`. With `exactOptionalPropertyTypes`, an optional member may be missing,
 * but not `undefined`: `{ root, ...defined({ title, limit }) }`.
 */
export function defined<const T extends object>(members: T): Defined<T> {
  const kept: Record<string, unknown> = {}
  for (const [key, value] of Object.entries(members)) if (value !== undefined) kept[key] = value
  return kept as Defined<T>
}

/** Members of a value that came from outside, such as parsed JSON. */
type Members = Readonly<Record<string, unknown>>

/** Whether a value is an object with named members: neither null nor an array. */
export function isObject(value: unknown): value is Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Returns the value if it is an object, else an object without members. */
export function objectOf(value: unknown): Members {
  return isObject(value) ? value : {}
}

/** Returns an own member of an object. For any other value: undefined. */
export function memberOf(value: unknown, key: string): unknown {
  return isObject(value) && Object.hasOwn(value, key) ? value[key] : undefined
}
