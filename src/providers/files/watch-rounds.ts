import type { Directory } from './watch-directories.ts'

/** Rounds in which every directory is looked at, whatever was heard. */
export interface Rounds {
  /** When the next one begins, or goes on. */
  readonly due: number
  /** Goes on for a moment with a round, or begins one. */
  go(): Promise<void>
  /** Begins anew, at once. */
  reset(): void
}

export interface RoundsOptions {
  readonly directories: ReadonlySet<Directory>
  readonly look: (directory: Directory) => Promise<void>
  readonly begun: () => void
  /** From the end of one to the beginning of the next, in milliseconds. */
  readonly interval: number
  /** How many times as long as it goes on for a moment a round then rests. The first one, which is urgent, does not. */
  readonly rest: number
}

/** How long such a moment is, in milliseconds. */
const moment = 10

export function createRounds({ directories, look, begun, interval, rest }: RoundsOptions): Rounds {
  let round: Iterator<Directory> | undefined
  let due = 0
  let first = true

  return {
    get due() {
      return due
    },
    go: async () => {
      if (round === undefined) {
        begun()
        round = [...directories].values()
      }
      const start = performance.now()
      let ended = false
      while (!ended && performance.now() - start < moment) {
        const next = round.next()
        if (next.done === true) ended = true
        else await look(next.value)
      }
      const now = performance.now()
      if (ended) {
        round = undefined
        due = now + interval
        first = false
      } else due = now + (first ? 0 : (now - start) * rest)
    },
    reset: () => {
      round = undefined
      due = 0
      first = true
    },
  }
}
