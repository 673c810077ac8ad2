/** Functions that release the resources of tests: called after each test (`each-file.ts`), the last one first. */
export const endings: (() => unknown)[] = []

export async function endAll(): Promise<void> {
  for (const end of endings.splice(0).reverse()) await end()
}
