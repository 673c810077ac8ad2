import { isAbsolute, relative, resolve } from 'node:path'
import { compileAccess } from '../core/access.ts'
import type { Catalog, Mount } from '../core/catalog.ts'
import { invalid, isResourceError, valueOr } from '../core/errors.ts'
import { defined } from '../core/kit/object.ts'
import { doneOnce } from '../core/kit/once.ts'
import type { Log } from '../core/log.ts'
import type { Abilities, ViewFactory } from '../core/opening.ts'
import { isPath } from '../core/path.ts'
import type { Principal, Provider } from '../core/provider.ts'
import { createResolver } from '../core/router.ts'
import type { IndexFeeder } from '../core/tool.ts'
import { fileAddress, formatUri, isOverlapping, parseAddress } from '../core/uri.ts'
import type { View } from '../core/view.ts'
import { sourceNamed } from '../providers/index.ts'
import type { PathLimits, Source } from '../providers/source.ts'
import { realPath, resolveConfigPath } from '../schema/values.ts'
import type { DeferredAbilities } from '../wrap/deferred.ts'
import type { Config } from './load.ts'
import type { MountConfig } from './schema.ts'

export interface PlannedMount {
  readonly address: string
  /** Other spellings of the address, if it is the path of a folder that is reached through a symbolic link. */
  readonly aliases?: readonly string[]
  readonly config: MountConfig
  readonly folder: string
  /** Limits of the paths of the mount, if the configuration is not trusted or has `"linkedRoots": false`. */
  readonly confined?: PathLimits
  /**
   * Resolves to the configuration with which the mount is opened, if that depends on its source. Default: {@link
   * config}.
   */
  readonly refine?: () => Promise<MountConfig>
}

export function planConfig({ mounts, folder, isTrusted, linkedRoots = true }: Config): readonly PlannedMount[] {
  const confined =
    isTrusted && linkedRoots ? undefined : ({ symlinks: linkedRoots ? 'beneath' : 'deny', outside: isTrusted } as const)
  return Object.entries(mounts).map(([address, config]) => ({
    address,
    config,
    folder,
    ...aliasesIn(address, config, folder),
    ...defined({ confined }),
  }))
}

/** @throws TypeError for an unknown source, which no loaded configuration names */
export function mountSource({ provider }: MountConfig): Source {
  const source = sourceNamed(provider)
  if (source === undefined) throw new TypeError(`There is no source ${provider}.`)
  return source
}

/** Returns the folder as the options of the mount name it; `undefined` for a mount that serves no folder. */
export function folderOption(config: MountConfig): string | undefined {
  const { folder } = mountSource(config)
  const name = folder === undefined ? undefined : config[folder.option]
  return typeof name === 'string' ? name : undefined
}

function aliasesIn(address: string, config: MountConfig, folder: string): Pick<PlannedMount, 'aliases'> {
  const name = mountSource(config).folder?.prefix === undefined ? folderOption(config) : undefined
  return name === undefined ? {} : aliasesOf(address, resolveConfigPath(name, folder))
}

/**
 * If the address is the path of a folder, returns further addresses: the path as it was given, as the shell spells it,
 * and without symbolic links.
 */
function aliasesOf(address: string, root: string): Pick<PlannedMount, 'aliases'> {
  const { PWD: shellFolder } = process.env
  const cwd = process.cwd()
  const isHere =
    shellFolder !== undefined && shellFolder !== cwd && isAbsolute(shellFolder) && realPath(shellFolder) === cwd
  const paths = [root, realPath(root) ?? root, ...(isHere ? [resolve(shellFolder, relative(cwd, root))] : [])]
  const textOf = (uri: string) => valueOr(() => parseAddress(uri).text, undefined, 'invalid')
  const addresses = new Set(paths.flatMap((path) => textOf(fileAddress(path)) ?? []))
  const isPath = addresses.delete(textOf(address) ?? '')
  return isPath && addresses.size > 0 ? { aliases: [...addresses] } : {}
}

