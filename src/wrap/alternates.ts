import { isResourceError } from '../core/errors.ts'
import { createRecent } from '../core/kit/lru.ts'
import { parentOf } from '../core/path.ts'
import type { Context, Provider } from '../core/provider.ts'
import { referenceTo, type Twin, twinsOf } from './twins.ts'

/** The same document in another language. */
export interface Alternate {
  /** A relative reference, from the URI of the document. */
  readonly href: string
  readonly language?: string
}

/** Finds the same document in other languages, by its path. */
export type FindAlternates = (path: string, context: Context) => Promise<readonly Alternate[]>

/** Cached alternates; valid while the versions of all examined folders stay the same. */
interface Known {
  readonly folders: ReadonlyMap<string, string>
  readonly alternates: readonly Alternate[]
  readonly until: number
}

/** The version of a folder; that it is not there; or that the source does not tell just now. */
type Seen = string | typeof absent | typeof unknown
const absent = Symbol('absent')
const unknown = Symbol('unknown')

/** For how many documents it is remembered. */
const most = 10_000
/** For how long, in milliseconds: what a folder shows may change with rules that lie elsewhere. */
const age = 2000

const documents = /\.(?:md|mdx|markdown|txt|rst|adoc|asciidoc|org|html?|xhtml|pdf|docx|pptx|xlsx)$/i

/**
 * Looks for twins by `stat`. There are a dozen places where one may be, so that this would be most of the work of reading a small
 * document: where the folders of the source have versions, they are looked at in place of them from the second time on.
 */
export function createAlternates(
  stat: NonNullable<Provider['stat']>,
  languages: readonly string[],
  now: () => number = Date.now,
): FindAlternates {
  const remembered = createRecent<Known>(most)

  const seen = async (folder: string, context: Context): Promise<Seen> => {
    try {
      return (await stat(folder, context)).version ?? unknown
    } catch (error) {
      if (!isResourceError(error)) throw error
      return error.kind === 'not-found' ? absent : unknown
    }
  }

  const isSame = async ({ folders, until }: Known, context: Context): Promise<boolean> => {
    if (now() > until) return false
    const same = [...folders].map(async ([folder, version]) => (await seen(folder, context)) === version)
    return (await Promise.all(same)).every(Boolean)
  }

  /**
   * Reads the folders that decide about the twins: the folder of each twin, or its nearest existing ancestor.
   *
   * @returns Whether a folder can hold a twin, and the versions of the folders; `undefined` when a folder has no version.
   */
  const foldersOf = async (twins: readonly Twin[], context: Context) => {
    const asked = new Map<string, Promise<Seen>>()
    const ask = (folder: string): Promise<Seen> => {
      const known = asked.get(folder)
      if (known !== undefined) return known
      const found = folder === '' ? seen('', context) : below(folder)
      asked.set(folder, found)
      return found
    }
    // From the top down: a folder that appears later changes the version of its parent, which was read before.
    const below = async (folder: string): Promise<Seen> => {
      const above = await ask(parentOf(folder))
      return typeof above === 'string' ? seen(folder, context) : above
    }
    const versions = new Map<string, string>()
    const isThere = new Map<string, boolean>()
    const folders = new Set(twins.map(({ path }) => parentOf(path)))
    await Promise.allSettled([...folders].map(ask))
    for (const folder of folders) {
      isThere.set(folder, (await ask(folder)) !== absent)
      for (let at = folder; ; at = parentOf(at)) {
        const found = await ask(at)
        if (found === unknown || (found === absent && at === '')) return undefined
        if (found === absent) continue
        versions.set(at, found)
        break
      }
    }
    return { versions, isThere }
  }

  const isThere = async (path: string, context: Context): Promise<boolean> => {
    try {
      await stat(path, context)
      return true
    } catch (error) {
      if (isResourceError(error)) return false
      throw error
    }
  }

  const find = async (path: string, twins: readonly Twin[], context: Context): Promise<readonly Alternate[]> => {
    const found = twins.map(async ({ path: at, ...facts }) =>
      (await isThere(at, context)) ? [{ href: referenceTo(at, path), ...facts }] : [],
    )
    return (await Promise.all(found)).flat()
  }

  return async (path, context) => {
    if (languages.length === 0 || !documents.test(path)) return []
    const known = remembered.get(path)
    if (known !== undefined && (await isSame(known, context))) return known.alternates
    const twins = twinsOf(path, languages)
    const folders = await foldersOf(twins, context)
    if (folders === undefined) return find(path, twins, context)
    const possible = twins.filter((twin) => folders.isThere.get(parentOf(twin.path)))
    const alternates = await find(path, possible, context)
    remembered.set(path, { folders: folders.versions, alternates, until: now() + age })
    return alternates
  }
}
