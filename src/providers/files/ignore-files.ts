import { once } from 'node:events'
import * as fs from 'node:fs'
import { mkdir, mkdtemp, readdir, rm, symlink, writeFile } from 'node:fs/promises'
import { homedir, tmpdir } from 'node:os'
import { dirname, isAbsolute, join, relative, resolve, sep } from 'node:path'
import { fallbackTo, notFound } from '../../core/errors.ts'
import { createLruCache } from '../../core/kit/lru.ts'
import { childLimits } from '../../core/kit/workers.ts'
import type { Log } from '../../core/log.ts'
import {
  type Checkout,
  checkoutAround,
  checkoutAt,
  gitDirectoryNames,
  gitDirIn,
  isGitDirectory,
  isOtherCheckout,
  maxPointerBytes,
} from '../checkout.ts'
import { findProgram, spawnLimited } from '../program.ts'
import {
  compileIgnores,
  type IgnoreKind,
  type IgnoreLine,
  type Ignores,
  ignoreEverything,
  repositoriesOf,
  repositoryRules,
  rulesOverruledByGit,
} from './ignores.ts'
import {
  createDirectoryFacts,
  isSettled,
  type MaybeStats,
  type Place,
  type Pool,
  type RootAccess,
  statFiles,
  untilAbort,
  versionStamp,
} from './place.ts'
import { createReadHandle, openDescriptor, statDescriptor } from './root.ts'

export type IgnoreFiles = ReturnType<typeof createIgnoreFiles>

/** The files of ignore rules in a directory, the weakest first. */
const ruleFiles: readonly (readonly [name: string, kind: IgnoreKind])[] = [
  ['.gitignore', 'git'],
  ['.ignore', 'ignore'],
  ['.hikidashiignore', 'own'],
]
const ignoreFileNames: readonly string[] = ruleFiles.map(([name]) => name)

const lookedUp = ['.git', ...gitDirectoryNames, ...ignoreFileNames]

const maxBytes = 512 * 1024
/** Maximum number of automaton steps of the patterns with wildcards in a file of ignore rules and in those above it. */
const maxSteps = 32_768

/** The fact that is recorded for a directory with none of the names in {@link lookedUp}. */
const plain = 'plain'

export const checkoutRefusal = 'another checkout'
export const gitDirectoryRefusal = 'a git directory'

interface CachedIgnores {
  readonly above: Ignores | undefined
  readonly stamp: string
  readonly settled: boolean
  readonly text: string
  readonly ignores: Ignores | undefined
}

interface IgnoreFilesOptions {
  readonly places: RootAccess
  readonly pool: Pool
  readonly log: Log
  /** Whether the rules of git apply. Those of `.ignore` and `.hikidashiignore` always do. */
  readonly gitignore: boolean
  readonly worktrees: boolean
  readonly servesPrivate: (path: string) => boolean
}

function createStartReader(places: RootAccess, pool: Pool, log: Log) {
  const readIn = async (place: Place, name: string, path: string, limit: number, signal: AbortSignal) => {
    const child = await places.child(place, name, { directory: false }, signal)
    try {
      if (!child.stats.isFile()) return ''
      const handle = await places.open(child, signal)
      return await readStart(handle, child.stats, path, limit, signal).finally(handle.close)
    } finally {
      child.close()
    }
  }

  const readStart = async (
    handle: Pick<Awaited<ReturnType<RootAccess['open']>>, 'read'>,
    { size }: fs.BigIntStats,
    path: string,
    limit: number,
    signal: AbortSignal,
  ): Promise<string> => {
    const buffer = Buffer.alloc(Math.min(Number(size), limit))
    let length = 0
    for (let count = 1; count > 0 && length < buffer.length; length += count)
      count = await handle.read(buffer, { offset: length, length: buffer.length - length, position: length }, signal)
    if (size <= limit) return buffer.toString('latin1', 0, length)
    log('warn', 'a file of ignore rules is too large: the rest of it is ignored', { path, limit })
    return buffer.toString('latin1', 0, buffer.lastIndexOf('\n', length) + 1)
  }

  const readOutside = async ({ at, shown, follow = false }: RuleFile): Promise<string> => {
    const { O_RDONLY, O_NONBLOCK = 0, O_NOFOLLOW = 0 } = fs.constants
    try {
      const flags = O_RDONLY | O_NONBLOCK | (follow ? 0 : O_NOFOLLOW)
      const descriptor = await openDescriptor(at, flags, pool, { signal: never, local: true })
      try {
        const stats = await statDescriptor(descriptor, false, pool, never)
        if (!stats.isFile()) return ''
        return await readStart(createReadHandle(descriptor, pool, false, stats), stats, shown, maxBytes, never)
      } finally {
        descriptor.close()
      }
    } catch {
      return ''
    }
  }

  return { readIn, readOutside }
}

