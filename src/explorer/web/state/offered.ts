import { computed, type Signal, signal } from '@preact/signals'
import { singleFlight } from '../../../core/kit/abort.ts'
import { pagesOf } from '../../../core/kit/groups.ts'
import { searchMounts } from '../../../core/search-answer.ts'
import type { ListedPrompt, Page, Resource, ResourceTemplate, View } from '../../../core/view.ts'
import type { IconName } from '../shell/icons.tsx'
import { createWords } from '../words/texts.ts'
import { connected } from './session.ts'

const t = createWords({
  files: ['Files', 'ファイル'],
  history: ['History', '履歴'],
  settings: ['Settings', '設定'],
  environment: ['Environment', '環境変数'],
  search: ['Search', '検索'],
  metrics: ['Metrics', 'メトリクス'],
  database: ['Database', 'データベース'],
  storage: ['Storage', 'ストレージ'],
  web: ['Web', 'ウェブ'],
  screen: ['Screen', '画面'],
  prompts: ['Prompts', 'プロンプト'],
  packages: ['Packages', 'パッケージ'],
})

/** The kind of a mount, which follows from the scheme of its address. */
type MountKind = Parameters<typeof t>[0]

/** The icons of the kinds, and the schemes of their addresses. */
const kinds: Readonly<Record<MountKind, readonly [icon: IconName, ...schemes: readonly string[]]>> = {
  files: ['folder', 'file', 'files'],
  history: ['history', 'git'],
  settings: ['gear', 'config', 'settings'],
  environment: ['key', 'env'],
  search: ['search', 'search'],
  metrics: ['chart', 'metrics', 'prometheus'],
  database: ['database', 'postgres', 'postgresql', 'mysql', 'sqlite', 'db'],
  storage: ['database', 's3', 'gs', 'gcs', 'gdrive'],
  web: ['globe', 'http', 'https', 'web'],
  screen: ['image', 'screen'],
  prompts: ['text', 'prompts'],
  packages: ['box', 'pkg', 'packages'],
}

const kindOfScheme = new Map(
  Object.entries(kinds).flatMap(([kind, [, ...schemes]]) => schemes.map((scheme) => [scheme, kind as MountKind])),
)

/** Returns the kind of a mount; undefined if the scheme of its address is unknown. */
export function kindOf(uri: string): MountKind | undefined {
  if (isSearchMount(uri)) return 'search'
  return kindOfScheme.get(/^[^:]*/.exec(uri)?.[0].toLowerCase() ?? '')
}

/** Whether a mount is a search: it cannot be opened, only queried. */
export function isSearchMount(uri: string): boolean {
  const address = uri.replace(/\/$/, '')
  return /^search:/i.test(address) || searchable.value.some((place) => place.address.replace(/\/$/, '') === address)
}

export function iconOfMount(uri: string): IconName {
  const kind = kindOf(uri)
  return kind === undefined ? 'mount' : kinds[kind][0]
}

interface NamedRoot {
  readonly uri: string
  readonly name: string
  readonly title?: string
}

/** Kinds that two or more mounts without a title have in common. */
const repeatedKinds = signal<ReadonlySet<MountKind>>(new Set())

/** Examines the mounts, so that {@link titleOfMount} distinguishes mounts of the same kind. */
export function noteMounts(mounts: readonly NamedRoot[]): void {
  const kinds = mounts.flatMap(({ uri, title }) => (title === undefined ? (kindOf(uri) ?? []) : []))
  repeatedKinds.value = new Set(kinds.filter((kind, index) => kinds.indexOf(kind) !== index))
}

/** Returns the kind that serves as the title of a mount. `undefined`: the mount has a title, or shares its kind with another one. */
function callingKind({ uri, title }: NamedRoot): MountKind | undefined {
  const kind = title === undefined ? kindOf(uri) : undefined
  return kind === undefined || repeatedKinds.value.has(kind) ? undefined : kind
}

/** The displayed title of a mount: the configured title; else its kind, if no other mount has the same; else its name. */
export function titleOfMount(mount: NamedRoot): string {
  const kind = callingKind(mount)
  return mount.title ?? (kind === undefined ? mount.name : t(kind))
}

/** Returns the text after the title of a mount: its name, or its kind after the name; undefined if it would add nothing. */
export function asideOfMount(mount: NamedRoot): string | undefined {
  const kind = kindOf(mount.uri)
  const isNamed = mount.title === undefined && callingKind(mount) === undefined
  const aside = isNamed ? kind && t(kind) : mount.name
  return aside === undefined || titleOfMount(mount).toLowerCase() === aside.toLowerCase() ? undefined : aside
}

