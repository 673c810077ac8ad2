import { compileAccess } from '../core/access.ts'
import type { Mount } from '../core/catalog.ts'
import { fallbackTo, invalid, isResourceError, ResourceError } from '../core/errors.ts'
import { defined } from '../core/kit/object.ts'
import type { MetricsRegistry } from '../core/log.ts'
import type { MountKind } from '../core/mount-kind.ts'
import type { Provider } from '../core/provider.ts'
import {
  type DocumentRules,
  locatePath,
  type MountSettings,
  type OpenContext,
  type Source,
} from '../providers/source.ts'
import type * as z from '../schema/builder.ts'
import type { MountOptions } from '../schema/fields.ts'
import type { documentsShape } from '../schema/shapes.ts'
import { type DeferredOptions, type DeferredProvider, deferred } from '../wrap/deferred.ts'
import { documents } from '../wrap/documents.ts'
import { limited, type SourceOutcome } from '../wrap/limited.ts'
import { linked } from '../wrap/linked.ts'
import { polled } from '../wrap/polled.ts'
import { folderOption, isSearch, methodsOf, mountSource, type PlannedMount } from './plan.ts'
import type { MountConfig } from './schema.ts'

/** @throws ResourceError of the kind that the provider threw; the message names the address */
export async function openMount(planned: PlannedMount, mountSettings: MountSettings): Promise<Mount> {
  const settings = withMountLog(planned, mountSettings)
  try {
    return mountOf(planned, await openSource(planned, settings), settings)
  } catch (error) {
    if (!isResourceError(error)) throw error
    const message = `The mount ${planned.address} cannot be opened. ${error.message}`
    throw new ResourceError(error.kind, message, error.detail, { cause: error })
  }
}

function withMountLog({ address }: PlannedMount, settings: MountSettings): MountSettings {
  return { ...settings, log: (level, message, fields) => settings.log(level, message, { mount: address, ...fields }) }
}

export type DeferredMount = Mount & Pick<DeferredProvider, 'open' | 'openingState'>

/** While the mount cannot be opened, requests fail with `unavailable`. */
function deferMount(planned: PlannedMount, mountSettings: MountSettings): DeferredMount {
  const settings = withMountLog(planned, mountSettings)
  const { log } = settings
  const open = () => openSource(planned, settings)
  const options = { abilities: methodsOf(planned.config), log }
  const provider = isSearch(planned.config) ? deferredSearch(open, options) : deferred(open, options)
  return withOpening(planned, provider, settings)
}

/** A call of `feed` takes effect once the search is open. */
function deferredSearch(open: () => Promise<Provider>, options: DeferredOptions): DeferredProvider {
  let isFed = false
  const opening = async () => {
    const provider = await open()
    if (isFed) provider.feed?.()
    return provider
  }
  const provider = deferred(opening, options)
  return {
    ...provider,
    feed: () => {
      isFed = true
      provider.open().then(
        (search) => search.feed?.(),
        () => {},
      )
    },
    feedStatus: async () => (await provider.open()).feedStatus?.(),
    currentAt: async () => (await provider.open()).currentAt?.(),
  }
}

