import { signal } from '@preact/signals'
import type { IconName } from '../shell/icons.tsx'
import { createWords } from '../words/texts.ts'
import { places } from './known.ts'

const t = createWords(
  {
    files: 'Files',
    history: 'History',
    settings: 'Settings',
    environment: 'Environment',
    search: 'Search',
    metrics: 'Metrics',
    database: 'Database',
    storage: 'Storage',
    web: 'Web',
    screen: 'Screen',
    prompts: 'Prompts',
    packages: 'Packages',
  },
  {
    files: 'ファイル',
    history: '履歴',
    settings: '設定',
    environment: '環境変数',
    search: '検索',
    metrics: 'メトリクス',
    database: 'データベース',
    storage: 'ストレージ',
    web: 'ウェブ',
    screen: '画面',
    prompts: 'プロンプト',
    packages: 'パッケージ',
  },
)

/** Kind of a mount, by its address. */
type MountKind = Parameters<typeof t>[0]

const kindOfScheme: Readonly<Record<string, MountKind>> = {
  file: 'files',
  files: 'files',
  git: 'history',
  config: 'settings',
  settings: 'settings',
  env: 'environment',
  search: 'search',
  metrics: 'metrics',
  prometheus: 'metrics',
  postgres: 'database',
  postgresql: 'database',
  mysql: 'database',
  sqlite: 'database',
  db: 'database',
  s3: 'storage',
  gs: 'storage',
  gcs: 'storage',
  gdrive: 'storage',
  http: 'web',
  https: 'web',
  web: 'web',
  screen: 'screen',
  prompts: 'prompts',
  packages: 'packages',
}

const iconOfKind: Readonly<Record<MountKind, IconName>> = {
  files: 'folder',
  history: 'history',
  settings: 'gear',
  environment: 'key',
  search: 'search',
  metrics: 'chart',
  database: 'database',
  storage: 'database',
  web: 'globe',
  screen: 'image',
  prompts: 'text',
  packages: 'box',
}

/** Returns the kind of a mount; undefined if its address does not tell. */
export function kindOf(uri: string): MountKind | undefined {
  if (isSearchMount(uri)) return 'search'
  return kindOfScheme[/^[^:]*/.exec(uri)?.[0].toLowerCase() ?? '']
}

/** Whether a mount is a search: it cannot be opened, only queried. */
export function isSearchMount(uri: string): boolean {
  const address = uri.replace(/\/$/, '')
  return /^search:/i.test(address) || places.value.some((place) => place.address.replace(/\/$/, '') === address)
}

/** The icon of a mount. */
export function iconOfMount(uri: string): IconName {
  const kind = kindOf(uri)
  return kind === undefined ? 'mount' : iconOfKind[kind]
}

interface Named {
  readonly uri: string
  readonly name: string
  readonly title?: string
}

/** The kinds of which several mounts have no title. */
const repeatedKinds = signal<ReadonlySet<MountKind>>(new Set())

/** Examines the mounts, so that {@link titleOfMount} distinguishes mounts of the same kind. */
export function noteMounts(mounts: readonly Named[]): void {
  const kinds = mounts.flatMap(({ uri, title }) => (title === undefined ? (kindOf(uri) ?? []) : []))
  repeatedKinds.value = new Set(kinds.filter((kind, index) => kinds.indexOf(kind) !== index))
}

/** Returns the kind of a mount as its title: it is the only one of its kind, and has no title. */
function callingKind({ uri, title }: Named): MountKind | undefined {
  const kind = title === undefined ? kindOf(uri) : undefined
  return kind === undefined || repeatedKinds.value.has(kind) ? undefined : kind
}

/** The displayed title of a mount: the title of the operator; else its kind, if no other mount has the same; else its name. */
export function titleOfMount(mount: Named): string {
  const kind = callingKind(mount)
  return mount.title ?? (kind === undefined ? mount.name : t(kind))
}

/** Returns the text after the title of a mount: its name, or its kind after the name; undefined if it would add nothing. */
export function asideOfMount(mount: Named): string | undefined {
  const kind = kindOf(mount.uri)
  const isNamed = mount.title === undefined && callingKind(mount) === undefined
  const aside = isNamed ? kind && t(kind) : mount.name
  return aside === undefined || titleOfMount(mount).toLowerCase() === aside.toLowerCase() ? undefined : aside
}

/** Files come first and searches last; mounts of unknown kind are between them, in the order of the server. */
export function arranged<M extends Named>(mounts: readonly M[]): readonly M[] {
  const rank = ({ uri }: M) => {
    const kind = kindOf(uri)
    return kind === 'files' ? 0 : kind === 'search' ? 2 : 1
  }
  return [...mounts].sort((a, b) => rank(a) - rank(b))
}
