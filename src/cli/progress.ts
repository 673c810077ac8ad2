import type { Io } from './io.ts'

/** Tells a waiting person how far a long listing is, where the listing itself is not on the screen. */
export interface Progress {
  add(count: number): void
  /** Removes what was told. */
  end(): void
}

/** Nothing is told in the first second, and then four times a second at most. */
const patience = 1000
const interval = 250

export function createProgress(
  io: Io,
  write = (text: string) => void process.stderr.write(text),
  now = Date.now,
): Progress {
  if (!io.saysToTerminal || io.out.isTerminal) return { add: () => {}, end: () => {} }
  let total = 0
  let told = false
  let next = now() + patience
  return {
    add: (count) => {
      total += count
      if (now() < next) return
      next = now() + interval
      told = true
      write(`\r${total.toLocaleString('en')} resources …`)
    },
    end: () => {
      if (told) write('\r\u001b[K')
    },
  }
}
