/**
 * Works on items side by side, and yields the results in the order of the items, each as soon as those before it are there.
 *
 * @param most Maximum number of items processed at once.
 * @throws the first failure, in the order of the items. Work in progress then goes on unobserved, and no more is begun.
 */
export async function* mapInOrder<Item, Result>(
  items: readonly Item[],
  most: number,
  work: (item: Item) => Promise<Result>,
): AsyncGenerator<Result> {
  const begun: Promise<Result>[] = []
  let running = 0
  let stopped = false
  const beginMore = (): void => {
    while (!stopped && running < most && begun.length < items.length) {
      running++
      const result = work(items[begun.length] as Item)
      begun.push(result)
      const ended = () => {
        running--
        beginMore()
      }
      result.then(ended, ended)
    }
  }
  beginMore()
  try {
    for (let i = 0; i < items.length; i++) {
      // Before the one at `i` is begun, one of those before it has ended, and so was waited for.
      yield await (begun[i] as Promise<Result>)
    }
  } finally {
    stopped = true
  }
}