/**
 * Returns the mounts of folders. The address is `file://` and an absolute path, so that a host on the same machine can
 * open the files that it reads; a single folder can have a name instead: `file:///NAME`.
 * @throws ResourceError `invalid` for a name beside none or several folders, or for a name that no address can have
 */
export function planFolders(
  folders: readonly string[],
  options: { readonly name?: string } = {},
): readonly PlannedMount[] {
  const { name } = options
  if (name !== undefined && folders.length !== 1)
    throw invalid(
      'A name needs exactly one folder. To serve several folders, give each an address in a configuration file.',
      'configuration',
    )
  return folders.map((folder) => {
    const root = resolve(folder)
    const address = name === undefined ? fileAddress(root) : addressOf(name)
    return { address, ...aliasesOf(address, root), config: { provider: 'files', root }, folder: root }
  })
}

function addressOf(name: string): string {
  if (name === '' || !isPath(name) || name.endsWith('/'))
    throw invalid(
      `${JSON.stringify(name)} is not a valid name for a folder. Write a name such as docs or team/docs.`,
      'configuration',
    )
  return formatUri(parseAddress('file:///'), name)
}

/**
 * Returns the abilities of a catalog of these mounts, from the configuration alone. An open mount of another MCP server
 * may turn out to send no notifications of changes.
 */
export function abilitiesOf(mounts: readonly PlannedMount[]): Abilities {
  const configs = mounts.map(({ config }) => config)
  const withPrompts = configs.filter((config) => methodsOf(config).prompts !== false)
  return {
    live: configs.some(reportsChanges),
    prompts: withPrompts.length === 0 ? undefined : { live: withPrompts.some(reportsChanges) },
    tools: configs.some(hasTools),
  }
}

export function reportsChanges(config: MountConfig): boolean {
  return methodsOf(config).watch
}

/** The optional methods that the provider of a mount has when it is open, from the configuration alone. */
export function methodsOf(config: MountConfig): DeferredAbilities {
  const source = mountSource(config)
  const {
    watch = false,
    prompts = false,
    tools = false,
    sees = false,
    parts = false,
  } = source.abilities?.(config) ?? {}
  return { watch: watch || config.poll !== undefined, prompts, tools, sees, parts }
}

export function hasTools(config: MountConfig): boolean {
  return methodsOf(config).tools === true
}

export function hasWriters(mounts: readonly PlannedMount[]): boolean {
  return mounts.some(({ config }) => (mountSource(config).writers?.(config) ?? []).length > 0)
}

/** Whether a mount serves the files of a folder as they are. */
export function servesFiles({ provider }: MountConfig): boolean {
  return sourceNamed(provider)?.folder?.isPlain === true
}

export function isSearch({ provider }: MountConfig): boolean {
  return sourceNamed(provider)?.searches !== undefined
}

/** Returns the searches among the mounts, and the mounts that they cover. */
export function searchedMounts(mounts: readonly PlannedMount[]): readonly PlannedMount[] {
  const covered = mounts.flatMap(({ config }) => {
    const { searches } = mountSource(config)
    return searches === undefined ? [] : [config[searches.option]]
  })
  if (covered.includes('*')) return mounts
  const searched = covered.flat().map((address) => parseAddress(String(address)).text)
  return mounts.filter(({ address, config }) => isSearch(config) || searched.includes(parseAddress(address).text))
}

/**
 * Returns a function for the OAuth scopes that a token needs for a URI. A URI outside the mounts needs no scopes.
 * @throws ResourceError `invalid` for addresses that overlap
 */
