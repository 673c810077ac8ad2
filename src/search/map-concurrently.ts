/**
 * Maps items to results in their order, with at most `concurrent` calls at a time. After a call fails no more items are begun by its
 * worker; the first failure is thrown when all workers have ended, so that none still runs then.
 */
export async function mapConcurrently<T, R>(
  items: readonly T[],
  concurrent: number,
  work: (item: T) => Promise<R>,
): Promise<readonly R[]> {
  const done: R[] = []
  let next = 0
  const workThrough = async () => {
    for (let at = next++; at < items.length; at = next++) done[at] = await work(items[at] as T)
  }
  const workers = Array.from({ length: Math.min(concurrent, items.length) }, workThrough)
  const ended = await Promise.allSettled(workers)
  for (const result of ended) if (result.status === 'rejected') throw result.reason
  return done
}
