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
