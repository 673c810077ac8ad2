import { createRecent } from '../files/recent.ts'
import { untilAbort } from '../files/pool.ts'
import type { Launcher } from './launch.ts'

/** When the files of a commit last changed, by path: milliseconds since 1970. What is not known is not in it. */
export type FileDates = ReadonlyMap<string, number>

export interface Dates {
  /** The dates of the last commits of all files at a commit: what `git log -1 -- PATH` says of each of them. */
  of(commit: string, signal: AbortSignal): Promise<FileDates>
}

export interface DatesOptions {
  readonly launcher: Launcher
  /** So many commits are looked at. A file that none of them changed has no date. */
  readonly maxCommits: number
  /** So long a walk goes on, in milliseconds; it then knows what it has seen. */
  readonly budgetMs: number
  /** Commits whose parents are not there: what they changed is not known. */
  readonly shallow: () => ReadonlySet<string>
}

/** The dates at so many commits are remembered. */
const maxKnown = 16

interface Step {
  readonly commit: string
  readonly parents: readonly string[]
  readonly time: number
}

/**
 * Finds the dates of all files in one walk: two processes, whatever the number of files. A walk that comes to a commit
 * whose dates are known already takes the rest from there.
 */
export function createDates({ launcher, maxCommits, budgetMs, shallow }: DatesOptions): Dates {
  const known = createRecent<FileDates>(maxKnown)
  const walking = new Map<string, Promise<FileDates>>()

  const steps = async (commit: string, signal: AbortSignal): Promise<readonly Step[]> => {
    const args = ['rev-list', '--parents', '--timestamp', `--max-count=${maxCommits}`, '--end-of-options', commit, '--']
    const { bytes } = await launcher.run({ args, limit: 1024 * 1024 * 1024, signal })
    const lines = bytes.toString('latin1').split('\n').slice(0, -1)
    return lines.map((line) => {
      const [time = '', id = '', ...parents] = line.split(' ')
      return { commit: id, parents, time: Number(time) * 1000 }
    })
  }

  const walk = async (commit: string): Promise<FileDates> => {
    const signal = AbortSignal.timeout(budgetMs)
    const assignment = createAssignment(commit, (at) => known.get(at))
    try {
      const all = await steps(commit, signal)
      // What lies behind a known commit is not compared again.
      const end = all.findIndex((step) => known.get(step.commit) !== undefined)
      const wanted = (end === -1 ? all : all.slice(0, end + 1)).filter((step) => !shallow().has(step.commit))
      const reader = createChangeReader(wanted, assignment.step)
      const input = wanted.flatMap(linesFor).join('')
      const args = ['diff-tree', '--stdin', '-r', '--raw', '-z', '--root', '--always', '--no-renames', '--no-abbrev']
      await launcher.pipe({ args, input, signal }, reader)
    } catch (error) {
      // Out of time, or out of history (a partial clone): what was seen so far is true.
      if (!signal.aborted && !(error instanceof Error)) throw error
    }
    return assignment.dates
  }

  return {
    of: (commit, signal) => {
      const found = known.get(commit)
      if (found !== undefined) return Promise.resolve(found)
      let walked = walking.get(commit)
      if (walked === undefined) {
        walked = walk(commit)
          .then((dates) => {
            known.set(commit, dates)
            return dates
          })
          .finally(() => walking.delete(commit))
        walking.set(commit, walked)
      }
      return untilAbort(walked, signal)
    },
  }
}
