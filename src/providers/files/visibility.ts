import { compileGlobs, compileReach } from '../../core/glob.ts'
import { baseName, segmentFault } from '../../core/path.ts'
import { foldName, isDotenv, isExcludedByDefault } from './excludes.ts'
import { isFileName } from './file-name.ts'
import { type Ignores, isIgnored } from './ignores.ts'
import type { DefaultExcludes } from './options.ts'

export interface VisibilityOptions {
  readonly include?: readonly string[]
  readonly exclude?: readonly string[]
  readonly defaultExcludes: DefaultExcludes
  readonly dotenv?: boolean
  readonly hidden: boolean
  /** The system whose rules names must fit. Default: this one. */
  readonly platform?: NodeJS.Platform
}

/**
 * Whether a path may be served, judged by its name, provided that its parent directory may be served. A directory's path ends in `/`. Listing,
 * reading and describing all use only this test.
 */
export type Visibility = (path: string, ignores: Ignores | undefined) => boolean

/** The rule that leaves a name out. */
export type NameRule = 'name' | 'hidden' | 'default' | 'exclude' | 'include' | 'gitignore'

/** Maximum length of a path that is served, in UTF-16 code units: about the limit of system calls (`PATH_MAX`). */
const maxPath = 4096

/** @throws ResourceError `invalid` for a malformed glob. */
export function createVisibility(options: VisibilityOptions): Visibility {
  const judge = createNameJudge(options)
  return (path, ignores) => judge(path, ignores) === undefined
}

/** @throws ResourceError `invalid` for a malformed glob. */
export function createNameJudge(options: VisibilityOptions) {
  const excluded = createExclusion(options.exclude ?? [])
  const included = createInclusion(options.include)
  const excludedByDefault = createDefaultExclusion(options.defaultExcludes)
  const { platform = process.platform } = options
  /** Like {@link Visibility}, but returns the rule that leaves a path out; undefined when it may be served. */
  return (path: string, ignores: Ignores | undefined): NameRule | undefined => {
    const name = baseName(path)
    if (path.length > maxPath || segmentFault(name) !== undefined || !isFileName(name, platform)) return 'name'
    if (!options.hidden && name.startsWith('.')) return 'hidden'
    const wanted = options.dotenv && isDotenv(path)
    if (!wanted && excludedByDefault(path)) return 'default'
    if (excluded(path)) return 'exclude'
    if (!included(path)) return 'include'
    return !wanted && isIgnored(path, ignores) ? 'gitignore' : undefined
  }
}

type PathTest = (path: string) => boolean

/** Returns the options that decide about repositories and files of ignore rules. */
export function ignoreOptions(options: {
  readonly gitignore: boolean
  readonly worktrees: boolean
  readonly defaultExcludes: DefaultExcludes
}) {
  const { gitignore, worktrees, defaultExcludes } = options
  const excepted = typeof defaultExcludes === 'object' ? compileGlobs(defaultExcludes.except) : () => !defaultExcludes
  return { gitignore, worktrees, servesPrivate: excepted }
}

function createDefaultExclusion(excludes: DefaultExcludes): PathTest {
  if (excludes === false) return () => false
  if (excludes === true || excludes.except.length === 0) return isExcludedByDefault
  const excepted = compileGlobs(excludes.except)
  return (path) => isExcludedByDefault(path) && !excepted(path)
}

/** Tests paths in any letter case, and also in their folded spelling: a file system that folds names treats both as one file. */
export function createExclusion(patterns: readonly string[]): PathTest {
  if (patterns.length === 0) return () => false
  const matches = compileGlobs(patterns, { ignoreCase: true })
  return (path) => {
    if (matches(path)) return true
    const folded = path.split('/').map(foldName).join('/')
    return folded !== path && matches(folded)
  }
}

/** A file is included when it or a parent directory matches; a directory, when it may contain such a file. */
function createInclusion(patterns: readonly string[] | undefined): PathTest {
  if (patterns === undefined) return () => true
  const matches = compileGlobs(patterns)
  const reach = compileReach(patterns)
  const within: PathTest = remembered((directory) => {
    if (directory === '') return false
    return matches(directory) || within(directory.slice(0, directory.lastIndexOf('/', directory.length - 2) + 1))
  })
  return (path) => {
    if (path.endsWith('/')) return within(path) || reach(path) !== 'none'
    return within(path.slice(0, path.lastIndexOf('/') + 1)) || matches(path)
  }
}

function remembered(test: PathTest): PathTest {
  const known = new Map<string, boolean>()
  return (path) => {
    const found = known.get(path)
    if (found !== undefined) return found
    if (known.size >= 1000) known.clear()
    const value = test(path)
    known.set(path, value)
    return value
  }
}
