let last: Promise<unknown> = Promise.resolve()

/** Resolves in a turn of the event loop that nobody else has been given: large work one by one, and others in between. */
export function turn(): Promise<unknown> {
  last = last.then(() => new Promise((resolve) => setImmediate(resolve)))
  return last
}