export function createIgnoreFiles({ places, pool, log, gitignore, worktrees, servesPrivate }: IgnoreFilesOptions) {
  const facts = createDirectoryFacts()
  const files = createLruCache<CachedIgnores>(10_000)

  const { readIn, readOutside } = createStartReader(places, pool, log)

  const compile = (text: string, file: RuleFile, above: Ignores | undefined, stamp = '', settled = false) => {
    const { shown, kind, base, inside } = file
    const cachedIgnores = files.get(shown)
    const same = cachedIgnores !== undefined && cachedIgnores.above === above && cachedIgnores.text === text
    const ignores = same ? cachedIgnores.ignores : text.trim() === '' ? above : compileNew(text, file, above)
    files.set(shown, { above, stamp, settled, text, ignores })
    return ignores

    function compileNew(text: string, file: RuleFile, above: Ignores | undefined): Ignores {
      const ignores = compileIgnores(text, base, above, { kind, inside, file: shown })
      if (ignores.steps <= maxSteps) return ignores
      log('warn', 'a file of ignore rules has too many wildcards: nothing in its directory is served', {
        path: file.shown,
        limit: maxSteps,
      })
      return ignoreEverything(base, above, { file: shown, pattern: 'too many wildcards' }, kind)
    }
  }

  const repositories = createRepositories({ pool, git: gitignore, read: readOutside, compile })

  const load = async (
    place: Place,
    stats: fs.BigIntStats,
    file: RuleFile,
    name: string,
    above: Ignores | undefined,
    signal: AbortSignal,
  ): Promise<Ignores | undefined> => {
    const stamp = versionStamp(stats)
    const ignores = files.get(file.shown)
    if (ignores?.settled && ignores.stamp === stamp && ignores.above === above) return ignores.ignores
    const settled = isSettled(stats, Date.now())
    // As in git, a link or an unreadable file has no rules.
    const text = await readIn(place, name, file.shown, maxBytes, signal).catch(fallbackTo('', 'not-found'))
    if (file.kind === 'git') repositories.heard(Number(stats.ctimeMs))
    return compile(text, file, above, stamp, settled)
  }

  /** Throws for a git directory, and for another working tree of a served repository, unless the options allow them. */
  const refusePrivate = async (
    place: Place,
    path: string,
    statsByFile: ReadonlyMap<string, fs.BigIntStats>,
    above: Ignores | undefined,
    signal: AbortSignal,
  ): Promise<void> => {
    if (isGitDirectory((name) => statsByFile.has(name)) && !servesPrivate(path)) throw notFound(gitDirectoryRefusal)
    if (worktrees || statsByFile.get('.git')?.isFile() !== true) return
    const text = await readIn(place, '.git', `${path}.git`, maxPointerBytes, signal).catch(fallbackTo('', 'not-found'))
    const around = repositoriesOf(above).map(({ commonDir }) => commonDir)
    const isOther = async () => {
      const target = gitDirIn(Buffer.from(text, 'latin1').toString(), await fs.promises.realpath(place.at))
      return target !== undefined && (await isOtherCheckout(target, places.real, around))
    }
    if (await pool.run(isOther, { signal, hold: place })) throw notFound(checkoutRefusal)
  }

  /** Returns the rules for a directory: if git ignores it but tracks files in it, rules that serve only those; else `above`. */
  const onlyTracked = (path: string, above: Ignores | undefined): Ignores | undefined => {
    const by = gitignore ? rulesOverruledByGit(path, above) : undefined
    if (by === undefined) return above
    const cachedIgnores = files.get(`${path}/`)
    if (cachedIgnores !== undefined && cachedIgnores.above === above) return cachedIgnores.ignores
    const line: IgnoreLine = by.lineFor(path.slice(by.base.length)) ?? { file: by.base, pattern: '' }
    const ignores = ignoreEverything(path, above, line)
    files.set(`${path}/`, { above, stamp: '', settled: false, text: '', ignores })
    return ignores
  }

  return {
    /**
     * Returns the rules that apply inside a directory, given those of its parent directory; the same object while they are unchanged and cached.
     *
     * @throws ResourceError `not-found` for a git directory or another working tree that is not served.
     */
    inside: async (
      place: Place,
      path: string,
      above: Ignores | undefined,
      signal: AbortSignal,
    ): Promise<Ignores | undefined> => {
      const isRoot = path === ''
      const outer = isRoot ? await repositories.rulesOf(place, '', undefined, signal) : onlyTracked(path, above)
      if (facts.of(place)?.has(plain)) return outer
      const fileStats = await statFiles(place, lookedUp, pool, signal)
      const statsOfNames = statsByName(fileStats)
      if (statsOfNames.size === 0) facts.note(place, plain)
      let rules = outer
      if (!isRoot) {
        await refusePrivate(place, path, statsOfNames, above, signal)
        if (statsOfNames.has('.git')) rules = await repositories.rulesOf(place, path, outer, signal)
      }
      // git reads no rules in a directory that it ignores.
      const readsGit = gitignore && (isRoot || outer === above || rules !== outer)
      for (const [name, kind] of ruleFiles) {
        const stats = statsOfNames.get(name)
        if (stats?.isFile() !== true || (kind === 'git' && !readsGit)) continue
        const file: RuleFile = { at: '', shown: `${path}${name}`, kind, base: path, inside: '' }
        rules = await load(place, stats, file, name, rules, signal)
      }
      return rules
    },
  }
}

