import { fallbackTo, isResourceError } from '../../core/errors.ts'
import { followFor } from '../../core/kit/abort.ts'
import { defined } from '../../core/kit/object.ts'
import type { Within } from '../../core/kit/within.ts'
import type { Log } from '../../core/log.ts'
import { completeOptions } from './options.ts'
import { openRepository } from './repository.ts'

interface ActivityOptions {
  /** Path of the repository, as in the provider's options. */
  readonly repository: string
  /** As in the provider's options. */
  readonly within?: Within
  /** Maximum number of commits to count, newest first. Default 1000. */
  readonly maxCommits?: number
  readonly log?: Log
  readonly signal?: AbortSignal
}

/** Time-out of the count, in milliseconds. */
const timeoutMs = 3000

/** Maximum length of the list of commits, in bytes. */
const maxIdsBytes = 16 * 1024 * 1024

/**
 * Counts how often each file was changed, by path, in the newest commits reachable from `HEAD`, without merges. As with the provider, nothing
 * of the repository runs. Returns undefined when git, a repository or a commit is missing, or on a time-out.
 */
export async function countActivity(options: ActivityOptions): Promise<ReadonlyMap<string, number> | undefined> {
  const { maxCommits = 1000, log, repository, within } = options
  const settings = completeOptions({ repository, refs: ['HEAD'], watch: false, timeoutMs, ...defined({ log, within }) })
  const { signal, release } = followFor(options.signal ?? [], timeoutMs)
  try {
    return await countIn(settings, maxCommits, signal)
  } finally {
    release()
  }
}

async function countIn(
  settings: ReturnType<typeof completeOptions>,
  maxCommits: number,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, number> | undefined> {
  const repository = await openRepository(settings, 0).catch(fallbackTo(undefined))
  if (repository === undefined) return undefined
  try {
    const { launcher, refs, shallow } = repository
    const { head } = await refs.table()
    if (head === undefined) return undefined
    const list = ['rev-list', '--no-merges', `--max-count=${maxCommits}`, '--end-of-options', head.oid, '--']
    const { bytes } = await launcher.run({ args: list, limit: maxIdsBytes, signal })
    const ids = bytes
      .toString('latin1')
      .split('\n')
      .filter((id) => id !== '' && !shallow().has(id))
    const counts = new Map<string, number>()
    const reader = createNameReader((name) => counts.set(name, (counts.get(name) ?? 0) + 1))
    const flags = ['--stdin', '--no-commit-id', '--name-only', '-r', '-z', '--root', '--no-renames']
    const input = ids.map((id) => `${id}\n`).join('')
    await launcher.pipe({ args: ['diff-tree', ...flags], input, signal }, (chunk) => {
      reader(chunk)
      return true
    })
    return counts
  } catch (error) {
    // The count has timed out, or a partial clone lacks its history.
    if (signal.aborted || isResourceError(error)) return undefined
    throw error
  } finally {
    repository.objects.close()
    await repository.close()
  }
}

/** Creates a function that splits chunks into NUL-terminated names, and passes each name to `take`. */
function createNameReader(take: (name: string) => void): (chunk: Buffer) => void {
  let rest: Buffer = Buffer.alloc(0)
  return (chunk) => {
    const all = rest.length === 0 ? chunk : Buffer.concat([rest, chunk])
    let start = 0
    for (let end = all.indexOf(0); end !== -1; end = all.indexOf(0, start)) {
      take(all.toString('utf8', start, end))
      start = end + 1
    }
    rest = all.subarray(start)
  }
}
