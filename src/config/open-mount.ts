import { compileAccess } from '../core/access.ts'
import type { Mount } from '../core/catalog.ts'
import { fallbackTo, invalid, isResourceError, ResourceError } from '../core/errors.ts'
import { defined } from '../core/kit/object.ts'
import type { Log, Measurements } from '../core/log.ts'
import type { Provider } from '../core/provider.ts'
import { type SourceName, sourceNamed, sources } from '../providers/index.ts'
import type { Search } from '../providers/search/index.ts'
import { type DocumentFacts, located, type MountSettings, type OpenContext } from '../providers/source.ts'
import type * as z from '../schema/builder.ts'
import type { MountOptions } from '../schema/fields.ts'
import type { documentsShape } from '../schema/shapes.ts'
import { type Deferred, deferred } from '../wrap/deferred.ts'
import { documents } from '../wrap/documents.ts'
import { limited, type Outcome } from '../wrap/limited.ts'
import { linked } from '../wrap/linked.ts'
import { polled } from '../wrap/polled.ts'
import { methodsOf, type PlannedMount } from './plan.ts'
import type { MountConfig } from './schema.ts'

/**
 * Opens one mount.
 *
 * @throws ResourceError of the kind that the provider threw; the message names the address.
 */
export async function openMount(planned: PlannedMount, given: MountSettings): Promise<Mount> {
  const settings = withMountLog(planned, given)
  try {
    return mountOf(planned, await openSource(planned, settings), settings)
  } catch (error) {
    if (!isResourceError(error)) throw error
    const message = `The mount ${planned.address} cannot be opened. ${error.message}`
    throw new ResourceError(error.kind, message, error.detail, { cause: error })
  }
}

/** Settings whose log names the mount in each event. */
function withMountLog({ address }: PlannedMount, settings: MountSettings): MountSettings {
  return { ...settings, log: (level, message, fields) => settings.log(level, message, { mount: address, ...fields }) }
}

/** A mount that is opened at its first use. */
export type DeferredMount = Mount & Pick<Deferred, 'open' | 'openingState'>

/** Returns a mount that is opened at its first use. While it cannot be opened, requests fail with `unavailable`. */
function deferMount(planned: PlannedMount, given: MountSettings): DeferredMount {
  const { config } = planned
  const settings = withMountLog(planned, given)
  const { log } = settings
  if (config.provider === 'search') {
    const open = async () => {
      const { openSearch } = await import('../providers/folder-sources.ts')
      return openSearch(config, openContext(planned, settings))
    }
    return withOpening(planned, deferredSearch(open, log), settings)
  }
  const provider = deferred(() => openSource(planned, settings), { abilities: methodsOf(config), log })
  return withOpening(planned, provider, settings)
}

/** Returns a search that is opened at its first use ({@link deferred}). A call of `feed` takes effect once the search is open. */
function deferredSearch(open: () => Promise<Search>, log: Log): Search & Deferred<Search> {
  let isFed = false
  const opening = async () => {
    const provider = await open()
    if (isFed) provider.feed()
    return provider
  }
  const provider = deferred(opening, { abilities: { watch: false, prompts: false, sees: false }, log })
  return {
    ...provider,
    feed: () => {
      isFed = true
      provider.open().then(
        (search) => search.feed(),
        () => {},
      )
    },
    feedStatus: async () => (await provider.open()).feedStatus(),
    currentAt: async () => (await provider.open()).currentAt(),
  }
}

function withOpening(planned: PlannedMount, provider: Deferred, settings: MountSettings): DeferredMount {
  const { open, openingState } = provider
  return { ...mountOf(planned, provider, settings), open, openingState }
}

async function openSource(planned: PlannedMount, settings: MountSettings): Promise<Provider> {
  const config = (await planned.refine?.()) ?? planned.config
  const { replicas: changes, ...rest } = settings
  const provider = await withPolling(await openProvider({ ...planned, config }, rest), config)
  if (changes === undefined) return provider
  const { withReplicas } = await import('./replicas.ts')
  return withReplicas(provider, config, { address: planned.address, changes })
}

