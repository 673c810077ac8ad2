/** Waits until some work succeeds, however long that takes. */
export async function eventually(work: () => Promise<boolean>, what = 'this'): Promise<void> {
  const end = performance.now() + 60_000
  while (!(await work().catch(() => false))) {
    if (performance.now() > end) throw new Error(`It never came to ${what}.`)
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

/** Waits until some work succeeds. Nothing is started again meanwhile: the source comes back by itself. */
export function recovers(work: () => Promise<unknown>): Promise<void> {
  return eventually(() => work().then(() => true), 'an answer')
}

/** Asks all the time, so that faults come while something is under way. Ends with the kinds of errors that there were. */
export function underLoad(work: () => Promise<unknown>): () => Promise<readonly string[]> {
  let going = true
  const kinds = new Set<string>()
  const one = async () => {
    while (going)
      await work().then(
        () => new Promise((resolve) => setTimeout(resolve, 2)),
        async (error: { kind?: string }) => {
          kinds.add(String(error.kind))
          await new Promise((resolve) => setTimeout(resolve, 2))
        },
      )
  }
  const all = Promise.all(Array.from({ length: 6 }, one))
  return async () => {
    going = false
    await all
    return [...kinds]
  }
}
