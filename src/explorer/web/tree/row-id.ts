const numbers = new Map<string, number>()

/** The `id` of the element of a row: short, and the same as long as the page is open. */
export function idOf(of: string, key: string): string {
  let number = numbers.get(key)
  if (number === undefined) {
    number = numbers.size
    numbers.set(key, number)
  }
  return `${of}-${number}`
}

/** What the part of a row that was pressed does: a row has no buttons, which a tree and a grid of rows may not hold. */
export function partOf({ target }: Event): string | undefined {
  return target instanceof Element ? (target.closest('[data-do]')?.getAttribute('data-do') ?? undefined) : undefined
}
