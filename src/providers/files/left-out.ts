import * as fs from 'node:fs'
import * as path from 'node:path'
import { fallbackTo, isResourceError } from '../../core/errors.ts'
import { compileGlob } from '../../core/glob.ts'
import { eventLoopYield } from '../../core/kit/event-loop-yield.ts'
import { defined } from '../../core/kit/object.ts'
import { canonicalPath, mayHaveOtherSpellings } from '../../core/path.ts'
import { checkoutRefusal, createIgnoreFiles, gitDirectoryRefusal } from './ignore-files.ts'
import { type IgnoreLine, ignoringLine, isSecretName } from './ignores.ts'
import { completeFilesOptions, type FilesOptions } from './options.ts'
import { createPool, type Pool, servableKind, statFile } from './place.ts'
import { openRoot } from './root.ts'
import {
  createNameCache,
  createNameJudge,
  createWalk,
  ignoreFileOptions,
  mayRead,
  type NameRule,
  type OpenedEntry,
} from './walk.ts'

export type LeftOutReason =
  | 'missing'
  | Exclude<NameRule, 'default'>
  /** Private or generated files of version control, tools and editors: `.git`, `node_modules`. */
  | 'tools'
  | 'secret-name'
  /** A git directory, known by its contents. */
  | 'git-directory'
  /** Another working tree of a repository that is served. */
  | 'worktree'
  | 'link-denied'
  | 'link-outside'
  | 'link-broken'
  | 'link-circle'
  | 'link-target'
  | 'link-depth'
  | 'hard-link'
  | 'other-file-system'
  | 'special-file'
  | 'no-right'
  | 'spelling'
  | 'depth'

export interface LeftOut {
  readonly reason: LeftOutReason
  /** The path that is left out: the requested path, or a parent folder with a final `/`. */
  readonly path: string
  /** The line of a file of ignore rules that leaves it out. */
  readonly line?: IgnoreLine
  /** The glob of `exclude` that leaves it out. */
  readonly glob?: string
  /** The target of a symbolic link: relative to the root, or absolute if it lies outside. */
  readonly target?: string
  /** Why the target of the symbolic link is not served. */
  readonly because?: LeftOut
}

export interface LeftOutCounts {
  /** Number of names left out below a root, by reason. A folder that is left out counts once, with its contents. */
  readonly counts: Readonly<Partial<Record<LeftOutReason, number>>>
  /** Whether every name was examined. */
  readonly complete: boolean
}

export type LeftOutFiles = Awaited<ReturnType<typeof openLeftOut>>

/** Maximum length of a chain of symbolic links that is explained. A longer one is called a circle. */
const maxTargets = 8

/**
 * Opens the explainer of files left out below a root, with the same options as {@link files}.
 *
 * @throws ResourceError `invalid` for an invalid root or glob.
 */
