/** A value that is available now, or a promise of it. */
export type Soon<T> = T | Promise<T>

/**
 * Calls a function with a value: at once if the value is there, otherwise when its promise resolves. An `await` would make three promises
 * in both cases; a small read over HTTP passes ten such places.
 */
export function chain<T, U>(value: Soon<T>, next: (value: T) => Soon<U>): Soon<U> {
  return value instanceof Promise ? value.then(next) : next(value)
}
