import { isResourceError } from '../core/errors.ts'
import { createRecent } from '../core/kit/lru.ts'
import { baseName, parentOf } from '../core/path.ts'
import type { Context, Provider } from '../core/provider.ts'
import { encodePath } from '../core/uri.ts'

/** The same document in another language, by its path. */
export interface Twin {
  readonly path: string
  /** Undefined if the path of the document names no language. */
  readonly language?: string
}

/**
 * Returns the possible paths of the same document in other languages: `README.md` and `README.ja.md`, `README_JA.md` or
 * `README-ja.md`, `docs/ja/x.md` and `docs/en/x.md` or `docs/x.md`. None of them need exist.
 *
 * @param languages Language tags as file names have them, in lower case: `ja`, `zh-cn`.
 */
export function twinsOf(path: string, languages: readonly string[]): readonly Twin[] {
  const [directory, name] = [parentOf(path), baseName(path)]
  const segments = directory.split('/').slice(0, -1)
  const inName = languageInName(name, languages)
  const inPath = segments.findLastIndex((segment) => languages.includes(segment.toLowerCase()))
  if (inName !== undefined) {
    const { stem, separator, mark, extension } = inName
    const others = languages.filter((language) => language !== mark.toLowerCase())
    return [
      { path: `${directory}${stem}${extension}` },
      ...others.map((language) => ({
        path: `${directory}${stem}${separator}${mark === mark.toUpperCase() ? language.toUpperCase() : language}${extension}`,
        language,
      })),
    ]
  }
  if (inPath !== -1) {
    const at = (language: string) => [...segments.with(inPath, language), name].join('/')
    const others = languages.filter((language) => language !== segments[inPath]?.toLowerCase())
    return [
      { path: [...segments.toSpliced(inPath, 1), name].join('/') },
      ...others.map((language) => ({ path: at(language), language })),
    ]
  }
  const dot = name.lastIndexOf('.')
  const [stem, extension] = dot > 0 ? [name.slice(0, dot), name.slice(dot)] : [name, '']
  // A language folder is at the top, below the first folder, or in this folder.
  const indices = new Set([0, Math.min(1, segments.length), segments.length])
  return languages.flatMap((language) => [
    ...['.', '-', '_'].map((mark) => ({ path: `${directory}${stem}${mark}${language}${extension}`, language })),
    ...['_', '-'].map((mark) => ({
      path: `${directory}${stem}${mark}${language.toUpperCase()}${extension}`,
      language,
    })),
    ...[...indices].map((index) => ({ path: [...segments.toSpliced(index, 0, language), name].join('/'), language })),
  ])
}

function languageInName(name: string, languages: readonly string[]) {
  const [, stem = '', separator = '', mark = '', extension = ''] =
    /^(.+)([._-])([A-Za-z]{2}(?:-[A-Za-z]{2,4})?)(\.\w+)$/.exec(name) ?? []
  return languages.includes(mark.toLowerCase()) ? { stem, separator, mark, extension } : undefined
}

/** A relative reference (RFC 3986, section 4.2) from the URI of one path of a mount to another. */
export function referenceTo(path: string, from: string): string {
  const [a, b] = [from.split('/').slice(0, -1), path.split('/')]
  let shared = 0
  while (shared < a.length && shared < b.length - 1 && a[shared] === b[shared]) shared++
  const reference = encodePath([...a.slice(shared).map(() => '..'), ...b.slice(shared)].join('/'))
  // A colon in the first segment would end a scheme.
  return /^[^/]*:/.test(reference) ? `./${reference}` : reference
}

interface CachedFolder {
  readonly version: string
  /** How often the folder was asked for in this version. */
  asked: number
  /** Whether its list is on the way. */
  isListing?: boolean
  readonly paths?: ReadonlySet<string>
}

/** A folder that is missing while the folder above it has this version. */
interface MissingFolder {
  readonly versionAbove: string
  readonly until: number
}

