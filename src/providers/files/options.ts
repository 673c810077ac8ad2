import { constants } from 'node:buffer'
import { invalid } from '../../core/errors.ts'
import type { Within } from '../../core/kit/within.ts'
import type { Log } from '../../core/log.ts'
import type { FileRule } from './media.ts'

/**
 * Whether to leave out files that are hardly ever worth serving. `except`: globs over paths; a file or folder that matches is served anyway.
 * For a file in a folder that is left out, the folder must be named too.
 */
export type DefaultExcludes = boolean | { readonly except: readonly string[] }

export interface FilesOptions {
  /** The absolute path of the directory to serve. */
  readonly root: string
  /** Limits of the path of the root, if no person named it. By default its symbolic links are followed, once. */
  readonly within?: Within
  /** Globs: serves only paths that match one, or are in a matching directory. Default exclusions still apply to them. */
  readonly include?: readonly string[]
  /** Globs, in any letter case: leaves out paths that match, or are in a matching directory. */
  readonly exclude?: readonly string[]
  /**
   * Whether the ignore rules of git apply: `.gitignore` files, `info/exclude` and `core.excludesFile` of each repository. Those of `.ignore` and
   * `.hikidashiignore` always apply. Default true.
   */
  readonly gitignore?: boolean
  /** Whether other working trees (`git worktree add`) of a repository that is served are served too. Default false. */
  readonly worktrees?: boolean
  /** Whether version control, dependencies, caches, credentials, `.env` files and editor backups are left out. Default true. */
  readonly defaultExcludes?: DefaultExcludes
  /**
   * Whether dotenv files (`.env`, `.env.local`, `prod.env`) are served even if `defaultExcludes` and .gitignore files leave them out. For
   * wrappers that remove the secrets. Default false.
   */
  readonly dotenv?: boolean
  /** Whether names that begin with a dot are served. Default true. */
  readonly hidden?: boolean
  /**
   * `deny`: symbolic links are not served. `beneath`: a link is served as its target, if the target lies in the root and is served by its own
   * name. Default `beneath`.
   */
  readonly symlinks?: 'deny' | 'beneath'
  /** Whether files with several names (hard links) are served. Default false, because another name may be elsewhere. */
  readonly hardlinks?: boolean
  /** Whether other file systems mounted inside the root are served. Default false. */
  readonly allowMounts?: boolean
  /** Maximum size of a file, or of a range, that is read at once, in bytes. Default 16 MiB, at most 256 MiB. */
  readonly maxBytes?: number
  /** Rules that set metadata of files, such as their priority. */
  readonly rules?: readonly FileRule[]
  /** Whether changes are notified. Default true. */
  readonly watch?: boolean
  /**
   * Interval at which all files are compared with their last known state, in milliseconds: the longest delay of a change that the system does
   * not report. Default 30,000, at least 100.
   */
  readonly reconcile?: number
  readonly log?: Log
}

const defaultMaxBytes = 16 * 1024 * 1024
const mostBytes = Math.min(256 * 1024 * 1024, constants.MAX_STRING_LENGTH)

const defaultReconcileMs = 30_000
/** Maximum of `reconcile`: a day, in milliseconds. */
const maxReconcileMs = 24 * 3_600_000

/** @throws ResourceError `invalid` for a limit out of range. */
export function completeOptions(options: FilesOptions) {
  const { maxBytes = defaultMaxBytes, reconcile = defaultReconcileMs } = options
  if (!Number.isSafeInteger(maxBytes) || maxBytes < 1 || maxBytes > mostBytes)
    throw invalid(`maxBytes must be a whole number from 1 to ${mostBytes}.`, 'configuration')
  if (!Number.isFinite(reconcile) || reconcile < 100 || reconcile > maxReconcileMs)
    throw invalid(`reconcile must be a number of milliseconds from 100 to ${maxReconcileMs}.`, 'configuration')
  return {
    gitignore: options.gitignore ?? true,
    worktrees: options.worktrees ?? false,
    defaultExcludes: options.defaultExcludes ?? true,
    dotenv: options.dotenv ?? false,
    hidden: options.hidden ?? true,
    symlinks: options.symlinks ?? 'beneath',
    hardlinks: options.hardlinks ?? false,
    allowMounts: options.allowMounts ?? false,
    rules: options.rules ?? [],
    log: options.log ?? (() => {}),
    maxBytes,
    watch: options.watch ?? true,
    reconcile,
  }
}