const never = new AbortController().signal

function statsByName(fileStats: readonly MaybeStats[]): ReadonlyMap<string, fs.BigIntStats> {
  const byName = new Map<string, fs.BigIntStats>()
  for (const [index, name] of lookedUp.entries()) {
    const stats = fileStats[index]
    if (stats !== undefined) byName.set(name, stats)
  }
  return byName
}

/** Age from which the rules of a repository are loaded again in the background, in milliseconds. */
const reloadAgeMs = 500
/** Age from which a request waits until the rules of a repository are loaded again, in milliseconds. */
const maxAgeMs = 1000

interface RuleFile {
  /** The absolute path; empty for a file below the root, which is opened from its directory. */
  readonly at: string
  readonly shown: string
  readonly kind: IgnoreKind
  readonly base: string
  /** The path of `base` relative to the directory that the patterns refer to, with a final `/`; `''` if both are the same. */
  readonly inside: string
  readonly follow?: boolean
}

interface RepositoryOptions {
  readonly pool: Pool
  readonly git: boolean
  readonly read: (file: RuleFile) => Promise<string>
  readonly compile: (text: string, file: RuleFile, above: Ignores | undefined) => Ignores | undefined
}

interface LoadedRules {
  readonly time: number
  readonly above: Ignores | undefined
  readonly rules: Ignores | undefined
}

