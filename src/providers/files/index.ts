import type { BigIntStats } from 'node:fs'
import { fallbackTo, isResourceError, notFound, unavailable } from '../../core/errors.ts'
import { createLruCache } from '../../core/kit/lru.ts'
import { defined, requireKeys } from '../../core/kit/object.ts'
import { baseName, parentOf } from '../../core/path.ts'
import type { Content, Context, Provider, ReadRequest, Template } from '../../core/provider.ts'
import { alternatesMeta, isTranslatable, type TranslationPath, translationPathsOf } from '../../wrap/translations.ts'
import { createIgnoreFiles } from './ignore-files.ts'
import { createFileLister, createHeadings } from './list.ts'
import { compileMetadataRules, completeFilesOptions, type FilesOptions, mimeTypeOfFile } from './options.ts'
import {
  createLeaveOut,
  createPool,
  decodeTextRange,
  isSettled,
  type Pool,
  type RootAccess,
  readStable,
  settledMs,
  statFiles,
  versionStamp,
} from './place.ts'
import { openRoot } from './root.ts'
import {
  cacheVerdicts,
  createNameCache,
  createVisibility,
  createWalk,
  ignoreFileOptions,
  type StatEntry,
  type Walker,
} from './walk.ts'
import { createFilesWatch } from './watch.ts'

export { type LeftOut, type LeftOutCounts, type LeftOutFiles, type LeftOutReason, openLeftOut } from './left-out.ts'
export type { FileRule, FilesOptions } from './options.ts'
export { createExclusion } from './walk.ts'

const template: Template = {
  template: '{+path}',
  name: 'Files',
  title: 'A file by its path',
  description: 'The content of one file. The path is relative to the root of the mount, as in its listing.',
}

/**
 * Provider of the files below a directory.
 *
 * A path that is left out is `not-found`, whatever the reason. On Linux no change of the tree, however timed, leads a call out of the root; elsewhere
 * this is best effort. A file is text if its bytes are UTF-8 without NUL.
 *
 * @throws ResourceError `invalid` for an invalid root, glob or limit.
 */
export async function files(options: FilesOptions): Promise<Provider> {
  requireKeys('files({ root })', options, { root: 'a string' })
  return createFiles(options, {})
}

export interface FilesTestOptions {
  /** Whether to work by path, as on a system without /proc. */
  readonly portable?: boolean
  readonly platform?: NodeJS.Platform
  /** Maximum number of directories with a file system watch. Default 8192. */
  readonly watches?: number
  readonly pool?: Pool
  readonly places?: (opened: RootAccess) => RootAccess
  readonly look?: StatEntry
}

/** Does the same as {@link files}, with additional options for tests. */
export async function createFiles(options: FilesOptions, system: FilesTestOptions): Promise<Provider> {
  const { log, maxBytes, symlinks, allowMounts, hardlinks, watch, reconcile, languages, ...chosen } =
    completeFilesOptions(options)
  const { portable = process.platform !== 'linux', platform, watches = 8192, pool = createPool() } = system
  const visible = cacheVerdicts(createVisibility({ ...options, ...chosen, ...defined({ platform }) }))
  const rules = compileMetadataRules(chosen.rules)
  const permit = { allowMounts, hardlinks }
  const ignoring = ignoreFileOptions(chosen)
  const rootAccess = await openRoot({ ...options, allowMounts, portable, platform, ...ignoring }, pool, log)
  const places = system.places?.(rootAccess) ?? rootAccess
  const ignoreFiles = createIgnoreFiles({ places, pool, log, ...ignoring })
  const names = createNameCache(visible, symlinks === 'beneath', pool)
  const walk = createWalk({
    places,
    pool,
    visible,
    permit,
    names,
    symlinks,
    ignoreFiles,
    ...defined({ look: system.look }),
  })
  const leaveOut = createLeaveOut(log)
  const closing = new AbortController()
  const watched = {
    ...(options.include === undefined ? {} : { include: options.include }),
    ...(options.exclude === undefined ? {} : { exclude: options.exclude }),
    ...{ defaultExcludes: chosen.defaultExcludes, hidden: chosen.hidden },
    ...{ gitignore: chosen.gitignore, worktrees: chosen.worktrees },
    dotenv: chosen.dotenv,
    ...{ symlinks, hardlinks, allowMounts, portable, reconcile, watches },
    recursive: portable && ['darwin', 'win32'].includes(process.platform),
  }
  const { confirm, ...watching } = watch
    ? createFilesWatch(places, watched, log, closing.signal)
    : { confirm: undefined }
  const check = (signal: AbortSignal): void => {
    signal.throwIfAborted()
    if (closing.signal.aborted) throw unavailable('The files provider is closed.')
  }
  const lister = createFileLister({
    ...{
      walk,
      names,
      permit,
      rules,
      headings: createHeadings(places, leaveOut),
      pool,
      leaveOut,
      check,
      keptMs: reconcile,
    },
    ...(confirm === undefined ? {} : { confirm }),
  })

  const translationsOf =
    languages.length === 0 ? undefined : createTranslations({ walk, pool, languages, stat: lister.stat })

  const readFile = async ({ path, range }: ReadRequest, context: Context): Promise<readonly Content[]> => {
    const { signal } = context
    check(signal)
    if (path === '' || path.endsWith('/')) throw notFound('a directory')
    const { place, aliases, trail } = await walk.to(path, context)
    const listed = aliases[0].path
    const handle = await places.open(place, signal).finally(place.close)
    try {
      const bytes = await readStable(handle, range, maxBytes, context)
      const text = decodeTextRange(bytes, range === undefined)
      const mimeType =
        rules?.(path).facts.mimeType ?? mimeTypeOfFile(baseName(path), { text: text !== undefined, head: bytes.head })
      const isWhole = range === undefined && listed === path
      const translations = isWhole ? await translationsOf?.(path, trail, context) : undefined
      const { start, end } = text ?? { start: bytes.start, end: bytes.start + bytes.bytes.length }
      return [
        {
          ...{ mimeType, version: versionStamp(bytes.stats), size: Number(bytes.stats.size) },
          ...(listed === path ? {} : { path: listed }),
          ...(range === undefined ? {} : { range: { start, end } }),
          ...(translations === undefined ? {} : alternatesMeta(translations, path)),
          ...(text === undefined ? { bytes: bytes.bytes } : { text: text.text }),
        },
      ]
    } finally {
      handle.close()
    }
  }

  return {
    list: (query, context) => lister.list(query, context.signal, context.allows),
    stat: async (path, context) => {
      check(context.signal)
      return lister.stat(path, context)
    },
    read: readFile,
    templates: async ({ signal }) => {
      check(signal)
      return [template]
    },
    ...watching,
    listsChanges: (isRestricted) => !isRestricted || symlinks === 'deny',
    close: async () => {
      closing.abort()
      places.close()
      names.clear()
    },
  }
}

