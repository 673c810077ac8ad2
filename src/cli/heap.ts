/** How much the heap may grow between two full collections, in percent of what is alive. */
const growth = 100

/**
 * Lets the heap of a server grow to twice what is alive before all of it is gone through again. By itself V8 lets a small heap grow
 * by a third or so, which is every three seconds at 200 reads a second; each time, whoever asks just then waits several times as
 * long. What `--max-old-space-size` allows stays the most that there is.
 */
export function relaxHeap(): void {
  process.getBuiltinModule('node:v8').setFlagsFromString(`--heap-growing-percent=${growth}`)
}
