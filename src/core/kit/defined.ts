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
