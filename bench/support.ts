import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'

/** Number of files that `makeFlat` makes in one folder, and `makeTree` in a tree of 1,000 folders. */
export const count = 100_000

export function makeFlat(root: string): void {
  mkdirSync(root, { recursive: true })
  for (let i = 0; i < count; i++) writeFileSync(join(root, `file-${String(i).padStart(6, '0')}.txt`), `${i}\n`)
}

export function makeTree(root: string): void {
  for (let d = 0; d < count / 100; d++) {
    const folder = join(root, `group-${String(d % 10)}`, `folder-${String(d).padStart(4, '0')}`)
    mkdirSync(folder, { recursive: true })
    for (let i = 0; i < 100; i++) writeFileSync(join(folder, `file-${String(i).padStart(3, '0')}.md`), `# ${d} ${i}\n`)
  }
}

/** The median of the values. Of an even number of values, the mean of the two in the middle. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  const upper = sorted.length >> 1
  const at = (index: number) => sorted[index] ?? Number.NaN
  return sorted.length % 2 === 1 ? at(upper) : (at(upper - 1) + at(upper)) / 2
}

/** Runs a function. Returns its result, the duration, and the longest pause of the event loop, both in milliseconds. */
export async function measure<T>(run: () => Promise<T>): Promise<{ value: T; ms: number; pause: number }> {
  const delay = monitorEventLoopDelay({ resolution: 1 })
  delay.enable()
  const start = performance.now()
  const value = await run()
  const ms = performance.now() - start
  // Wait, because the monitor records a pause only after its end.
  await new Promise((resolve) => setTimeout(resolve, 5))
  delay.disable()
  return { value, ms, pause: delay.max / 1e6 }
}

export function table(head: readonly string[], rows: readonly (readonly (string | number)[])[]): string {
  const line = (cells: readonly (string | number)[]) => `| ${cells.join(' | ')} |`
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n')
}

export const fixed = (value: number, digits = 1) => value.toFixed(digits)

export function progress(text: string): void {
  process.stderr.write(`${text}\n`)
}
