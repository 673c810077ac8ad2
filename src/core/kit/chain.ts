/** A value that is available now, or a promise of it. */
export type Soon<T> = T | Promise<T>

/**
 * Calls a function with a value: at once if the value is there, otherwise when its promise resolves. An `await` would create three
 * promises in both cases, and a small read over HTTP makes ten such calls.
 */
export function chain<T, U>(value: Soon<T>, next: (value: T) => Soon<U>): Soon<U> {
  return value instanceof Promise ? value.then(next) : next(value)
}

/** Runs `work`, and passes its value to `next`, or the error that it threw or rejected with to `failed`. */
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

/** Runs `work`, and passes its value to `next`. The error that either of them threw or rejected with goes to `failed`. */
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

/** Runs `work`, and calls `end` when it has succeeded or failed, as `finally` does. */
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
 * Returns a function that runs `work` at its first call. All calls share its result (single-flight); after a failure, the next call
 * runs `work` again.
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
    /** Returns the promise of the finished or running work; undefined before the first call, and after a failure. */
    begun: () => result,
    /** Drops the result, so that the next call runs the work again. */
    forget: () => {
      result = undefined
    },
  })
}

/** Returns a function that runs `work`. If it is called during a run, `work` runs once more afterwards, unless the signal has aborted. */
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

/** Key under which {@link promising} stores the method that it wraps. */
const soonKey = Symbol('soon')

/**
 * Wraps a method that may throw, and that returns a value instead of a promise when it has the value. The wrapper always returns a
 * promise and never throws. {@link soonOf} returns the wrapped method again.
 */
export function promising<A extends readonly unknown[], T>(soon: (...args: A) => Soon<T>): (...args: A) => Promise<T> {
  return Object.assign(async (...args: A) => soon(...args), { [soonKey]: soon })
}

/**
 * Returns the method that {@link promising} has wrapped, so that an answer from memory creates no promise: a small read passes
 * through twenty such methods. A method that `promising` has not wrapped is called as it is, so wrappers may ignore both functions.
 */
export function soonOf<A extends readonly unknown[], T>(
  owner: object,
  method: (...args: A) => Promise<T>,
): (...args: A) => Soon<T> {
  const { [soonKey]: soon } = method as { readonly [soonKey]?: (...args: A) => Soon<T> }
  return soon ?? ((...args) => Promise.resolve(method.apply(owner, args as unknown as A & unknown[])))
}
