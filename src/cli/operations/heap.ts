/** How much the heap may grow between two full collections, in percent of what is alive. */
const growth = 100

/**
 * Lets the heap of a server grow to twice its live size before the next full garbage collection. By default V8 lets a small heap grow
 * by about a third, which means a collection every three seconds at 200 reads a second; requests at that moment take several times
 * as long. The limit of `--max-old-space-size` still holds.
 */
export function relaxHeap(): void {
  process.getBuiltinModule('node:v8').setFlagsFromString(`--heap-growing-percent=${growth}`)
}