export function createScopeFinder(mounts: readonly PlannedMount[]): (uri: string) => readonly string[] {
  const create = () =>
    createResolver(
      mounts.map(({ address, aliases, config: { scopes } }) => ({ address, ...defined({ aliases, scopes }) })),
    )
  // Addresses of different schemes do not overlap. Over stdio no token has scopes, so the resolver is created late.
  const schemes = new Set(mounts.map(({ address }) => address.slice(0, address.indexOf(':')).toLowerCase()))
  let find = schemes.size < mounts.length ? create() : undefined
  return (uri) => {
    try {
      find ??= create()
      return find(uri)?.mount.scopes ?? []
    } catch (error) {
      if (isResourceError(error, 'invalid')) return []
      throw error
    }
  }
}

interface SearchMount extends Mount {
  readonly provider: Provider & IndexFeeder
}

export function searchesOf({ mounts }: Pick<Catalog, 'mounts'>): readonly SearchMount[] {
  return mounts.filter((mount): mount is SearchMount => mount.provider.feedStatus !== undefined)
}

const ownAddress = 'skill://hikidashi'

/**
 * Adds skills to views: those of mounts with `skills`, and hikidashi's own, unless a mount overlaps with their address.
 * Its own skills are in no list of resources.
 */
export function withMountedSkills(views: ViewFactory, mounts: readonly PlannedMount[], log: Log): ViewFactory {
  const isTaken = mounts.some(({ address }) => isOverlapping(parseAddress(address), parseAddress(ownAddress)))
  const below = mounts.flatMap(({ address, config }) => rootsOf(address, config))
  const open = doneOnce(() => openSkills(isTaken ? below : [...below, ownAddress], log))
  const extended = (view: View, principal: Principal): View => {
    const own = async () => (await open()).own(principal)
    const whole = isTaken ? view : withOwn(view, own)
    const skills = doneOnce(async () => (await open()).skillsOf(whole))
    return {
      ...whole,
      skills: {
        list: async (query, options) => (await skills()).list(query, options),
        get: async (uri, options) => (await skills()).get(uri, options),
      },
    }
  }
  return {
    view: (principal) => extended(views.view(principal), principal),
    narrowed: (narrowing) => {
      const viewOf = views.narrowed(narrowing)
      return (principal) => extended(viewOf(principal), principal)
    },
  }
}

function rootsOf(address: string, config: MountConfig): readonly string[] {
  const skills = 'skills' in config ? config.skills : undefined
  if (skills === undefined || skills === false) return []
  const mounted = parseAddress(address)
  return skills === true ? [mounted.text] : [skills].flat().map((path) => formatUri(mounted, String(path)))
}

function withOwn(view: View, own: () => Promise<View>): View {
  const isOwn = (uri: string) => /^skill:\/\/hikidashi(?:[/?]|$)/i.test(uri)
  return {
    ...view,
    read: async (uri, options) => (isOwn(uri) ? (await own()).read(uri, options) : view.read(uri, options)),
    directory: async (query, options) => (isOwn(query.uri) ? await own() : view).directory(query, options),
  }
}

async function openSkills(below: readonly string[], log: Log) {
  const [{ createCatalog }, { createDigests, ownSkillsAddress, ownSkillsProvider, skillsOf }] = await Promise.all([
    import('../core/catalog.ts'),
    import('../skills/index.ts'),
  ])
  const catalog = createCatalog({ mounts: [{ address: ownSkillsAddress, provider: ownSkillsProvider() }] })
  const digests = createDigests()
  return {
    own: (principal: Principal) => catalog.view(principal),
    skillsOf: (view: View) => skillsOf(view, { below, digests, log }),
  }
}

/** Returns the kind of data of a mount as a noun: for mounts without a title, and for counts of mounts. */
export function mountNoun(config: MountConfig): string {
  const { name, noun = name } = mountSource(config)
  return noun
}

/** Tests whether the rules and scopes of a mount let a principal see anything of it. */
export function createVisibilityTest({ access, scopes = [] }: MountConfig): (principal: Principal) => boolean {
  const rules = access === undefined ? undefined : compileAccess(access)
  return (principal) =>
    scopes.every((scope) => principal.scopes?.includes(scope) ?? true) && rules?.reach?.(principal, '') !== 'none'
}
