import { basename, resolve } from 'node:path'
import { escapeGlob } from '../core/glob.ts'
import { defined } from '../core/kit/object.ts'
import { formatUri, parseAddress } from '../core/uri.ts'
import { type FolderSources, inspectFolder } from './folder.ts'
import { type PlannedMount, planFolders } from './plan.ts'
import type { MountConfig } from './schema.ts'
import type { DocumentSurvey } from './survey.ts'

export interface SetUpMount {
  readonly address: string
  /** Paths are relative to the folder. */
  readonly config: MountConfig
  readonly searched?: boolean
  readonly isSurveyed?: true
}

interface SetUpOptions {
  readonly address: string
  /** The name of the folder in the addresses of the other mounts ({@link plainName}). */
  readonly name: string
  /** Suffix of the titles, if several folders are served. */
  readonly label?: string
  readonly sqlite?: readonly string[]
  readonly documents?: DocumentSurvey
}

/**
 * Returns the mounts of a folder: its files, history, settings, environment, prompts, skills and databases, if it has
 * them. The search is separate ({@link createSearchMount}), since one search covers several folders.
 */
export function standardMounts(
  { names, git, bare = false, settings, dotenv, prompts, skills }: FolderSources,
  { address, name, label, sqlite = [], documents }: SetUpOptions,
): readonly SetUpMount[] {
  const titled = (title: string) => (label === undefined ? title : `${title} · ${label}`)
  const history = {
    address: `git://${name}`,
    config: { provider: 'git', title: titled('History'), repository: '.', redact: 'mask' },
    searched: bare,
  } as const
  if (bare) return [history]
  return [
    { address, config: filesConfig(titled('Files'), names, documents), searched: true, isSurveyed: true },
    ...(git ? [history] : []),
    ...when(settings, `config://${name}`, { provider: 'settings', title: titled('Settings'), root: '.' }),
    ...when(dotenv, `env://${name}`, { provider: 'env', title: titled('Environment'), file: '.env', poll: 5000 }),
    ...each(
      label === undefined ? 'zed://prompt-library' : `zed://prompt-library/${name}`,
      prompts,
      wordOf,
      (root) => ({ provider: 'prompts', title: titled('Prompts'), root }),
      { searched: true },
    ),
    ...each(`skill://${name}`, skills, wordOf, (root) => ({
      provider: 'files',
      title: titled('Skills'),
      root,
      skills: true,
    })),
    ...each(`sqlite://${name}`, sqlite, String, (file) => ({
      provider: 'sqlite',
      title: titled(sqlite.length === 1 ? 'Database' : basename(file)),
      file,
    })),
  ]
}

function when(isThere: boolean, address: string, config: MountConfig): readonly SetUpMount[] {
  return isThere ? [{ address, config }] : []
}

/** A single source is mounted at the address itself, several are below it by their names. */
function each(
  address: string,
  sources: readonly string[],
  nameOf: (source: string) => string,
  configOf: (source: string) => MountConfig,
  { searched = false }: Pick<SetUpMount, 'searched'> = {},
): readonly SetUpMount[] {
  const [, second] = sources
  const addressOf = (source: string) =>
    second === undefined ? address : formatUri(parseAddress(address), nameOf(source))
  return sources.map((source) => {
    const config = configOf(source)
    return { address: addressOf(source), config, searched }
  })
}

function wordOf(folder: string): string {
  return /\w+/.exec(folder)?.[0] ?? ''
}

export function createSearchMount(name: string, mounts: readonly SetUpMount[]): SetUpMount {
  const over = mounts.filter(({ searched }) => searched).map(({ address }) => address)
  return { address: `search://${name}`, config: { provider: 'search', title: 'Search', over } }
}

function filesConfig(title: string, names: readonly string[], documents: DocumentSurvey | undefined): MountConfig {
  const readme = names.find((name) => /^readme(\.[a-z]+)?$/i.test(name))
  const docs = names.find((name) => /^docs?$/i.test(name))
  const rules = [
    ...(readme === undefined ? [] : [{ match: `/${escapeGlob(readme)}`, priority: 0.9 }]),
    ...(docs === undefined ? [] : [{ match: `${escapeGlob(docs)}/**`, priority: 0.7 }]),
  ]
  return { provider: 'files', title, root: '.', ...(rules.length === 0 ? {} : { rules }), ...surveyed(documents) }
}

function surveyed({ language, frontMatter = false }: Partial<DocumentSurvey> = {}) {
  return { ...defined({ language }), ...(frontMatter ? { frontMatter: '**/*.md' } : {}) }
}

export function plainName(folder: string): string {
  return plainWord(basename(folder))
}

/** Converts a text to a name that the authority of a URI can hold; `root` if nothing is left. */
export function plainWord(text: string): string {
  const name = text
    .toLowerCase()
    .replace(/[^a-z0-9._-]+/g, '-')
    .replace(/^[-.]+|[-.]+$/g, '')
  return name === '' ? 'root' : name
}

/**
 * Plans the mounts of folders, and one search over them. The addresses are those of {@link planFolders}. Rejects as
 * `readdir` does for a folder that cannot be read.
 * @throws ResourceError `invalid` for a name beside none or several folders, or one that no address can have
 */
export async function planSetUp(folders: readonly string[], options: { readonly name?: string } = {}) {
  const files = planFolders(folders, options)
  const roots = folders.map((folder) => resolve(folder))
  const names = distinctNames(roots)
  const isOne = roots.length === 1
  const glances = await Promise.all(roots.map(inspectFolder))
  const mountsOf = (databases: readonly (readonly string[])[]): readonly PlannedMount[] => {
    const mounts = roots.flatMap((root, index) => {
      const glance = glances[index]
      const name = names[index] ?? 'root'
      const { address, aliases } = files[index] ?? {}
      if (glance === undefined || address === undefined) return []
      const label = isOne ? {} : { label: basename(root) }
      const options = { address, name, ...label, sqlite: databases[index] ?? [] }
      return standardMounts(glance, options).map((mount) => ({
        root,
        mount,
        ...(mount.address === address && defined({ aliases })),
      }))
    })
    const search = createSearchMount(
      isOne ? (names[0] ?? 'root') : 'all',
      mounts.map(({ mount }) => mount),
    )
    const all = mounts.map(({ root, mount, ...other }) => ({ ...plannedIn(root, mount), ...other }))
    return [...all, { ...search, folder: roots[0] ?? '' }]
  }
  return {
    /** The mounts that follow from the names at the top of the folders. */
    mounts: mountsOf([]),
    withoutGit: roots.filter((_, index) => glances[index]?.lacksGit),
    /** Adds the mounts of databases in the folders. It reads subfolders, which takes longer. */
    complete: async () => {
      const { findSqliteFiles } = await import('./survey.ts')
      return mountsOf(await Promise.all(roots.map(findSqliteFiles)))
    },
  }
}

function plannedIn(root: string, { address, config, isSurveyed }: SetUpMount): PlannedMount {
  const planned = { address, config, folder: root, confined: { symlinks: 'deny', outside: false } } as const
  if (isSurveyed === undefined) return planned
  return {
    ...planned,
    refine: async () => {
      const { surveyDocuments } = await import('./survey.ts')
      return { ...config, ...surveyed(await surveyDocuments(root)) }
    },
  }
}

function distinctNames(roots: readonly string[]): readonly string[] {
  const names = new Set<string>()
  return roots.map((root) => {
    const name = plainName(root)
    let distinct = name
    for (let number = 2; names.has(distinct); number++) distinct = `${name}-${number}`
    names.add(distinct)
    return distinct
  })
}
