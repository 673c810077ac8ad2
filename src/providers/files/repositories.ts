import * as fs from 'node:fs/promises'
import { join, relative, sep } from 'node:path'
import { createRecent } from '../../core/kit/lru.ts'
import type { Checkout } from '../checkout.ts'
import { checkoutAround, checkoutAt } from '../checkout.ts'
import { type GitSettings, settingsOf, trackedAndIgnored, userSettings } from './ask-git.ts'
import { beginRepository, type IgnoreKind, type Ignores } from './ignores.ts'
import { type Place, type Pool, untilAbort } from './place.ts'

/** Age from which the rules of a repository are loaded again in the background, in milliseconds: under load no request waits for them. */
const reloadAgeMs = 500
/** Time that the rules of a repository outside of its `.gitignore` files, which hardly ever change, are cached, in milliseconds. */
const maxAgeMs = 1000

/** A file of ignore rules that lies outside of the root, or applies to a whole repository. */
export interface RuleFile {
  /** The absolute path. */
  readonly at: string
  /** The path that is shown to the operator. */
  readonly shown: string
  readonly kind: IgnoreKind
  readonly base: string
  /** The path of the base below the directory of the rules. */
  readonly inside: string
  /** Whether a symbolic link is followed, as git follows it. */
  readonly follow?: boolean
}

interface RepositoryOptions {
  readonly pool: Pool
  /** Whether the rules of git apply. If not, only the place of the repository is looked up. */
  readonly git: boolean
  /** Names of the files of ignore rules in a directory, the weakest first. */
  readonly files: readonly (readonly [name: string, kind: IgnoreKind])[]
  readonly read: (file: RuleFile) => Promise<string>
  readonly compile: (text: string, file: RuleFile, above: Ignores | undefined) => Ignores | undefined
}

interface LoadedRules {
  readonly time: number
  readonly above: Ignores | undefined
  readonly rules: Ignores | undefined
}

/** The answers of git about a repository, and the state of its files for which they hold. */
interface AskedGit {
  readonly state: string
  readonly time: number
  readonly settings: GitSettings
  readonly tracked: readonly string[]
}

/** The rules that apply to a whole repository, and the place of its configuration. Of each repository they are loaded at most once a second. */
export function createRepositories({ pool, git, files, read, compile }: RepositoryOptions) {
  const loaded = createRecent<LoadedRules>(1000)
  const loading = new Map<string, Promise<Ignores | undefined>>()
  const asked = createRecent<AskedGit>(1000)
  const beginnings = createRecent<Ignores>(1000)
  /** Time of the last change of a `.gitignore` file. */
  let changed = 0

  const begin = (base: string, above: Ignores | undefined, commonDir: string, paths: readonly string[]): Ignores => {
    const tracked = withDirectories(paths)
    const known = beginnings.get(base)
    const isSame =
      known?.above === above && known?.repository?.commonDir === commonDir && sameSet(known.repository.tracked, tracked)
    if (isSame) return known
    const begun = beginRepository(base, above, { commonDir, tracked })
    beginnings.set(base, begun)
    return begun
  }

  const askGit = async (checkout: Checkout, exclude: string): Promise<AskedGit> => {
    const { gitDir, commonDir } = checkout
    const stateOf = async ({ excludesFile }: GitSettings) => {
      const index = ['index', 'config.worktree'].map((name) => join(gitDir, name))
      const stamps = [...index, join(commonDir, 'config'), ...userSettings(), excludesFile].map(stampAt)
      return [exclude, ...(await Promise.all(stamps))].join('\n')
    }
    const known = asked.get(gitDir)
    if (known !== undefined && known.time > changed && known.state === (await stateOf(known.settings))) return known
    const time = Date.now()
    const settings = await settingsOf(checkout)
    const state = await stateOf(settings)
    const answer = { state, time, settings, tracked: await trackedAndIgnored(checkout, settings, exclude) }
    asked.set(gitDir, answer)
    return answer
  }

  const load = async (place: Place, base: string, above: Ignores | undefined): Promise<Ignores | undefined> => {
    const find = async () => {
      const real = await fs.realpath(place.at)
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

  /** Returns the files of ignore rules of the directories from the top of a repository to above a root in it. */
  function filesAbove(top: string, inside: string): readonly RuleFile[] {
    const segments = inside.split('/').slice(0, -1)
    return segments.flatMap((_, depth) => {
      const rest = segments
        .slice(depth)
        .map((name) => `${name}/`)
        .join('')
      const up = '../'.repeat(segments.length - depth)
      return files.map(([name, kind]) => ({
        ...{ at: join(top, ...segments.slice(0, depth), name), shown: `${up}${name}`, kind, base: '', inside: rest },
      }))
    })
  }

  return {
    /** Tells that a file of git's rules has changed at a time, in milliseconds since 1970. */
    heard: (time: number): void => {
      changed = Math.max(changed, time)
    },
    /** Returns the rules of the repository of a directory: of the one that the root is in (`''`), or that begins at a directory. */
    rulesOf: async (
      place: Place,
      base: string,
      above: Ignores | undefined,
      signal: AbortSignal,
    ): Promise<Ignores | undefined> => {
      const known = loaded.get(base)
      const time = Date.now()
      const ageMs = known === undefined || known.above !== above ? Infinity : Math.abs(time - known.time)
      if (known !== undefined && ageMs < reloadAgeMs) return known.rules
      let work = loading.get(base)
      if (work === undefined) {
        place.keep()
        work = load(place, base, above)
          .then((rules) => {
            loaded.set(base, { time, above, rules })
            return rules
          })
          .finally(() => {
            loading.delete(base)
            place.close()
          })
        loading.set(base, work)
      }
      if (known === undefined || ageMs >= maxAgeMs) return untilAbort(work, signal)
      // The error is ignored here: once the rules are too old, a request waits for the load, and reports its error.
      work.catch(() => {})
      return known.rules
    },
  }
}

const never = new AbortController().signal

/** Adds the directories of paths, with a final `/`. A tracked path may be a repository in the repository. */
function withDirectories(paths: readonly string[]): ReadonlySet<string> {
  const found = new Set<string>()
  for (const path of paths) {
    found.add(path).add(`${path}/`)
    for (let slash = path.indexOf('/'); slash !== -1; slash = path.indexOf('/', slash + 1))
      found.add(path.slice(0, slash + 1))
  }
  return found
}

function sameSet(a: ReadonlySet<string>, b: ReadonlySet<string>): boolean {
  return a.size === b.size && [...a].every((one) => b.has(one))
}

async function stampAt(path: string): Promise<string> {
  const stats = await fs.stat(path, { bigint: true }).catch(() => undefined)
  return stats === undefined ? '' : `${stats.mtimeNs}.${stats.ctimeNs}.${stats.size}.${stats.ino}`
}
