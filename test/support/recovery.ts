/** Waits until a function succeeds, without a time-out of its own. */
export async function eventually(work: () => Promise<boolean>, what = 'this'): Promise<void> {
  const end = performance.now() + 60_000
  while (!(await work().catch(() => false))) {
    if (performance.now() > end) throw new Error(`It never came to ${what}.`)
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

/** Waits until a function succeeds. Nothing is restarted meanwhile: the source must recover by itself. */
export function recovers(work: () => Promise<unknown>): Promise<void> {
  return eventually(() => work().then(() => true), 'an answer')
}

/** Calls a function constantly, so that faults occur during a call. Returns the kinds of the errors. */
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