interface AskedGit {
  readonly state: string
  readonly time: number
  readonly settings: GitSettings
  readonly tracked: readonly string[]
}

function createRepositories({ pool, git, read, compile }: RepositoryOptions) {
  const rulesCache = createLruCache<LoadedRules>(1000)
  const loading = new Map<string, Promise<Ignores | undefined>>()
  const gitCache = createLruCache<AskedGit>(1000)
  const beginnings = createLruCache<Ignores>(1000)
  /** Time of the latest known change of a `.gitignore` file, in milliseconds since 1970. */
  let lastChangeMs = 0

  const begin = (base: string, above: Ignores | undefined, commonDir: string, paths: readonly string[]): Ignores => {
    const tracked = withDirectories(paths)
    const cachedIgnores = beginnings.get(base)
    const isSame =
      cachedIgnores?.above === above &&
      cachedIgnores?.repository?.commonDir === commonDir &&
      sameSet(cachedIgnores.repository.tracked, tracked)
    if (isSame) return cachedIgnores
    const ignores = repositoryRules(base, above, { commonDir, tracked })
    beginnings.set(base, ignores)
    return ignores
  }

  const askGit = async (checkout: Checkout, exclude: string): Promise<AskedGit> => {
    const { gitDir, commonDir } = checkout
    const stateOf = async ({ excludesFile }: GitSettings) => {
      const index = ['index', 'config.worktree'].map((name) => join(gitDir, name))
      const stamps = [...index, join(commonDir, 'config'), ...userSettings(), excludesFile].map(stampAt)
      return [exclude, ...(await Promise.all(stamps))].join('\n')
    }
    const git = gitCache.get(gitDir)
    if (git !== undefined && git.time > lastChangeMs && git.state === (await stateOf(git.settings))) return git
    const time = Date.now()
    const settings = await settingsOf(checkout)
    const state = await stateOf(settings)
    const answer = { state, time, settings, tracked: await trackedAndIgnored(checkout, settings, exclude) }
    gitCache.set(gitDir, answer)
    return answer
  }

  const load = async (place: Place, base: string, above: Ignores | undefined): Promise<Ignores | undefined> => {
    const find = async () => {
      const real = await fs.promises.realpath(place.at)
      return { real, checkout: await (base === '' ? checkoutAround(real) : checkoutAt(real)) }
    }
    const { real, checkout } = await pool.run(find, { signal: never, hold: place })
    if (checkout === undefined) return above
    const { top, commonDir } = checkout
    if (!git) return begin(base, above, commonDir, [])
    const inside = real === top ? '' : `${relative(top, real).split(sep).join('/')}/`
    const excludeFile: RuleFile = {
      ...{ at: join(commonDir, 'info', 'exclude'), kind: 'git', base, inside, follow: true },
      shown:
        inside === '' && commonDir === join(top, '.git')
          ? `${base}.git/info/exclude`
          : join(commonDir, 'info', 'exclude'),
    }
    const exclude = await read(excludeFile)
    const { settings, tracked } = await askGit(checkout, exclude)
    const below = tracked.filter((path) => path.startsWith(inside)).map((path) => path.slice(inside.length))
    const userFile = { ...excludeFile, at: settings.excludesFile, shown: settings.excludesFile }
    let rules: Ignores | undefined = begin(base, above, commonDir, below)
    rules = compile(await read(userFile), userFile, rules)
    rules = compile(exclude, excludeFile, rules)
    for (const file of filesAbove(top, inside)) rules = compile(await read(file), file, rules)
    return rules
  }

  /** Returns the files of ignore rules in the directories above the root, from the top of the repository down. */
  function filesAbove(top: string, inside: string): readonly RuleFile[] {
    const segments = inside.split('/').slice(0, -1)
    return segments.flatMap((_, depth) => {
      const rest = segments
        .slice(depth)
        .map((name) => `${name}/`)
        .join('')
      const up = '../'.repeat(segments.length - depth)
      return ruleFiles.map(([name, kind]) => ({
        ...{ at: join(top, ...segments.slice(0, depth), name), shown: `${up}${name}`, kind, base: '', inside: rest },
      }))
    })
  }

  return {
    /** Records that a `.gitignore` file changed at a time, in milliseconds since 1970. */
    heard: (time: number): void => {
      lastChangeMs = Math.max(lastChangeMs, time)
    },
    /** Returns the rules of the repository that begins at `base`, or that the root is in (`''`); `above` if there is no repository. */
    rulesOf: async (
      place: Place,
      base: string,
      above: Ignores | undefined,
      signal: AbortSignal,
    ): Promise<Ignores | undefined> => {
      const loadedRules = rulesCache.get(base)
      const time = Date.now()
      const ageMs =
        loadedRules === undefined || loadedRules.above !== above ? Infinity : Math.abs(time - loadedRules.time)
      if (loadedRules !== undefined && ageMs < reloadAgeMs) return loadedRules.rules
      let work = loading.get(base)
      if (work === undefined) {
        place.keep()
        work = load(place, base, above)
          .then((rules) => {
            rulesCache.set(base, { time, above, rules })
            return rules
          })
          .finally(() => {
            loading.delete(base)
            place.close()
          })
        loading.set(base, work)
      }
      if (loadedRules === undefined || ageMs >= maxAgeMs) return untilAbort(work, signal)
      // The error is ignored: once the rules are too old, a request waits for a load and reports its error.
      work.catch(() => {})
      return loadedRules.rules
    },
  }
}

