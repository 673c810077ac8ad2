import { existsSync } from 'node:fs'
import { parse, relative, resolve } from 'node:path'
import type { MountedCatalog } from '../../config/build.ts'
import { defaultStoreFile, pathExistenceFindings } from '../../config/folder.ts'
import type { Config } from '../../config/load.ts'
import { createScopeFinder, isSearch, type PlannedMount, planConfig, planFolders } from '../../config/plan.ts'
import { type ConfigProblem, formatConfigProblem } from '../../config/problem.ts'
import { planSetUp } from '../../config/set-up.ts'
import { defaultConfigName, stateFolder } from '../../config/state-folder.ts'
import { homeFolder } from '../../core/kit/home.ts'
import { defined } from '../../core/kit/object.ts'
import type { Log, MetricsRegistry } from '../../core/log.ts'
import type { Principal } from '../../core/provider.ts'
import type { Scrubber } from '../../core/scrub.ts'
import { isInside } from '../../schema/values.ts'
import { commandFailure, rethrowAsFailure, usageError } from '../terminal/exit.ts'
import { type Io, pluralize } from '../terminal/io.ts'
import type { Secrets } from '../terminal/secrets.ts'
import { escapeText } from '../terminal/text.ts'
import { loadLocalConfig, withheldNote } from './withheld.ts'

export interface LocalOptions {
  readonly folders?: readonly string[]
  readonly config?: string
  readonly name?: string
  /** Serves the files of folders without history, settings and search. */
  readonly only?: 'files'
}

export interface LocalSetUp {
  readonly config: Config | undefined
  /** The mounts that are known without a survey of the folders. */
  readonly mounts: readonly PlannedMount[]
  /** Resolves to the mounts, after a survey of the folders. By default {@link mounts}. */
  readonly complete?: () => Promise<readonly PlannedMount[]>
  readonly store?: Config['store']
  readonly principal: Principal
  /** Whether the current folder is served because nothing was named. */
  readonly assumed: boolean
  /** Sentences about named folders that are missing. They are served as soon as they exist. */
  readonly missing: readonly string[]
  readonly withoutGit?: readonly string[]
}

export type PlanResult = { readonly local: LocalSetUp } | { readonly problems: readonly ConfigProblem[] }

/**
 * Plans the mounts of the named folders and the named configuration; else of `hikidashi.json` in the current folder;
 * else of the current folder itself. Of a configuration that was not named, the parts that need trust are left out
 * (`config.withheld`).
 * @param secrets Receives the secrets that the configuration refers to.
 * @throws CommandError if no named folder exists and there is no configuration, or if the root or the home folder would
 * be served because nothing was named
 */
export async function planLocalSetUp(
  { folders = [], config: configFile, name, only }: LocalOptions,
  secrets: Secrets,
): Promise<PlanResult> {
  if (configFile === '') throw usageError('The name of the configuration is empty.')
  const isDefaultRead = folders.length === 0 && only === undefined && existsSync(defaultConfigName)
  const file = configFile ?? (isDefaultRead ? defaultConfigName : undefined)
  const assumed = file === undefined && folders.length === 0
  if (assumed) refuseAssumed(process.cwd())
  if (name !== undefined && folders.length === 0 && file !== undefined)
    throw usageError(
      '--name is only for a folder. The mounts of a configuration have their own addresses. Leave out --name.',
    )
  const folderNames = assumed ? ['.'] : folders
  const there: string[] = []
  const missing: string[] = []
  for (const folder of folderNames) {
    if (folder === '') throw usageError('The name of a folder is empty.')
    const [finding] = await pathExistenceFindings('folder', resolve(folder))
    if (finding === undefined) there.push(folder)
    else missing.push(finding.message)
  }
  const [fault] = missing
  if (fault !== undefined && there.length === 0 && file === undefined) throw commandFailure(fault)
  const naming = name === undefined ? {} : { name }
  if (file === undefined) {
    const plan = only === 'files' ? { mounts: planFolders(there, naming) } : await planFoldersWhole(there, naming)
    const later = planFolders(folderNames, naming).filter((_, at) => !there.includes(folderNames[at] ?? ''))
    const { complete } = plan as { readonly complete?: LocalSetUp['complete'] }
    return {
      local: {
        config: undefined,
        ...plan,
        mounts: [...plan.mounts, ...later],
        ...(complete && { complete: async () => [...(await complete()), ...later] }),
        principal: principalOf([]),
        assumed,
        missing,
      },
    }
  }
  const loadResult = await loadLocalConfig(file, configFile !== undefined)
  if ('problems' in loadResult) return loadResult
  const { config } = loadResult
  secrets.add(config.secrets)
  const mounts = [...planFolders(folderNames, naming), ...planConfig(config)]
  return { local: { config, mounts, principal: principalOf(config.roles ?? []), assumed, missing } }
}

