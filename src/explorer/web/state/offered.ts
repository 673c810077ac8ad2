import { computed, type Signal, signal } from '@preact/signals'
import { isBelow } from '../../../browse/tree.ts'
import { singleFlight } from '../../../core/kit/abort.ts'
import { iteratePages } from '../../../core/kit/groups.ts'
import { kindIn, type MountIcon, type MountKind, type MountLabel } from '../../../core/mount-kind.ts'
import { findSearchMounts } from '../../../core/search-answer.ts'
import type { ListedPrompt, Page, Resource, ResourceTemplate, View } from '../../../core/view.ts'
import { escapeInvisible, language } from '../words/texts.ts'
import { requireConnection } from './session.ts'

/** The kinds of the mounts, by their URIs without a final slash, as the server tells them. */
const kinds = signal<ReadonlyMap<string, MountKind>>(new Map())

const bare = (uri: string) => uri.replace(/\/$/, '')

/** Returns the kind of a mount. `undefined`: the server does not tell the kind. */
export function findMountKind(uri: string): MountKind | undefined {
  return kinds.value.get(bare(uri))
}

export function kindAt(uri: string): MountKind | undefined {
  const mount = [...kinds.value.keys()].find((root) => bare(uri) === root || isBelow(uri, root))
  return mount === undefined ? undefined : findMountKind(mount)
}

/** Whether a mount is a search: it cannot be opened, only queried. */
export function isSearchMount(uri: string): boolean {
  return (
    findMountKind(uri)?.isSearch === true || offeredSearches.value.some((place) => bare(place.address) === bare(uri))
  )
}

export function iconOfMount(uri: string): MountIcon | 'search' | 'mount' {
  return findMountKind(uri)?.icon ?? (isSearchMount(uri) ? 'search' : 'mount')
}

interface NamedRoot extends Pick<Resource, 'meta'> {
  readonly uri: string
  readonly name: string
  readonly title?: string
}

/** Labels that two or more mounts without a title have in common. */
const repeatedLabels = signal<ReadonlySet<string>>(new Set())

export function noteMounts(mounts: readonly NamedRoot[]): void {
  kinds.value = new Map(
    mounts.flatMap(({ uri, meta }) => {
      const kind = kindIn(meta)
      return kind === undefined ? [] : [[bare(uri), kind] as const]
    }),
  )
  const labels = mounts.flatMap(({ uri, title }) => (title === undefined ? (findMountKind(uri)?.label?.en ?? []) : []))
  repeatedLabels.value = new Set(labels.filter((label, index) => labels.indexOf(label) !== index))
}

function pickTranslation({ en, ja }: Partial<MountLabel> = {}): string | undefined {
  return language.value === 'ja' ? (ja ?? en) : en
}

export function purposeOf(uri: string): string | undefined {
  const purpose = pickTranslation(findMountKind(uri)?.purpose)
  return purpose === undefined ? undefined : escapeInvisible(purpose)
}

/** Returns the label that serves as the title of a mount. `undefined`: the mount has a title or no label, or another mount has the same label. */
function callingLabel({ uri, title }: NamedRoot): string | undefined {
  const kind = title === undefined ? findMountKind(uri) : undefined
  return kind?.label === undefined || repeatedLabels.value.has(kind.label.en) ? undefined : pickTranslation(kind.label)
}

/** The displayed title of a mount: the configured title; else the label of its kind, if no other mount has the same; else its name. */
export function titleOfMount(mount: NamedRoot): string {
  return mount.title ?? callingLabel(mount) ?? mount.name
}

/** Returns the text after the title of a mount: its name, or its kind after the name; undefined if it would add nothing. */
export function subtitleOfMount(mount: NamedRoot): string | undefined {
  const kind = findMountKind(mount.uri)
  const isNamed = mount.title === undefined && callingLabel(mount) === undefined
  const aside = isNamed
    ? (pickTranslation(kind?.label) ?? (kind?.isSingle === true ? undefined : kind?.noun))
    : mount.name
  return aside === undefined || titleOfMount(mount).toLowerCase() === aside.toLowerCase() ? undefined : aside
}

/** Sorts mounts: those that the server marks as first (files), all others, and searches last. Within each group, the order of the server stays. */
export function sortMounts<M extends NamedRoot>(mounts: readonly M[]): readonly M[] {
  const rank = ({ uri }: M) => (isSearchMount(uri) ? 2 : findMountKind(uri)?.isFirst === true ? 0 : 1)
  return [...mounts].sort((a, b) => rank(a) - rank(b))
}

/** Maximum number of cached resources. Those that were listed least recently are evicted. */
const most = 200_000

const resourcesByUri = new Map<string, Resource>()

