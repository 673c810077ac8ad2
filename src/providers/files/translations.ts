import type { BigIntStats } from 'node:fs'
import { fallbackTo, isResourceError } from '../../core/errors.ts'
import { createRecent } from '../../core/kit/lru.ts'
import { parentOf } from '../../core/path.ts'
import type { Context } from '../../core/provider.ts'
import { isTranslatable, type Twin, twinsOf } from '../../wrap/twins.ts'
import { isSettled, lookAtAll, type Pool, settledMs, stampOf } from './place.ts'
import type { Walk } from './walk.ts'

interface TranslationOptions {
  readonly walk: Walk
  readonly pool: Pool
  /** Language tags as paths have them. */
  readonly languages: readonly string[]
  /** Rejects unless the file at a path is served. */
  readonly stat: (path: string, context: Context) => Promise<unknown>
}

interface KnownTwins {
  readonly stamps: string
  readonly twins: readonly Twin[]
}

/** Maximum number of documents whose possible twins are cached, about 4 MB. */
const maxDocuments = 20_000

/**
 * Returns a function that finds the same document in other languages. The path of a twin leaves that of the document in one of its
 * directories, with a name that is usually missing there. The twins whose names are there are cached until one of these
 * directories changes, so that most reads look at no other file.
 */
export function createTranslations({ walk, pool, languages, stat }: TranslationOptions) {
  const tags = languages.map((language) => language.toLowerCase())
  const known = createRecent<KnownTwins>(maxDocuments)

  /** Returns the twins whose first name that differs from the path of the document exists. */
  const lookFor = async (path: string, context: Context): Promise<readonly Twin[]> => {
    const byDirectory = new Map<string, { readonly twin: Twin; readonly name: string }[]>()
    for (const twin of twinsOf(path, tags)) {
      let directory = parentOf(twin.path)
      while (!path.startsWith(directory)) directory = parentOf(directory)
      const [name = ''] = twin.path.slice(directory.length).split('/')
      byDirectory.set(directory, [...(byDirectory.get(directory) ?? []), { twin, name }])
    }
    const there: Twin[] = []
    for (const [directory, twins] of byDirectory) {
      const { place } = await walk.to(directory, context)
      const names = twins.map(({ name }) => name)
      const stats = await lookAtAll(place, names, pool, context.signal).finally(place.close)
      there.push(...twins.filter((_, at) => stats[at] !== undefined).map(({ twin }) => twin))
    }
    return there
  }

  /** @param directories Stats of the directories on the way to the document, from when it was read. */
  return async (path: string, directories: readonly BigIntStats[], context: Context): Promise<readonly Twin[]> => {
    if (!isTranslatable(path)) return []
    const stamps = directories.map(stampOf).join(' ')
    const last = known.get(path)
    let possible = last?.stamps === stamps ? last.twins : undefined
    if (possible === undefined) {
      try {
        possible = await lookFor(path, context)
      } catch (error) {
        if (isResourceError(error)) return []
        throw error
      }
      const time = Date.now()
      if (directories.every((stats) => isSettled(stats, time, settledMs))) known.set(path, { stamps, twins: possible })
    }
    if (possible.length === 0) return possible
    const served = possible.map((twin) => stat(twin.path, context).then(() => [twin], fallbackTo([])))
    return (await Promise.all(served)).flat()
  }
}