/** The search is left out if its index would lie in a served folder. */
async function planFoldersWhole(
  folders: readonly string[],
  naming: { readonly name?: string },
): Promise<Pick<LocalSetUp, 'mounts' | 'complete' | 'store' | 'withoutGit'>> {
  const { mounts, complete, withoutGit } = await planSetUp(folders, naming).catch((error: unknown) => {
    if (!(error instanceof Error && 'code' in error && 'path' in error)) throw error
    throw commandFailure(
      `The folder ${String(error.path)} cannot be read (${String(error.code)}). Let this user read it.`,
    )
  })
  if (!folders.some((folder) => holdsStoreOf(folders, resolve(folder)))) {
    // Computing the name of the file is slow, so it is put off until the store is opened.
    const store = {
      sqlite: {
        get file() {
          return defaultStoreFile(folders)
        },
        orMemory: true,
      },
    }
    return { mounts, complete, store, withoutGit }
  }
  const withoutSearch = (all: readonly PlannedMount[]) => all.filter(({ config }) => !isSearch(config))
  return { mounts: withoutSearch(mounts), complete: async () => withoutSearch(await complete()), withoutGit }
}

function holdsStoreOf(folders: readonly string[], folder: string): boolean {
  const state = stateFolder()
  if (isInside(state, folder)) return true
  return isInside(folder, state) && isInside(defaultStoreFile(folders), folder)
}

/**
 * Plans as {@link planLocalSetUp} does, and tells the user of parts that are left out and of missing folders and files.
 * @throws CommandError for a faulty configuration; with `strict`, for missing folders and files too
 */
export async function requireLocalSetUp(
  options: LocalOptions & { readonly strict?: boolean },
  io: Pick<Io, 'secrets' | 'say'>,
): Promise<LocalSetUp> {
  const planned = await planLocalSetUp(options, io.secrets)
  if ('local' in planned) {
    const { config, missing } = planned.local
    const note = config === undefined ? undefined : withheldNote(config)
    if (note !== undefined) io.say(note)
    const absent = (config?.absent ?? []).map(({ problem }) => problem)
    if (options.strict && absent.length > 0) throw configFailure(absent)
    if (options.strict && missing.length > 0) throw commandFailure(missing.join('\n'))
    for (const sentence of missing) io.say(`Unavailable for now: ${escapeText(sentence)}`)
    for (const problem of absent) io.say(`Unavailable for now: ${escapeText(formatConfigProblem(problem))}`)
    return planned.local
  }
  throw configFailure(planned.problems)
}

function configFailure(problems: readonly ConfigProblem[]): Error {
  const lines = problems.map(formatConfigProblem)
  return commandFailure([`The configuration has ${pluralize(lines.length, 'problem')}:`, ...lines].join('\n'))
}

/** Returns `undefined` for folders that are served without a search. */
export function storeSettings({ config, store }: Pick<LocalSetUp, 'config' | 'store'>): Config['store'] | undefined {
  return config?.store ?? store
}

interface OpenOptions {
  readonly measurements?: MetricsRegistry
  /** Opens the mounts at once, and fails if one cannot be opened. By default each is opened at its first use. */
  readonly strict?: boolean
  /** The secret that seals cursors if the configuration has none. */
  readonly ownCursorSecret?: string
}

/** @throws CommandError for folders that lie in one another; with `strict`, for a mount that cannot be opened */
export async function openLocalCatalog(
  local: LocalSetUp,
  log: Log,
  scrubber: Scrubber,
  { measurements, ownCursorSecret, strict = false }: OpenOptions = {},
): Promise<MountedCatalog> {
  const { config, mounts, complete } = local
  const { pages, changes, spill, cursorSecret, earlierCursorSecrets, replicas } = config ?? {}
  const store = storeSettings(local)
  const settings = {
    log,
    scrubber,
    lazily: !strict,
    ...defined({
      measurements,
      pages,
      changes,
      spill,
      cursorSecret,
      ownCursorSecret,
      earlierCursorSecrets,
      replicas,
      store,
    }),
  }
  // The code that opens mounts is large, so it is loaded late.
  const { openCatalog } = await import('../../config/build.ts')
  return openCatalog((await complete?.()) ?? mounts, settings).catch(rethrowAsFailure)
}

/** Some hosts start servers in the root or the home folder, which the user does not want to serve whole. */
function refuseAssumed(folder: string): void {
  if (folder !== parse(folder).root && relative(folder, homeFolder()) !== '') return
  throw usageError(`The current folder is ${folder}, which is too much to serve. Name a folder, or give --config FILE.`)
}

function principalOf(roles: readonly string[]): Principal {
  return { id: 'local', roles }
}

/**
 * Returns a function for the OAuth scopes that a token needs for a URI.
 * @throws CommandError for folders that lie in one another
 */
export function createLocalScopeFinder({ mounts }: LocalSetUp): (uri: string) => readonly string[] {
  try {
    return createScopeFinder(mounts)
  } catch (error) {
    return rethrowAsFailure(error)
  }
}
