import { access } from 'node:fs/promises'
import { homedir } from 'node:os'
import { parse, relative, resolve } from 'node:path'
import { openCatalog, type PlannedMount, planConfig, planFolders } from '../config/build.ts'
import { checkFolder } from '../config/folder.ts'
import type { Config } from '../config/load.ts'
import { type ConfigProblem, formatConfigProblem } from '../config/problem.ts'
import type { Catalog } from '../core/catalog.ts'
import { isResourceError } from '../core/errors.ts'
import type { Log } from '../core/log.ts'
import type { Measurements } from '../core/measurements.ts'
import type { Principal } from '../core/provider.ts'
import type { Scrubber } from '../core/scrub.ts'
import { failed, misused } from './exit.ts'
import { count } from './format.ts'
import type { Secrets } from './secrets.ts'

/** The configuration that is used when none is named. */
export const defaultConfig = 'hikidashi.json'

export interface LocalOptions {
  readonly folders?: readonly string[]
  readonly config?: string
  readonly name?: string
}

/** What is to be served here: folders, a configuration, or both. */
export interface Local {
  readonly config: Config | undefined
  readonly mounts: readonly PlannedMount[]
  readonly principal: Principal
  /** Whether nothing was named, so that the current folder was taken. */
  readonly assumed: boolean
}

/** What a configuration came to: what it says, or what is wrong with it. */
export type Planned = { readonly local: Local } | { readonly problems: readonly ConfigProblem[] }

/**
 * Finds out what is to be served: the folders and the configuration that are named; else `hikidashi.json` in the current
 * folder; else the current folder itself.
 *
 * @param secrets Gets what the configuration refers to.
 * @throws CommandError for a folder that is not there, or a current folder that nobody can mean.
 */
export async function planLocal(
  { folders = [], config: named, name }: LocalOptions,
  secrets: Secrets,
): Promise<Planned> {
  const file = named ?? (folders.length === 0 && (await exists(defaultConfig)) ? defaultConfig : undefined)
  const assumed = file === undefined && folders.length === 0
  if (assumed) refuseAssumed(process.cwd())
  if (name !== undefined && folders.length === 0 && file !== undefined)
    throw misused('--name is for a folder; the mounts of a configuration have their addresses as keys.')
  const mounts: PlannedMount[] = []
  const served = assumed ? ['.'] : folders
  for (const folder of served) {
    if (folder === '') throw misused('The name of a folder is empty.')
    const [finding] = await checkFolder(resolve(folder), [])
    if (finding !== undefined) throw failed(finding.message)
  }
  mounts.push(...planFolders(served, name === undefined ? {} : { name }))
  if (file === undefined) return { local: { config: undefined, mounts, principal: principalOf([]), assumed } }
  // Whoever serves a folder does not wait for what reads configurations.
  const { loadConfig } = await import('../config/load.ts')
  const loaded = await loadConfig(file)
  if ('problems' in loaded) return loaded
  const { config } = loaded
  secrets.add(config.secrets)
  mounts.push(...planConfig(config))
  return { local: { config, mounts, principal: principalOf(config.roles ?? []), assumed } }
}

/** As {@link planLocal}, for commands that cannot go on with a configuration that is wrong. */
export async function requireLocal(options: LocalOptions, secrets: Secrets): Promise<Local> {
  const planned = await planLocal(options, secrets)
  if ('local' in planned) return planned.local
  const lines = planned.problems.map(formatConfigProblem)
  throw failed([`The configuration has ${count(lines.length, 'problem')}:`, ...lines].join('\n'))
}

/**
 * Opens everything that is to be served.
 *
 * @throws CommandError for what cannot be opened, and for folders that lie in one another.
 */
export async function openLocal(
  { config, mounts }: Local,
  log: Log,
  scrubber: Scrubber,
  measurements?: Measurements,
): Promise<Catalog> {
  const { pages, changes, cursorSecret, store } = config ?? {}
  const settings = {
    log,
    scrubber,
    ...(measurements === undefined ? {} : { measurements }),
    ...(pages === undefined ? {} : { pages }),
    ...(changes === undefined ? {} : { changes }),
    ...(cursorSecret === undefined ? {} : { cursorSecret }),
    ...(store === undefined ? {} : { store }),
  }
  return openCatalog(mounts, settings).catch((error: unknown) => {
    throw isResourceError(error) ? failed(error.message) : error
  })
}

/** Some hosts start servers in the root or the home folder: serving all of that is never what was meant. */
function refuseAssumed(folder: string): void {
  if (folder !== parse(folder).root && relative(folder, homedir()) !== '') return
  throw misused(
    `The current folder is ${folder}, which is more than you want to serve. Name a folder, or give --config FILE.`,
  )
}

function principalOf(roles: readonly string[]): Principal {
  return { id: 'local', roles }
}

async function exists(file: string): Promise<boolean> {
  return access(resolve(file)).then(
    () => true,
    () => false,
  )
}