function withOpening(planned: PlannedMount, provider: DeferredProvider, settings: MountSettings): DeferredMount {
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

function mountOf({ address, aliases, config }: PlannedMount, provider: Provider, settings: MountSettings): Mount {
  const { title, description, link, access, scopes, cache } = config
  const { timeout, pause, ...limits } = config.limits ?? {}
  const source = mountSource(config)
  const mountProvider =
    link === undefined ? provider : linked(provider, { link, ...defined({ except: source.isUnlinked }) })
  return {
    address,
    provider: limited(mountProvider, {
      ...limits,
      ...defined({ timeoutMs: timeout, pauseMs: pause }),
      log: settings.log,
      ...countOutcomes(source.name, settings),
    }),
    ...defined({ aliases, title, description, scopes }),
    ...(access === undefined ? {} : { access: compileAccess(access) }),
    ...(cache === undefined ? {} : { cache: { ttlMs: cache.ttl, scope: scopeOf(source, config) } }),
    ...(source.isDerived === true ? { derived: true } : {}),
    kind: mountKind(source, config),
    ...defined({ writers: source.writers?.(config) }),
  }
}

/** A source with a label counts as several resources, unless `isSingle` says otherwise. */
function mountKind(source: Source, config: MountConfig): MountKind {
  const { name, noun = name, icon, label, purpose, isLive, folder, searches } = source
  const isSingle = source.isSingle?.(config) ?? (label === undefined ? undefined : false)
  const isSearch = searches === undefined ? undefined : true
  // The label of a source is a plural, which does not fit a mount of one resource.
  const calling = isSingle === true ? undefined : label
  return { noun, ...defined({ icon, label: calling, purpose, isFirst: folder?.isPlain, isSearch, isLive, isSingle }) }
}

function scopeOf({ isPersonal = false }: Source, { cache }: MountConfig): 'public' | 'private' {
  return isPersonal ? 'private' : (cache?.scope ?? 'private')
}

/** Returns a mount that is opened at its first use. A mount that callers write into is opened now, if possible. */
export async function openLazily(
  planned: PlannedMount,
  settings: MountSettings,
): Promise<Mount & Partial<DeferredMount>> {
  if (mountSource(planned.config).writers === undefined) return deferMount(planned, settings)
  const mount = await openMount(planned, settings).catch(fallbackTo(undefined))
  return mount ?? deferMount(planned, settings)
}

/** The address of a mount is not a label of the measurements, because it may be a file path. */
export function countOutcomes(
  provider: string,
  { measurements, mountNumber = 0 }: { readonly measurements?: MetricsRegistry; readonly mountNumber?: number },
): { readonly observe?: (outcome: SourceOutcome) => void } {
  if (measurements === undefined) return {}
  const counts = new Map<SourceOutcome, number>()
  measurements.add(() => [
    {
      name: 'hikidashi_source_answers_total',
      type: 'counter',
      help: 'Answers of a source, by the number of its mount among all mounts and by outcome.',
      samples: [...counts].map(([outcome, value]) => ({
        labels: { mount: String(mountNumber), provider, outcome: outcome.replace('-', '_') },
        value,
      })),
    },
  ])
  return { observe: (outcome) => void counts.set(outcome, (counts.get(outcome) ?? 0) + 1) }
}

async function openProvider(planned: PlannedMount, settings: MountSettings): Promise<Provider> {
  const { config } = planned
  const { open } = await mountSource(config).open()
  // TypeScript cannot see that a source and its options belong together.
  return open(config as never, openContext(planned, settings))
}

function openContext(
  planned: PlannedMount,
  { key: configuredKey, versionKey, replicas: _, mountNumber: __, ...settings }: MountSettings,
): OpenContext {
  const { address, config, folder, confined } = planned
  const { log, scrubber } = settings
  const redaction = async () => ({ log, ...defined({ scrubber, key: configuredKey ?? (await versionKey?.()) }) })
  const own = { ...settings, redaction, ...defined({ confined, languages: languagesIn(config) }) }
  return { ...own, address, folder, documents: (provider, facts) => withDocuments(provider, config, own, facts) }
}

/** @throws ResourceError `invalid` if the source reports changes by itself, or does not change */
async function withPolling(provider: Provider, config: MountConfig): Promise<Provider> {
  const { poll } = config
  const source = mountSource(config)
  if (poll === undefined || source.isPolling === true) return provider
  const refusal =
    provider.watch === undefined
      ? source.unchanging?.(config)
      : 'The source reports its changes by itself, so it need not be polled.'
  if (refusal === undefined) return polled(provider, { intervalMs: poll })
  await provider.close?.()
  throw invalid(`${refusal} Remove "poll".`, 'configuration')
}

type DocumentOptions = Partial<z.output<z.Members<typeof documentsShape>>> & Pick<MountOptions, 'access'>

async function withDocuments(
  provider: Provider,
  options: DocumentOptions,
  { redaction, log, scrubber, store, languages }: Omit<OpenContext, 'address' | 'folder' | 'documents'>,
  { headings = [], except, findsTranslations = false, frontMatter: usual }: DocumentRules = {},
): Promise<Provider> {
  const { language, encodings, frontMatter = usual, readings = true, redact = 'off' } = options
  // The detectors are large, so they are loaded only with redaction.
  const redacting = redact === 'off' ? undefined : await import('../wrap/redacted.ts')
  const exclusions = redacting === undefined ? {} : { ...(await redaction()), ...defined({ except }) }
  const limits = typeof readings === 'boolean' ? {} : readings
  const through =
    redacting === undefined || redact === 'off'
      ? undefined
      : (whole: Provider) => redacting.redacted(whole, { ...exclusions, mode: redact })
  const scans =
    limits.ocr === undefined
      ? undefined
      : (await import('./scans.ts')).openScanQueue(limits.ocr, {
          ...{ log, redact },
          ...defined({ scrubber, store, through }),
        })
  const documentProvider = documents(provider, {
    // A source may find translations itself. Otherwise each possible translation takes a request, so there are none by
    // default.
    languages: findsTranslations ? [] : (languages ?? []),
    ...defined({ language, encodings }),
    ...(frontMatter === undefined ? {} : { frontMatter: [frontMatter].flat() }),
    headings,
    readings: readings !== false && defined({ maxBytes: limits.maxBytes, timeoutMs: limits.timeout, scans }),
    ...defined({ through }),
  })
  // Loaded only with skills, because it parses front matter.
  if (options.skills === undefined || options.skills === false) return documentProvider
  return (await import('../skills/index.ts')).describeSkills(documentProvider)
}

/** If access rules hide some paths, there are no languages: a document would name hidden translations. */
function languagesIn({ languages, access = [] }: DocumentOptions): readonly string[] | undefined {
  return access.some(({ match }) => match !== undefined) ? [] : languages
}

/** Returns an absolute path; `undefined` for a mount that serves no folder. */
export function servedFolderPath(planned: PlannedMount): string | undefined {
  const name = folderOption(planned.config)
  return name === undefined ? undefined : locatePath(name, planned).path
}

/**
 * Opens the checker that explains why a mount leaves files out. Returns `undefined` if its source leaves out none.
 * @throws ResourceError `invalid` for a folder that cannot be opened
 */
export async function openLeftOutExplainer(planned: PlannedMount) {
  const load = mountSource(planned.config).leftOut
  if (load === undefined) return undefined
  const { leftOut } = await load()
  // TypeScript cannot see that a source and its options belong together.
  return leftOut(planned.config as never, planned)
}
