import { constants } from 'node:buffer'
import { invalid } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'
import type { FileRule } from './rules.ts'

/**
 * Whether files are left out that hardly anybody wants served. `except`: globs over paths; a file or folder that matches
 * is served all the same. A file in a folder that is left out needs the folder to be named.
 */
export type DefaultExcludes = boolean | { readonly except: readonly string[] }

export interface FilesOptions {
  /** The absolute path of the directory to serve. */
  readonly root: string
  /** Globs: only what matches one is served, or lies in a directory that does. It brings back nothing that is excluded. */
  readonly include?: readonly string[]
  /** Globs, compared in any case: what matches is not served, nor what lies in a directory that does. */
  readonly exclude?: readonly string[]
  /** Whether .gitignore files and `.git/info/exclude` of the root hold. Default true. */
  readonly gitignore?: boolean
  /** Whether version control, dependencies, caches, credentials, `.env` files and editor backups are left out. Default true. */
  readonly defaultExcludes?: DefaultExcludes
  /**
   * Whether dotenv files (`.env`, `.env.local`, `prod.env`) are served, whatever `defaultExcludes` and .gitignore files say of
   * them. For what takes the secrets out of them. Default false.
   */
  readonly dotenv?: boolean
  /** Whether names that begin with a dot are served. Default true. */
  readonly hidden?: boolean
  /**
   * `deny`: symbolic links are not served. `beneath`: one is what it leads to, where that lies in the root and is served
   * by its own name. Default `beneath`.
   */
  readonly symlinks?: 'deny' | 'beneath'
  /** Whether files with more than one name (hard links) are served. Default false: another name may lie elsewhere. */
  readonly hardlinks?: boolean
  /** Whether other file systems that are mounted inside the root are served. Default false. */
  readonly allowMounts?: boolean
  /** The largest file, or part of one, that is read at once, in bytes. Default 16 MiB, at most 256 MiB. */
  readonly maxBytes?: number
  /** What is told of files, such as their priority. */
  readonly rules?: readonly FileRule[]
  /** Whether changes are told. Default true. */
  readonly watch?: boolean
  /**
   * How long it takes at most until a change is told that the system does not tell of, in milliseconds: everything is
   * compared so often. Default 30,000, at least 100.
   */
  readonly reconcile?: number
  readonly log?: Log
}

const defaultMaxBytes = 16 * 1024 * 1024
const mostBytes = Math.min(256 * 1024 * 1024, constants.MAX_STRING_LENGTH)

const defaultReconcile = 30_000
/** What a timer of Node can wait, about. */
const longestReconcile = 24 * 3_600_000

/** @throws ResourceError `invalid` for a limit that is none. */
export function completeOptions(options: FilesOptions) {
  const { maxBytes = defaultMaxBytes, reconcile = defaultReconcile } = options
  if (!Number.isSafeInteger(maxBytes) || maxBytes < 1 || maxBytes > mostBytes)
    throw invalid(`maxBytes must be a whole number from 1 to ${mostBytes}.`, 'max-bytes')
  if (!Number.isFinite(reconcile) || reconcile < 100 || reconcile > longestReconcile)
    throw invalid(`reconcile must be a number of milliseconds from 100 to ${longestReconcile}.`, 'reconcile')
  return {
    gitignore: options.gitignore ?? true,
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