/** Makes a mount of an open provider, with the limits and access rules of its configuration. */
function mountOf({ address, aliases, config }: PlannedMount, opened: Provider, settings: MountSettings): Mount {
  const { title, description, link, access, scopes, cache } = config
  const { timeout, pause, ...limits } = config.limits ?? {}
  const told = link === undefined ? opened : linked(opened, { link, ...exceptionsOf(config) })
  return {
    address,
    provider: limited(told, {
      ...limits,
      ...defined({ timeoutMs: timeout, pauseMs: pause }),
      log: settings.log,
      ...observed(config.provider, settings),
    }),
    ...defined({ aliases, title, description, scopes }),
    ...(access === undefined ? {} : { access: compileAccess(access) }),
    ...(cache === undefined ? {} : { cache: { ttlMs: cache.ttl, scope: scopeOf(config) } }),
    ...(sourceNamed(config.provider)?.isDerived === true ? { derived: true } : {}),
    ...(config.provider === 'results' ? { writers: config.write ?? [] } : {}),
  }
}

/** Pages of a git history are not files on a forge. */
const historyPage = /^(?:branches|tags|log|status|commits|diff|blame)(?:\/|$)/

function exceptionsOf({ provider }: MountConfig) {
  return provider === 'git' ? { except: (path: string) => historyPage.test(path) } : {}
}

/** Returns the cache scope of a mount. Hits of a search depend on the caller, so they are always private. */
function scopeOf({ provider, cache }: MountConfig): 'public' | 'private' {
  return provider === 'search' ? 'private' : (cache?.scope ?? 'private')
}

/** Returns a mount that is opened at its first use. A results mount is opened now, if possible, because callers write into it. */
export async function openLazily(
  planned: PlannedMount,
  settings: MountSettings,
): Promise<Mount & Partial<DeferredMount>> {
  if (planned.config.provider !== 'results') return deferMount(planned, settings)
  const mount = await openMount(planned, settings).catch(fallbackTo(undefined))
  return mount ?? deferMount(planned, settings)
}

/** Counts the outcomes of requests to a mount, if measurements are on. Its address is not a label: it may be a file path. */
export function observed(
  provider: SourceName,
  { measurements, mountNumber = 0 }: { readonly measurements?: Measurements; readonly mountNumber?: number },
): { readonly observe?: (outcome: Outcome) => void } {
  if (measurements === undefined) return {}
  const counts = new Map<Outcome, number>()
  measurements.add(() => [
    {
      name: 'hikidashi_source_answers_total',
      type: 'counter',
      help: 'Answers of a source: by its mount (its number among all mounts) and their outcome.',
      samples: [...counts].map(([outcome, value]) => ({
        labels: { mount: String(mountNumber), provider, outcome: outcome.replace('-', '_') },
        value,
      })),
    },
  ])
  return { observe: (outcome) => void counts.set(outcome, (counts.get(outcome) ?? 0) + 1) }
}

/** Opens the provider of a mount, with its wrappers. */
async function openProvider(planned: PlannedMount, settings: MountSettings): Promise<Provider> {
  const { config } = planned
  const { open } = await sources[config.provider].open()
  // TypeScript cannot see that a source and its options belong together.
  const openSource = open as (options: MountConfig, context: OpenContext) => Promise<Provider>
  return openSource(config, openContext(planned, settings))
}

/** Returns the context with which a source opens a mount. */
function openContext(
  planned: PlannedMount,
  { key: given, versionKey, replicas: _, mountNumber: __, ...settings }: MountSettings,
): OpenContext {
  const { address, config, folder, confined } = planned
  const { log, scrubber } = settings
  const redaction = async () => ({ log, ...defined({ scrubber, key: given ?? (await versionKey?.()) }) })
  return {
    ...settings,
    address,
    folder,
    ...defined({ confined }),
    redaction,
    documents: (provider, facts) => withDocuments(provider, config, redaction, facts),
  }
}