/** Sorts mounts: files first, searches last, all others between them. Within each group, the order of the server stays. */
export function arranged<M extends NamedRoot>(mounts: readonly M[]): readonly M[] {
  const rank = ({ uri }: M) => {
    const kind = kindOf(uri)
    return kind === 'files' ? 0 : kind === 'search' ? 2 : 1
  }
  return [...mounts].sort((a, b) => rank(a) - rank(b))
}

/** Maximum number of cached resources. Those that were listed least recently are evicted. */
const most = 200_000

const known = new Map<string, Resource>()

/** The resources before and after the shown one in the list that it was opened from, for the keys `[` and `]`. */
export const neighbours = signal<{ readonly previous?: string; readonly next?: string }>({})

/** Caches the metadata from lists, so that it is not requested again. */
export function remember(resources: Iterable<Resource>): void {
  for (const resource of resources) {
    known.delete(resource.uri)
    known.set(resource.uri, resource)
  }
  for (const uri of known.keys()) {
    if (known.size <= most) return
    known.delete(uri)
  }
}

export function knownOf(uri: string): Resource | undefined {
  return known.get(uri)
}

/** Maximum number of pages of a folder that are searched for one resource. */
const mostPages = 5

/** Returns a resource from the listing of its folder; undefined if it is in none of the first pages. */
export async function lookUp(uri: string, parent: string, signal: AbortSignal): Promise<Resource | undefined> {
  const { view } = connected()
  const pages = pagesOf((query) => view.directory({ uri: parent, ...query }, { signal }), { maxPages: mostPages })
  for await (const { items } of pages) {
    remember(items)
    const found = items.find((resource) => resource.uri === uri)
    if (found !== undefined) return found
  }
  return undefined
}

/** Maximum number of names that are loaded and filtered on every key. The server's search finds further ones. */
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
export const names = signal<NamePage>({ resources: [], state: 'loading', isPart: false })

let loadedUntil = 0
let loadedFrom: View | undefined

/** Loads the names page by page, unless they are cached. Concurrent calls share one load. */
export function loadNames(view: View): Promise<void> {
  if (loadedFrom === view && loadedUntil > Date.now()) return Promise.resolve()
  return loading.run(view)
}

const loading = singleFlight(async (view: View): Promise<void> => {
  const isAnew = loadedFrom !== view
  const resources: Resource[] = []
  let isPart = false
  for await (const { items, nextCursor } of pagesOf((query) => view.list(query), { repeated: 'end' })) {
    resources.push(...items)
    isPart = nextCursor !== undefined
    // The old names stay until all new ones are loaded.
    if (isAnew || !isPart) names.value = { resources: [...resources], state: 'loading', isPart: false }
    if (resources.length >= maxNames) break
  }
  names.value = { resources, state: 'loaded', isPart }
  loadedFrom = view
  loadedUntil = Date.now() + keptMs
})

/** A list of the server: its loading state, its items, and the error if it could not be loaded. */
interface Offered<T> {
  readonly state: 'loading' | 'loaded' | 'failed'
  readonly items: readonly T[]
  /** Whether the server has more items than these. */
  readonly isPart: boolean
  readonly error?: unknown
}

type PageAt<T> = (query: { readonly cursor?: string }, options: { readonly signal: AbortSignal }) => Promise<Page<T>>

/** Returns a function that loads a list into a signal. The old items stay until then. A new load aborts an earlier one. */
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
        for await (const page of pagesOf((query) => pageAt(query, { signal }), { maxPages })) {
          items.push(...page.items)
          isPart = page.nextCursor !== undefined
        }
      if (!signal.aborted) target.value = { state: 'loaded', items, isPart }
    } catch (error) {
      if (!signal.aborted) target.value = { ...target.value, state: 'failed', error }
    }
  }
}

/** The templates of the server. */
export const templates = signal<Offered<ResourceTemplate>>({ state: 'loading', items: [], isPart: false })

/** The templates that are searches. */
export const searchable = computed(() => searchMounts(templates.value.items))

/** Maximum number of pages that are loaded, because the listing of a faulty server may never end. */
const maxTemplatePages = 200
const maxPromptPages = 50

/** Loads all templates. */
export const loadTemplates = createLoad(templates, maxTemplatePages, () => connected().view.templates)

/** The prompts of the server. */
export const prompts = signal<Offered<ListedPrompt>>({ state: 'loading', items: [], isPart: false })

/** Loads all prompts. */
export const loadPrompts = createLoad(prompts, maxPromptPages, () => connected().view.prompts?.list)
