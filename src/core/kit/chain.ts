/** A value that is available now, or a promise of it. */
export type Soon<T> = T | Promise<T>

/**
 * Calls a function with a value: at once if the value is there, otherwise when its promise resolves. An `await` would make three promises
 * in both cases; a small read over HTTP passes ten such places.
 */
export function chain<T, U>(value: Soon<T>, next: (value: T) => Soon<U>): Soon<U> {
  return value instanceof Promise ? value.then(next) : next(value)
}

/** Does some work, and continues with its value, or with the error that it threw or rejected with. */
export function attempt<T, U>(
  work: () => Soon<T>,
  next: (value: T) => Soon<U>,
  failed: (error: unknown) => Soon<U>,
): Soon<U> {
  let value: Soon<T>
  try {
    value = work()
  } catch (error) {
    return failed(error)
  }
  return value instanceof Promise ? value.then(next, failed) : next(value)
}

/** Does some work, and continues with its value. The error that either threw or rejected with goes to `failed`. */
export function rescue<T, U>(
  work: () => Soon<T>,
  next: (value: T) => Soon<U>,
  failed: (error: unknown) => Soon<U>,
): Soon<U> {
  try {
    const value = work()
    const result = value instanceof Promise ? value.then(next) : next(value)
    return result instanceof Promise ? result.catch(failed) : result
  } catch (error) {
    return failed(error)
  }
}

/** Does some work, and calls `end` after it, as `finally` does. */
export function finish<T>(work: () => Soon<T>, end: () => void): Soon<T> {
  let value: Soon<T> | undefined
  try {
    value = work()
    return value instanceof Promise ? value.finally(end) : value
  } finally {
    if (!(value instanceof Promise)) end()
  }
}

/**
 * Returns a function that does some work when it is first called. All calls share its result (single-flight); after a failure, the next
 * call does it again.
 */
export function doneOnce<T>(work: () => Promise<T>) {
  let result: Promise<T> | undefined
  const once = (): Promise<T> => {
    result ??= work().catch((error: unknown) => {
      result = undefined
      throw error
    })
    return result
  }
  return Object.assign(once, {
    /** Returns the work that is done or runs; undefined before the first call, and after a failure. */
    begun: () => result,
    /** Makes the next call do the work again. */
    forget: () => {
      result = undefined
    },
  })
}

/** Returns a function that does some work, and once more after it if it is called meanwhile, until the signal aborts. */
export function repeatedly(work: () => Promise<void>, signal?: AbortSignal): () => Promise<void> {
  let running = false
  let again = false
  return async () => {
    again = true
    if (running) return
    running = true
    try {
      while (again && signal?.aborted !== true) {
        again = false
        await work()
      }
    } finally {
      running = false
    }
  }
}

/** Key of the form of a method that returns a value in the place of a promise if the value is there. */
const soonKey = Symbol('soon')

/**
 * Returns a method that always returns a promise and never throws, from one that returns its value at once if it can, and may throw.
 * {@link soonOf} finds the latter again.
 */
export function promising<A extends readonly unknown[], T>(soon: (...args: A) => Soon<T>): (...args: A) => Promise<T> {
  return Object.assign(async (...args: A) => soon(...args), { [soonKey]: soon })
}

/**
 * Returns the form of a method that {@link promising} was given: what has an answer in memory then makes no promise on its way. A small read
 * passes twenty such methods. Any other method is called as it is, so a wrapper that knows nothing of this loses nothing.
 */
export function soonOf<A extends readonly unknown[], T>(
  owner: object,
  method: (...args: A) => Promise<T>,
): (...args: A) => Soon<T> {
  const { [soonKey]: soon } = method as { readonly [soonKey]?: (...args: A) => Soon<T> }
  return soon ?? ((...args) => Promise.resolve(method.apply(owner, args as unknown as A & unknown[])))
}