const absent = Symbol('absent')

/** A folder, or that it is missing; undefined if that is not known. */
type FolderState = CachedFolder | typeof absent | undefined

/** How often a folder is asked for before it is listed. */
const patience = 16
/** Maximum number of entries in its list for each time: an entry takes 5 µs, and the list saves 200 µs for each document. */
const entriesPerQuestion = 128
/** Maximum number of paths that are kept of all folders, about 20 MB. */
const maxPaths = 100_000
/** Maximum number of missing folders that are kept. */
const maxMissing = 10_000
/** Lifetime of a missing folder, in milliseconds: rules elsewhere may change which folders are visible. */
const maxMissingAgeMs = 2000

/**
 * Caches the paths in folders until their versions change, and the folders that are missing. A folder is listed when it is asked for
 * the 16th, 32nd, 64th time, and so on, until a list has come to its end. A list has no empty folders, so only files are looked for
 * in it. Returns a function that leaves out the twins that certainly do not exist.
 */
export function createFolderNames({ stat, list }: Required<Pick<Provider, 'stat' | 'list'>>, now: () => number) {
  const folders = createRecent<CachedFolder>(maxPaths, ({ paths }) => 1 + (paths?.size ?? 0))
  const missing = createRecent<MissingFolder>(maxMissing)

  /** Returns the files in a folder; undefined if there are more than `limit` entries, or the folder cannot be listed. */
  const read = async (folder: string, limit: number, context: Context): Promise<ReadonlySet<string> | undefined> => {
    const paths = new Set<string>()
    let entries = 0
    try {
      for await (const { path } of list({ prefix: folder, shallow: true }, context)) {
        if (++entries > limit) return undefined
        if (!path.includes('/', folder.length)) paths.add(path)
      }
    } catch (error) {
      if (isResourceError(error)) return undefined
      throw error
    }
    return paths
  }

  const cached = async (folder: string, version: string, context: Context): Promise<CachedFolder> => {
    const last = folders.get(folder)
    const known = last?.version === version ? last : { version, asked: 0 }
    if (known !== last) folders.set(folder, known)
    known.asked++
    const isTime = known.asked >= patience && Number.isInteger(Math.log2(known.asked))
    if (known.paths !== undefined || known.isListing === true || !isTime) return known
    known.isListing = true
    const limit = Math.min(maxPaths, known.asked * entriesPerQuestion)
    const paths = await read(folder, limit, context).finally(() => {
      known.isListing = false
    })
    if (paths === undefined) return known
    const listed = { ...known, paths }
    if (folders.get(folder) === known) folders.set(folder, listed)
    return listed
  }

  return async (twins: readonly Twin[], context: Context): Promise<readonly Twin[]> => {
    const seen = new Map<string, FolderState>()
    const see = async (folder: string): Promise<FolderState> => {
      if (!seen.has(folder)) seen.set(folder, await look(folder))
      return seen.get(folder)
    }
    /** Looks at a folder, and at those above it before: one that comes changes the version of the one above it. */
    const look = async (folder: string): Promise<FolderState> => {
      const above = folder === '' ? undefined : await see(parentOf(folder))
      if (above === absent) return absent
      const known = missing.get(folder)
      if (known !== undefined && known.versionAbove === above?.version && now() <= known.until) return absent
      try {
        const { version } = await stat(folder, context)
        return version === undefined ? undefined : await cached(folder, version, context)
      } catch (error) {
        if (!isResourceError(error)) throw error
        // Some sources know no folders.
        if (above === undefined || error.kind !== 'not-found') return undefined
        missing.set(folder, { versionAbove: above.version, until: now() + maxMissingAgeMs })
        return absent
      }
    }
    for (const folder of new Set(twins.map(({ path }) => parentOf(path)))) await see(folder)
    return twins.filter(({ path }) => {
      const folder = seen.get(parentOf(path))
      return folder !== absent && folder?.paths?.has(path) !== false
    })
  }
}