/** Adds the polling of `poll`. @throws ResourceError `invalid` for a source that reports changes by itself, or never changes. */
async function withPolling(provider: Provider, config: MountConfig): Promise<Provider> {
  const { poll } = config
  // These providers poll by themselves, because their lists have no versions to compare.
  if (poll === undefined || config.provider === 'web' || config.provider === 'api') return provider
  const refusal =
    provider.watch === undefined
      ? (config.provider === 'env' && config.file === undefined && 'The environment of a process does not change.') ||
        (config.provider === 'inline' && 'A text in the configuration does not change while it is served.')
      : 'It reports changes by itself, sooner and at less cost.'
  if (refusal === false) return polled(provider, { intervalMs: poll })
  await provider.close?.()
  throw invalid(`${refusal} Remove "poll".`, 'poll')
}

type DocumentOptions = Partial<z.output<z.Members<typeof documentsShape>>> & Pick<MountOptions, 'access'>

/** Adds the document wrappers to a provider, as its mount configures them. */
async function withDocuments(
  provider: Provider,
  options: DocumentOptions,
  redaction: OpenContext['redaction'],
  { headings = [], except, findsTwins = false, frontMatter: usual }: DocumentFacts = {},
): Promise<Provider> {
  const { language, encodings, frontMatter = usual, readings = true, redact = 'off' } = options
  const languages = languagesOf(options, findsTwins)
  // Loaded only with redaction, because the detectors are large.
  const redacting = redact === 'off' ? undefined : await import('../wrap/redacted.ts')
  const hidden = redacting === undefined ? {} : { ...(await redaction()), ...defined({ except }) }
  const limits = typeof readings === 'boolean' ? {} : readings
  const made = documents(provider, {
    ...defined({ language, encodings, languages }),
    ...(frontMatter === undefined ? {} : { frontMatter: [frontMatter].flat() }),
    headings,
    readings: readings !== false && defined({ maxBytes: limits.maxBytes, timeoutMs: limits.timeout }),
    ...(redacting === undefined || redact === 'off'
      ? {}
      : { through: (whole) => redacting.redacted(whole, { ...hidden, mode: redact }) }),
  })
  // Loaded only with skills, because it parses front matter.
  if (options.skills === undefined || options.skills === false) return made
  return (await import('../skills/index.ts')).describedSkills(made)
}

/**
 * Returns the languages in which documents may have translations. None if access rules hide some paths, because a document
 * would name hidden ones. For other sources than files none by default, because each possible translation takes a request.
 */
function languagesOf({ languages, access = [] }: DocumentOptions, findsTwins: boolean): readonly string[] | undefined {
  if (access.some(({ match }) => match !== undefined)) return []
  return languages ?? (findsTwins ? undefined : [])
}

/** The served folder of a mount; `undefined` if the mount does not serve a folder. */
export function folderOf(planned: PlannedMount): string | undefined {
  return servedFolderOf(planned)?.path
}

function servedFolderOf(planned: PlannedMount) {
  const { config } = planned
  switch (config.provider) {
    case 'files':
    case 'settings':
    case 'prompts':
      return located(config.root, planned)
    default:
      return undefined
  }
}

/**
 * Opens the checker that explains why a mount leaves files out. `undefined` if the mount does not serve a folder.
 *
 * @throws ResourceError `invalid` for a folder that cannot be opened.
 */
export async function openMountLeftOut(planned: PlannedMount) {
  const { config } = planned
  const found = servedFolderOf(planned)
  if (found === undefined) return undefined
  const { path: root, ...within } = found
  const { openLeftOut } = await import('../providers/files/index.ts')
  switch (config.provider) {
    case 'files':
      return openLeftOut({ ...config, root, ...within })
    case 'settings': {
      const { maxBytes: _, dotenv = true, ...options } = config
      return openLeftOut({ ...options, root, ...within, dotenv })
    }
    case 'prompts':
      return openLeftOut({ ...config, include: config.include ?? ['**/*.md'], root, ...within })
    default:
      return undefined
  }
}