/** Returns the paths, also with a final `/` (a tracked path may be a submodule), and their directories. */
function withDirectories(paths: readonly string[]): ReadonlySet<string> {
  const spellings = new Set<string>()
  for (const path of paths) {
    spellings.add(path).add(`${path}/`)
    for (let slash = path.indexOf('/'); slash !== -1; slash = path.indexOf('/', slash + 1))
      spellings.add(path.slice(0, slash + 1))
  }
  return spellings
}

function sameSet(a: ReadonlySet<string>, b: ReadonlySet<string>): boolean {
  return a.size === b.size && [...a].every((one) => b.has(one))
}

async function stampAt(path: string): Promise<string> {
  const stats = await fs.promises.stat(path, { bigint: true }).catch(() => undefined)
  return stats === undefined ? '' : `${stats.mtimeNs}.${stats.ctimeNs}.${stats.size}.${stats.ino}`
}

interface GitSettings {
  /** The file of ignore rules for all repositories (`core.excludesFile`), as an absolute path. */
  readonly excludesFile: string
  readonly objectFormat: string
}

const timeoutMs = 5000
const maxOutputBytes = 16 * 1024 * 1024

const settingsVariables = ['HOME', 'XDG_CONFIG_HOME', 'GIT_CONFIG_GLOBAL', 'GIT_CONFIG_SYSTEM', 'GIT_CONFIG_NOSYSTEM']

/** Returns the settings of a repository; the defaults of git if they cannot be read. */
async function settingsOf({ gitDir, top }: Checkout): Promise<GitSettings> {
  const keyPattern = '^(core\\.excludesfile|extensions\\.objectformat)$'
  const env = { ...ownVariables(), GIT_DIR: gitDir }
  const output = await runGit(['config', '--null', '--type=path', '--get-regexp', keyPattern], dirname(gitDir), env)
  // The last value of a key counts.
  const values = new Map(
    (output ?? '').split('\0').map((record): [string, string] => {
      const end = record.indexOf('\n')
      return end === -1 ? [record, ''] : [record.slice(0, end), record.slice(end + 1)]
    }),
  )
  const excludesFile = values.get('core.excludesfile')
  return {
    excludesFile: excludesFile === undefined ? join(userFolder(), 'ignore') : resolve(top, excludesFile),
    objectFormat: values.get('extensions.objectformat') === 'sha256' ? 'sha256' : 'sha1',
  }
}

