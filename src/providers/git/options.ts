import { constants } from 'node:buffer'
import { invalid } from '../../core/errors.ts'
import { compileGlobs, type PathTest } from '../../core/glob.ts'
import { defined } from '../../core/kit/object.ts'
import type { Within } from '../../core/kit/within.ts'
import type { Log } from '../../core/log.ts'

export interface GitOptions {
  /** The absolute path of a working tree, of a bare repository, or of a `.git` directory. There is no search for a repository. */
  readonly repository: string
  /** Limits of the path of the repository, if no person named it. By default its symbolic links are followed. */
  readonly within?: Within
  /**
   * Globs over full ref names: only these refs, and the commits reachable from them, are served. `HEAD` is served when a glob matches it, or
   * when it is on a served branch. Default `HEAD`, `refs/heads/**` and `refs/tags/**`.
   */
  readonly refs?: readonly string[]
  /** Absolute paths of folders outside the repository that it may borrow objects from (`objects/info/alternates`). */
  readonly alternates?: readonly string[]
  /** Maximum size of a file, or of a range, that is read at once, and of a text page, in bytes. Default 16 MiB. */
  readonly maxBytes?: number
  /** Maximum number of commits of a log, and of a search for the dates of files. Default 10,000. */
  readonly maxCommits?: number
  /** Time-out of one answer of a git process, in milliseconds. Default 10,000. */
  readonly timeoutMs?: number
  /** The git to run: an absolute path, or a name to search on PATH. Default `git`. */
  readonly git?: string
  /** Whether changes are notified. Default true. */
  readonly watch?: boolean
  /**
   * Interval at which refs and the working tree are compared with their last known state, in milliseconds: the longest delay of a change that
   * the system does not report. Default 30,000, at least 100.
   */
  readonly reconcile?: number
  /** Whether a file is withheld: pages about the history name it, but show nothing of its content. Default: no file. */
  readonly withheld?: PathTest
  readonly log?: Log
}

/** The options with their defaults. */
export interface Settings extends Required<Omit<GitOptions, 'refs' | 'within'>>, Pick<GitOptions, 'within'> {
  /** Whether a ref (its full name, or `HEAD`) is served. */
  readonly serves: PathTest
  /** Names of the refs and ref directories to read: the parts of the globs before their first wildcard. */
  readonly patterns: readonly string[]
  /** Receives the number of entries processed at once; only for tests. */
  readonly heard?: (entries: number) => void
}

const defaultRefs = ['HEAD', 'refs/heads/**', 'refs/tags/**']
const mostBytes = Math.min(256 * 1024 * 1024, constants.MAX_STRING_LENGTH)

/** @throws ResourceError `invalid` for a limit out of range, and for a malformed glob. */
export function completeOptions(options: GitOptions): Settings {
  const { refs = defaultRefs } = options
  return {
    repository: options.repository,
    ...defined({ within: options.within }),
    alternates: options.alternates ?? [],
    maxBytes: whole('maxBytes', options.maxBytes ?? 16 * 1024 * 1024, mostBytes),
    maxCommits: whole('maxCommits', options.maxCommits ?? 10_000, 1_000_000),
    timeoutMs: whole('timeoutMs', options.timeoutMs ?? 10_000, 600_000),
    git: options.git ?? 'git',
    watch: options.watch ?? true,
    reconcile: whole('reconcile', options.reconcile ?? 30_000, 24 * 3_600_000, 100),
    withheld: options.withheld ?? (() => false),
    log: options.log ?? (() => {}),
    serves: compileGlobs(refs),
    patterns: [...new Set(refs.flatMap(patternsOf))],
  }
}

function whole(name: string, value: number, most: number, least = 1): number {
  if (Number.isSafeInteger(value) && value >= least && value <= most) return value
  throw invalid(`${name} must be a whole number from ${least} to ${most}.`, 'configuration')
}

/** Returns the ref, or the directory of all refs, that a glob can match: its segments before the first wildcard. Empty for `HEAD`. */
function patternsOf(glob: string): readonly string[] {
  if (glob === 'HEAD') return []
  const segments = glob.replace(/^\//, '').split('/')
  const magic = segments.findIndex((segment) => /[*?[{\\]/.test(segment))
  const literal = magic === -1 ? segments : segments.slice(0, magic)
  return [literal.length > 1 && literal[0] === 'refs' ? literal.join('/').replace(/\/$/, '') : 'refs']
}