export async function openLeftOut(options: FilesOptions) {
  const { log, symlinks, allowMounts, hardlinks, ...chosen } = completeFilesOptions(options)
  const judge = createNameJudge({ ...options, ...chosen })
  const visible = (path: string, ignores: OpenedEntry['aliases'][0]['ignores']) => judge(path, ignores) === undefined
  const permit = { allowMounts, hardlinks }
  const ignoring = ignoreFileOptions(chosen)
  const pool = createPool()
  const places = await openRoot({ ...options, allowMounts, ...ignoring }, pool, () => {})
  const ignoreFiles = createIgnoreFiles({ places, pool, log, ...ignoring })
  const names = createNameCache(visible, symlinks === 'beneath', pool)
  const walk = createWalk({ places, pool, visible, permit, names, symlinks, ignoreFiles })
  const byName = (at: OpenedEntry, step: string) => leftOutByName(at, step, judge, options.exclude)

  const byLink = async (at: OpenedEntry, name: string, depth: number, signal: AbortSignal): Promise<LeftOut> => {
    const leftOut = { path: `${at.aliases[0].path}${name}` }
    if (symlinks === 'deny') return { ...leftOut, reason: 'link-denied' }
    let target: string
    try {
      target = await fs.promises.realpath(`${at.place.at}/${name}`)
    } catch {
      return { ...leftOut, reason: 'link-broken' }
    }
    const below = path.relative(places.real, target).split(path.sep).join('/')
    if (below === '..' || below.startsWith('../') || path.isAbsolute(below))
      return { ...leftOut, target, reason: 'link-outside' }
    const because = depth < maxTargets ? await explain(below, signal, depth + 1) : undefined
    if (because !== undefined) return { ...leftOut, target: below, reason: 'link-target', because }
    return { ...leftOut, target: below, reason: 'link-circle' }
  }

  const byKind = async (
    at: OpenedEntry,
    name: string,
    signal: AbortSignal,
    depth = 0,
  ): Promise<LeftOut | undefined> => {
    const stats = await statFile(at.place, name, pool, signal)
    const leftOut = { path: `${at.aliases[0].path}${name}` }
    if (stats === undefined) return { ...leftOut, reason: 'missing' }
    if (stats.isSymbolicLink()) {
      const nameOmission = byName(at, name)
      if (nameOmission !== undefined) return nameOmission
      for (const directory of [false, true]) if (await enters(at, name, directory, signal)) return undefined
      return byName(at, `${name}/`) ?? byLink(at, name, depth, signal)
    }
    const nameOmission = byName(at, stats.isDirectory() ? `${name}/` : name)
    if (nameOmission !== undefined) return nameOmission
    const kind = servableKind(stats, at.device, permit)
    if (kind === undefined) {
      if (stats.dev !== at.device && !allowMounts) return { ...leftOut, reason: 'other-file-system' }
      return { ...leftOut, reason: stats.isFile() ? 'hard-link' : 'special-file' }
    }
    if (!(await mayRead(at.place, stats, name, pool, signal))) return { ...leftOut, reason: 'no-right' }
    return undefined
  }

  const enters = async (at: OpenedEntry, name: string, directory: boolean, signal: AbortSignal): Promise<boolean> => {
    const entry = await walk.enter(at, name, directory, signal).catch(fallbackTo(undefined, 'not-found'))
    entry?.place.close()
    return entry !== undefined
  }

  const explain = async (queryPath: string, signal: AbortSignal, depth = 0): Promise<LeftOut | undefined> => {
    const segments = queryPath.split('/').filter((segment) => segment !== '')
    let position = await walk.root(signal)
    try {
      for (const [index, segment] of segments.entries()) {
        const isLast = index === segments.length - 1
        const name = await listedSpelling(position, segment, pool, signal)
        const leftOut = await byKind(position, name, signal, depth)
        if (leftOut !== undefined) return leftOut
        const stats = await fs.promises.stat(`${position.place.at}/${name}`).catch(() => undefined)
        const parent = position
        const step = `${parent.aliases[0].path}${name}`
        if (!isLast && stats?.isDirectory() !== true) return { reason: 'missing', path: queryPath }
        try {
          position = await walk.enter(parent, name, stats?.isDirectory() === true, signal)
        } catch (error) {
          if (!isResourceError(error, 'not-found')) throw error
          return {
            reason: refusals[error.message] ?? 'missing',
            path: stats?.isDirectory() === true ? `${step}/` : step,
          }
        }
        parent.place.close()
      }
      return undefined
    } finally {
      position.place.close()
    }
  }

  return {
    /** Returns why a path is not served; undefined when it is served. */
    explain: (queryPath: string, signal: AbortSignal): Promise<LeftOut | undefined> => explain(queryPath, signal),
    /**
     * Counts the names left out, among at most `maxNames` names.
     *
     * @param see Gets each path; that of a folder ends in `/`. A link is seen as both, since it may lead to either. `isWalked` tells whether
     * the names in a folder are counted too.
     */
    count: (
      maxNames: number,
      signal: AbortSignal,
      see: (path: string, isWalked: boolean) => void = () => {},
    ): Promise<LeftOutCounts> => countLeftOut(walk, byKind, maxNames, see, signal),
    close: places.close,
  }
}

