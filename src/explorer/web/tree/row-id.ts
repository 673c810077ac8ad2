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

/** Returns the action of the pressed part of a row: a row in a tree or grid may not contain buttons. */
export function partOf({ target }: Event): string | undefined {
  return target instanceof Element ? (target.closest('[data-do]')?.getAttribute('data-do') ?? undefined) : undefined
}