function userFolder(): string {
  return join(process.env.XDG_CONFIG_HOME || join(homedir(), '.config'), 'git')
}

function userSettings(): readonly string[] {
  return [process.env.GIT_CONFIG_GLOBAL || join(homedir(), '.gitconfig'), join(userFolder(), 'config')]
}

function ownVariables(): Readonly<Record<string, string>> {
  return Object.fromEntries(settingsVariables.flatMap((name) => (process.env[name] ? [[name, process.env[name]]] : [])))
}

/**
 * Returns the paths of the tracked files that ignore rules match, relative to the top; none if git does not answer. git runs in a temporary git
 * directory, so that the configuration of the repository cannot start a program.
 *
 * @param exclude The text of `info/exclude`, one character per byte.
 */
async function trackedAndIgnored(
  { top, gitDir }: Checkout,
  { excludesFile, objectFormat }: GitSettings,
  exclude: string,
): Promise<readonly string[]> {
  const own = await mkdtemp(join(tmpdir(), 'hikidashi-ignored-'))
  try {
    for (const name of ['objects', 'refs', 'info']) await mkdir(join(own, name))
    await writeFile(join(own, 'HEAD'), 'ref: refs/heads/none\n')
    await writeFile(
      join(own, 'config'),
      `[core]\n\trepositoryformatversion = 1\n[extensions]\n\tobjectFormat = ${objectFormat}\n`,
    )
    await writeFile(join(own, 'info', 'exclude'), exclude, 'latin1')
    // git looks for the shared part of a split index in its git directory.
    for (const name of await readdir(gitDir))
      if (name.startsWith('sharedindex.')) await symlink(join(gitDir, name), join(own, name))
    const output = await runGit(
      ['-c', `core.excludesFile=${excludesFile}`, 'ls-files', '--cached', '--ignored', '--exclude-standard', '-z'],
      top,
      {
        ...{ GIT_DIR: own, GIT_WORK_TREE: top, GIT_INDEX_FILE: join(gitDir, 'index') },
        ...{ GIT_CONFIG_NOSYSTEM: '1', GIT_CONFIG_GLOBAL: '/dev/null', HOME: '/nonexistent' },
      },
    )
    return (output ?? '').split('\0').filter((path) => path !== '')
  } finally {
    await rm(own, { recursive: true, force: true })
  }
}

let git: Promise<string | undefined> | undefined

/** Runs git and returns its output; undefined if git is not installed, fails, or writes more than {@link maxOutputBytes}. */
async function runGit(
  args: readonly string[],
  cwd: string,
  env: Readonly<Record<string, string>>,
): Promise<string | undefined> {
  git ??= findProgram(process.platform === 'win32' ? 'git.exe' : 'git')
  const program = await git
  if (program === undefined || !isAbsolute(program)) return undefined
  const child = spawnLimited(program, ['--no-pager', ...args], childLimits.git(timeoutMs), {
    cwd,
    env: {
      ...{ PATH: `${dirname(program)}:/usr/bin:/bin`, LC_ALL: 'C', GIT_OPTIONAL_LOCKS: '0' },
      ...{ GIT_NO_LAZY_FETCH: '1', GIT_ALLOW_PROTOCOL: 'none', GIT_TERMINAL_PROMPT: '0' },
      ...env,
    },
    stdio: ['ignore', 'pipe', 'ignore'],
    timeout: timeoutMs,
    killSignal: 'SIGKILL',
    windowsHide: true,
  })
  const chunks: Buffer[] = []
  let length = 0
  child.stdout?.on('data', (chunk: Buffer) => {
    length += chunk.length
    if (length > maxOutputBytes) child.kill('SIGKILL')
    else chunks.push(chunk)
  })
  try {
    const [code] = await once(child, 'close')
    return code === 0 ? Buffer.concat(chunks).toString() : undefined
  } catch {
    return undefined
  }
}
