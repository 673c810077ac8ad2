import type { Directory } from './watch-directories.ts'

/** Rounds that scan every directory, with or without events. */
export interface Rounds {
  /** Time at which the next round begins or continues. */
  readonly due: number
  /** Continues a round for one time slice, or begins one. */
  go(): Promise<void>
  /** Begins a new round at once. */
  reset(): void
}

export interface RoundsOptions {
  readonly directories: ReadonlySet<Directory>
  readonly look: (directory: Directory) => Promise<void>
  readonly begun: () => void
  /** Time from the end of one round to the beginning of the next, in milliseconds. */
  readonly interval: number
  /** Length of the pause after a time slice, as a multiple of the slice. The first round, which is urgent, has no pauses. */
  readonly rest: number
}

/** Length of a time slice, in milliseconds. */
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