interface TranslationOptions {
  readonly walk: Walker
  readonly pool: Pool
  /** Language tags, as they are spelled in paths. */
  readonly languages: readonly string[]
  /** Rejects unless the file at a path is served. */
  readonly stat: (path: string, context: Context) => Promise<unknown>
}

interface KnownTranslations {
  readonly stamps: string
  readonly translations: readonly TranslationPath[]
}

const maxDocuments = 20_000

/**
 * Returns a function that finds the translations of a document: the same document in other languages. Which ones may exist is cached until a
 * directory on the way to the document changes.
 */
function createTranslations({ walk, pool, languages, stat }: TranslationOptions) {
  const tags = languages.map((language) => language.toLowerCase())
  const translationsCache = createLruCache<KnownTranslations>(maxDocuments)

  /** Returns the translations that may exist: those whose first name that differs from the path of the document exists. */
  const lookFor = async (path: string, context: Context): Promise<readonly TranslationPath[]> => {
    const byDirectory = new Map<string, { readonly translation: TranslationPath; readonly name: string }[]>()
    for (const translation of translationPathsOf(path, tags)) {
      let directory = parentOf(translation.path)
      while (!path.startsWith(directory)) directory = parentOf(directory)
      const [name = ''] = translation.path.slice(directory.length).split('/')
      byDirectory.set(directory, [...(byDirectory.get(directory) ?? []), { translation, name }])
    }
    const there: TranslationPath[] = []
    for (const [directory, translations] of byDirectory) {
      const { place } = await walk.to(directory, context)
      const names = translations.map(({ name }) => name)
      const stats = await statFiles(place, names, pool, context.signal).finally(place.close)
      there.push(...translations.filter((_, at) => stats[at] !== undefined).map(({ translation }) => translation))
    }
    return there
  }

  /** @param directories Stats of the directories on the way to the document, from when it was read. */
  return async (
    path: string,
    directories: readonly BigIntStats[],
    context: Context,
  ): Promise<readonly TranslationPath[]> => {
    if (!isTranslatable(path)) return []
    const stamps = directories.map(versionStamp).join(' ')
    const last = translationsCache.get(path)
    let possible = last?.stamps === stamps ? last.translations : undefined
    if (possible === undefined) {
      try {
        possible = await lookFor(path, context)
      } catch (error) {
        if (isResourceError(error)) return []
        throw error
      }
      const time = Date.now()
      if (directories.every((stats) => isSettled(stats, time, settledMs)))
        translationsCache.set(path, { stamps, translations: possible })
    }
    if (possible.length === 0) return possible
    const checks = possible.map((translation) =>
      stat(translation.path, context).then(() => [translation], fallbackTo([])),
    )
    return (await Promise.all(checks)).flat()
  }
}
