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
  /** The question with which it is listed. */
  next: number
  paths: Promise<ReadonlySet<string> | undefined> | undefined
  /** Number of paths. */
  readonly size: number
}

/** Number of questions about one version of a folder before it is listed: until then a list would take longer than it saves. */
const patience = 16
/**
 * Number of paths for each question that a list may have: it takes 5 µs for a path, and saves 200 µs for a document. A folder with more paths is
 * listed again when twice as many questions have come.
 */
const pathsPerQuestion = 128
/** Maximum number of paths that are kept of all folders, about 20 MB. */
const maxPaths = 100_000

/**
 * Caches the paths in folders from which many documents are read. Returns a function for the paths directly in a folder, until its version
 * changes. They are undefined if they are not known: the folder was asked for seldom, or has too many.
 */
export function createFolderNames(list: Provider['list']) {
  const folders = createRecent<CachedFolder>(maxPaths, ({ size }) => size)

  /** Returns undefined for a folder with more paths than `limit`, and for one that cannot be listed. */
  const read = async (prefix: string, limit: number, context: Context): Promise<ReadonlySet<string> | undefined> => {
    const paths = new Set<string>()
    try {
      for await (const { path } of list({ prefix, shallow: true }, context)) {
        paths.add(path)
        if (paths.size > limit) return undefined
      }
    } catch (error) {
      if (isResourceError(error)) return undefined
      throw error
    }
    return paths
  }

  const ask = async (
    folder: string,
    known: CachedFolder,
    context: Context,
  ): Promise<ReadonlySet<string> | undefined> => {
    known.next = 2 * known.asked
    try {
      const paths = await read(folder, Math.min(maxPaths, known.asked * pathsPerQuestion), context)
      if (paths === undefined) known.paths = undefined
      else if (folders.get(folder) === known) folders.set(folder, { ...known, size: 1 + paths.size })
      return paths
    } catch (error) {
      known.paths = undefined
      known.next = known.asked
      // Others wait for this list too: they look for each path by itself if its caller has gone.
      if (context.signal.aborted) return undefined
      throw error
    }
  }

  return async (folder: string, version: string, context: Context): Promise<ReadonlySet<string> | undefined> => {
    let known = folders.get(folder)
    if (known?.version !== version) {
      known = { version, asked: 0, next: patience + 1, paths: undefined, size: 1 }
      folders.set(folder, known)
    }
    known.asked++
    if (known.paths === undefined && known.asked >= known.next) known.paths = ask(folder, known, context)
    return known.paths
  }
}