/** Returns the name in a directory that is canonically equivalent to a missing name, if there is exactly one; else the name itself. */
async function listedSpelling({ place }: OpenedEntry, name: string, pool: Pool, signal: AbortSignal): Promise<string> {
  if (!mayHaveOtherSpellings(name) || (await statFile(place, name, pool, signal)) !== undefined) return name
  const names = await fs.promises.readdir(place.at)
  const [only = name, ...others] = names.filter((one) => canonicalPath(one) === canonicalPath(name))
  return others.length === 0 ? only : name
}

function leftOutByName(
  { aliases }: OpenedEntry,
  step: string,
  judge: ReturnType<typeof createNameJudge>,
  exclude: FilesOptions['exclude'],
): LeftOut | undefined {
  for (const alias of aliases) {
    const path = `${alias.path}${step}`
    const rule = judge(path, alias.ignores)
    if (rule === undefined) continue
    const leftOut = { path: `${aliases[0].path}${step}` }
    if (rule === 'default') return { ...leftOut, reason: isSecretName(path) ? 'secret-name' : 'tools' }
    if (rule === 'gitignore')
      return { ...leftOut, reason: rule, ...defined({ line: ignoringLine(path, alias.ignores) }) }
    if (rule !== 'exclude') return { ...leftOut, reason: rule }
    const glob = exclude?.find((pattern) => compileGlob(pattern, { ignoreCase: true })(path))
    return { ...leftOut, reason: rule, ...defined({ glob }) }
  }
  return undefined
}

async function countLeftOut(
  walk: ReturnType<typeof createWalk>,
  byKind: (at: OpenedEntry, name: string, signal: AbortSignal) => Promise<LeftOut | undefined>,
  maxNames: number,
  see: (path: string, isWalked: boolean) => void,
  signal: AbortSignal,
): Promise<LeftOutCounts> {
  const counts: Partial<Record<LeftOutReason, number>> = {}
  let count = 0
  const countIn = async (position: OpenedEntry): Promise<void> => {
    for (const entry of await fs.promises.readdir(position.place.at, { withFileTypes: true })) {
      signal.throwIfAborted()
      if (count++ >= maxNames) return
      if (eventLoopYield.due()) await eventLoopYield.take()
      const leftOut = await byKind(position, entry.name, signal)
      // The file may have been deleted since its name was read.
      if (leftOut !== undefined && leftOut.reason !== 'missing')
        counts[leftOut.reason] = (counts[leftOut.reason] ?? 0) + 1
      const path = `${position.aliases[0].path}${entry.name}`
      if (!entry.isDirectory()) see(path, false)
      // A symbolic link may lead to a folder.
      if (leftOut !== undefined || !entry.isDirectory()) {
        if (!entry.isFile()) see(`${path}/`, false)
        continue
      }
      try {
        const child = await walk.enter(position, entry.name, true, signal)
        see(`${path}/`, true)
        await countIn(child).finally(child.place.close)
      } catch (error) {
        if (!isResourceError(error, 'not-found')) throw error
        see(`${path}/`, false)
        const reason = refusals[error.message] ?? 'missing'
        counts[reason] = (counts[reason] ?? 0) + 1
      }
    }
  }
  const root = await walk.root(signal)
  await countIn(root).finally(root.place.close)
  return { counts, complete: count <= maxNames }
}

/** Reasons, by the messages with which the walk refuses a name. */
const refusals: Readonly<Record<string, LeftOutReason>> = {
  'listed in another spelling': 'spelling',
  'another mount': 'other-file-system',
  'no right to read': 'no-right',
  'behind too many links': 'link-depth',
  'a link leads in a loop': 'link-circle',
  'too deep': 'depth',
  [checkoutRefusal]: 'worktree',
  [gitDirectoryRefusal]: 'git-directory',
}