/** The resources before and after the shown one in the list that it was opened from, for the keys `[` and `]`. */
export const neighbours = signal<{ readonly previous?: string; readonly next?: string }>({})

/** Caches the metadata from lists, so that it is not requested again. */
export function cacheResources(resources: Iterable<Resource>): void {
  for (const resource of resources) {
    resourcesByUri.delete(resource.uri)
    resourcesByUri.set(resource.uri, resource)
  }
  for (const uri of resourcesByUri.keys()) {
    if (resourcesByUri.size <= most) return
    resourcesByUri.delete(uri)
  }
}

export function findCachedResource(uri: string): Resource | undefined {
  return resourcesByUri.get(uri)
}

/** Maximum number of pages of a folder that are searched for one resource. */
const mostPages = 5

/** Returns a resource from the first pages of the listing of `parent`, also a folder whose URI is given without its final slash. `undefined`: not found. */
export async function findInListing(uri: string, parent: string, signal: AbortSignal): Promise<Resource | undefined> {
  const { view } = requireConnection()
  const pages = iteratePages((query) => view.directory({ uri: parent, ...query }, { signal }), { maxPages: mostPages })
  for await (const { items } of pages) {
    cacheResources(items)
    const match = items.find((resource) => resource.uri === uri) ?? items.find((resource) => resource.uri === `${uri}/`)
    if (match !== undefined) return match
  }
  return undefined
}

/** Number of names after which no further page is loaded. */
const maxNames = 20_000
/** Lifetime of the cached names, in milliseconds. */
const keptMs = 60_000

interface NamePage {
  readonly resources: readonly Resource[]
  readonly state: 'loading' | 'loaded'
  /** Whether the server has more names than these. */
  readonly isPart: boolean
}

/** The loaded names of the server's resources. */
export const resourceNames = signal<NamePage>({ resources: [], state: 'loading', isPart: false })

let loadedUntil = 0
let loadedFrom: View | undefined

export function loadNames(view: View): Promise<void> {
  if (loadedFrom === view && loadedUntil > Date.now()) return Promise.resolve()
  return loading.run(view)
}

const loading = singleFlight(async (view: View): Promise<void> => {
  const isAnew = loadedFrom !== view
  const resources: Resource[] = []
  let isPart = false
  for await (const { items, nextCursor } of iteratePages((query) => view.list(query), { repeated: 'end' })) {
    resources.push(...items)
    isPart = nextCursor !== undefined
    // The old names stay until all new ones are loaded.
    if (isAnew || !isPart) resourceNames.value = { resources: [...resources], state: 'loading', isPart: false }
    if (resources.length >= maxNames) break
  }
  resourceNames.value = { resources, state: 'loaded', isPart }
  loadedFrom = view
  loadedUntil = Date.now() + keptMs
})

interface Offered<T> {
  readonly state: 'loading' | 'loaded' | 'failed'
  readonly items: readonly T[]
  /** Whether the server has more items than these. */
  readonly isPart: boolean
  readonly error?: unknown
}

type PageAt<T> = (query: { readonly cursor?: string }, options: { readonly signal: AbortSignal }) => Promise<Page<T>>

/**
 * Returns a function that loads a list into a signal. The old items stay until all new ones are loaded. A new load aborts an earlier one.
 */
function createLoad<T>(target: Signal<Offered<T>>, maxPages: number, pages: () => PageAt<T> | undefined) {
  let loading: AbortController | undefined
  return async (): Promise<void> => {
    loading?.abort()
    const controller = new AbortController()
    loading = controller
    const { signal } = controller
    const pageAt = pages()
    try {
      const items: T[] = []
      let isPart = false
      if (pageAt !== undefined)
        for await (const page of iteratePages((query) => pageAt(query, { signal }), { maxPages })) {
          items.push(...page.items)
          isPart = page.nextCursor !== undefined
        }
      if (!signal.aborted) target.value = { state: 'loaded', items, isPart }
    } catch (error) {
      if (!signal.aborted) target.value = { ...target.value, state: 'failed', error }
    }
  }
}

export const templates = signal<Offered<ResourceTemplate>>({ state: 'loading', items: [], isPart: false })

/** The templates that are searches. */
export const offeredSearches = computed(() => findSearchMounts(templates.value.items))

/** Maximum number of pages that are loaded, because the listing of a faulty server may never end. */
const maxTemplatePages = 200
const maxPromptPages = 50

export const loadTemplates = createLoad(templates, maxTemplatePages, () => requireConnection().view.templates)

export const prompts = signal<Offered<ListedPrompt>>({ state: 'loading', items: [], isPart: false })

export const loadPrompts = createLoad(prompts, maxPromptPages, () => requireConnection().view.prompts?.list)
