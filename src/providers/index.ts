import type { Provider } from '../core/provider.ts'
import type { OpenContext, SourceConfig } from './source.ts'

/** A source in the table: how its code is loaded, and the facts that a start needs before that. */
interface SourceEntry {
  /** Loads the schema for mounts of the source. */
  readonly config: () => Promise<{ readonly source: Pick<SourceConfig<never>, 'about'> }>
  /** Loads the function that opens a mount of the source. */
  readonly open: () => Promise<{ readonly open: (options: never, context: OpenContext) => Promise<Provider> }>
  /** The noun for the data of a mount, for people and models. Default: the name of the source. */
  readonly noun?: string
  /** Whether an open provider has `watch`: `always`, or unless the option `watch` is false. Default: it has none unless it is polled. */
  readonly watch?: 'always' | 'option'
  /**
   * How changes reach the replicas. `polled`: one replica at a time watches the source. `seen`: each watches it, and notifies the
   * others of changes that they may not see, as on a network file system. Default: the source itself notifies each of them.
   */
  readonly changes?: 'polled' | 'seen'
  /** Whether mounts of the source describe other mounts or this machine. In a list of mounts that must be cut, they come last. */
  readonly isDerived?: true
  /** Whether mounts of the source write data to the store. */
  readonly keeps?: true
  /** Whether `"over": "*"` leaves out mounts of the source: their texts change all the time, or they are searches themselves. */
  readonly isUnsearched?: true
}

/** The two imports of a source whose `config.ts` opens it. */
function byConfig<M>(config: () => Promise<M>) {
  return { config, open: config }
}

/** The two imports of a source that `folder-sources.ts` opens. */
function byFolder<M, Name extends keyof FolderSources>(config: () => Promise<M>, name: Name) {
  return { config, open: async () => ({ open: (await import('./folder-sources.ts'))[name] }) }
}

type FolderSources = typeof import('./folder-sources.ts')

/** Every source that a configuration can mount, in the order of its schema. A source is loaded when it is mounted. */
export const sources = {
  files: { ...byFolder(() => import('./files/config.ts'), 'openFiles'), watch: 'option', changes: 'seen' },
  git: {
    ...byFolder(() => import('./git/config.ts'), 'openGit'),
    noun: 'history',
    watch: 'option',
    changes: 'seen',
    isDerived: true,
  },
  settings: {
    ...byFolder(() => import('./settings/config.ts'), 'openSettings'),
    watch: 'option',
    changes: 'seen',
    isDerived: true,
  },
  s3: { ...byConfig(() => import('./s3/config.ts')), noun: 'objects' },
  gcs: { ...byConfig(() => import('./gcs/config.ts')), noun: 'objects' },
  gdrive: { ...byConfig(() => import('./gdrive/config.ts')), noun: 'Drive', watch: 'always', changes: 'polled' },
  postgres: { ...byConfig(() => import('./postgres/config.ts')), noun: 'database', watch: 'option', changes: 'polled' },
  mysql: { ...byConfig(() => import('./mysql/config.ts')), noun: 'database', watch: 'option', changes: 'polled' },
  sqlite: {
    ...byFolder(() => import('./sqlite/config.ts'), 'openSqlite'),
    noun: 'database',
    watch: 'option',
    changes: 'seen',
  },
  env: { ...byFolder(() => import('./env/config.ts'), 'openEnv'), noun: 'environment', isDerived: true },
  metrics: {
    ...byConfig(() => import('./metrics/config.ts')),
    watch: 'always',
    isDerived: true,
    keeps: true,
    isUnsearched: true,
  },
  search: {
    ...byFolder(() => import('./search/config.ts'), 'openSearch'),
    isDerived: true,
    keeps: true,
    isUnsearched: true,
  },
  remote: { ...byConfig(() => import('./remote/config.ts')), noun: 'server', watch: 'always' },
  inline: { ...byConfig(() => import('./inline/config.ts')), noun: 'texts' },
  web: { ...byConfig(() => import('./web/config.ts')), noun: 'web pages', changes: 'polled' },
  api: { ...byConfig(() => import('./api/config.ts')), noun: 'API', changes: 'polled' },
  results: { ...byConfig(() => import('./results/config.ts')), watch: 'always', isDerived: true, keeps: true },
  packages: {
    ...byConfig(() => import('./packages/config.ts')),
    noun: 'documentation and types of the dependencies, at the installed versions',
    changes: 'seen',
    isDerived: true,
  },
  prompts: { ...byFolder(() => import('./prompts/config.ts'), 'openPrompts'), watch: 'option', changes: 'seen' },
  screen: { ...byConfig(() => import('./screen/config.ts')), noun: 'displays', isDerived: true, isUnsearched: true },
} as const satisfies Readonly<Record<string, SourceEntry>>

/** The name of a source, as a configuration has it. */
export type SourceName = keyof typeof sources

/** Returns the facts of a source by its name; undefined for a name that no source has. */
export function sourceNamed(name: unknown): (SourceEntry & { readonly name: SourceName }) | undefined {
  if (typeof name !== 'string' || !Object.hasOwn(sources, name)) return undefined
  const known = name as SourceName
  return { name: known, ...sources[known] }
}
