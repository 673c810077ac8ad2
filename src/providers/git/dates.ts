import { isResourceError } from '../../core/errors.ts'
import { createRecent } from '../../core/kit/lru.ts'
import { createAssignment, createChangeReader, type FileDates, type Step } from './dates-walk.ts'
import type { Launcher } from './launch.ts'
import { createSlices } from './slices.ts'

export interface Dates {
  /** Returns the dates of the last commits of all files at a commit, as `git log -1 -- PATH` prints for each of them. */
  of(commit: string): Promise<FileDates>
}

interface DatesOptions {
  readonly launcher: Launcher
  /** Maximum number of commits to examine. A file that none of them changed has no date. */
  readonly maxCommits: number
  /** Time-out of a walk, in milliseconds; the dates found until then are kept. */
  readonly budgetMs: number
  /** Commits whose parents are missing: their changes are unknown. */
  readonly shallow: () => ReadonlySet<string>
}

/** Maximum number of cached dates, over all commits. Those of the last commit are always kept. */
const maxRememberedDates = 500_000
const maxSteps = 512 * 1024 * 1024

/**
 * Finds the dates of all files in one walk: two processes, whatever the number of files. The walk first goes back only to the previously
 * requested commit, whose dates are known.
 */
export function createDates({ launcher, maxCommits, budgetMs, shallow }: DatesOptions): Dates {
  const known = createRecent<FileDates>(maxRememberedDates, ({ size }) => size + 1000)
  const walking = new Map<string, Promise<FileDates>>()
  let latest: string | undefined
  let depth = shallow()

  const stepsFrom = async (commit: string, behind: string | undefined, signal: AbortSignal) => {
    const ends = ['--end-of-options', commit, ...(behind === undefined ? [] : [`^${behind}`]), '--']
    const args = ['rev-list', '--parents', '--timestamp', `--max-count=${maxCommits}`, ...ends]
    const { bytes } = await launcher.run({ args, limit: maxSteps, signal })
    const slices = createSlices()
    const steps: Step[] = []
    let start = 0
    for (let end = bytes.indexOf(0x0a); end !== -1; end = bytes.indexOf(0x0a, start)) {
      const [time, id = '', ...parents] = bytes.toString('latin1', start, end).split(' ')
      steps.push({ commit: id, parents, time: Number(time) * 1000 })
      start = end + 1
      if (slices.due()) await slices.rest()
    }
    return steps
  }

  /** Walks the history. `complete` tells whether the dates of all files were found, or all that can be. */
  const walk = async (commit: string, behind: string | undefined, signal: AbortSignal) => {
    const assignment = createAssignment(commit, (at) => known.get(at))
    let complete = false
    try {
      // git reports all files of a commit with missing parents as new.
      const steps = (await stepsFrom(commit, behind, signal)).filter((step) => !shallow().has(step.commit))
      const reader = createChangeReader(steps, assignment.take)
      const input = steps.flatMap(({ commit: id, parents }) =>
        parents.length === 0 ? [`${id}\n`] : parents.map((parent) => `${id} ${parent}\n`),
      )
      const args = ['diff-tree', '--stdin', '-r', '--raw', '-z', '--root', '--always', '--no-renames', '--no-abbrev']
      await launcher.pipe({ args, input: input.join(''), signal }, async (chunk) => {
        await reader.read(chunk)
        return true
      })
      await reader.end()
      complete = assignment.isDone()
    } catch (error) {
      // Time-out or end of the available history (a partial clone): the dates found so far are valid.
      if (!signal.aborted && !isResourceError(error)) throw error
    }
    return { dates: assignment.dates, complete }
  }

  const find = async (commit: string): Promise<FileDates> => {
    const signal = AbortSignal.timeout(budgetMs)
    const short = latest === undefined ? undefined : await walk(commit, latest, signal)
    const dates = short?.complete === true ? short.dates : (await walk(commit, undefined, signal)).dates
    known.set(commit, dates)
    latest = commit
    return dates
  }

  return {
    of: (commit) => {
      if (depth !== shallow()) {
        // The history was deepened or made shallower.
        depth = shallow()
        latest = undefined
        known.clear()
      }
      const found = known.get(commit)
      if (found !== undefined) return Promise.resolve(found)
      let walked = walking.get(commit)
      if (walked === undefined) {
        walked = find(commit).finally(() => walking.delete(commit))
        walking.set(commit, walked)
      }
      return walked
    },
  }
}
