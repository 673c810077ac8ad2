/** Ends what tests have opened: called after each test (`each-file.ts`), in the reverse of the order in which it was opened. */
export const endings: (() => unknown)[] = []

export async function endAll(): Promise<void> {
  for (const end of endings.splice(0).reverse()) await end()
}
