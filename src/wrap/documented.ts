import { formatOf } from '../core/documents.ts'
import { claimedPriority, requiredPriority } from '../core/entry.ts'
import { isResourceError, isTransient } from '../core/errors.ts'
import { compileGlobs } from '../core/glob.ts'
import { createRecent } from '../core/kit/lru.ts'
import { defined } from '../core/kit/object.ts'
import type { Content, Context, Entry, Provider } from '../core/provider.ts'
import { type FrontMatter, frontMatterBytes, frontMatterOf, headingIn } from '../text/front-matter.ts'
import { bytesOf } from './part.ts'
import { createFolderNames, referenceTo, twinsOf } from './twins.ts'

export interface DocumentedOptions {
  /** Globs of the documents whose front matter is read. Listing them costs one small read each, once for each version. */
  readonly frontMatter?: readonly string[]
  /** Globs of the Markdown documents whose first heading becomes their title, if they have none yet. It costs the same. */
  readonly headings?: readonly string[]
  /**
   * The languages of documents, as written in paths. Default `ja` and `en`; with an empty list, no document names another. Pass
   * an empty list if access rules hide some documents, because the rules are not known here.
   */
  readonly languages?: readonly string[]
}

/** The key of the {@link Alternate}s of a document in `_meta`. */
export const alternatesKey = 'dev.hikidashi/alternates'

const markdown = /\.(?:md|mdx|markdown)$/i

/**
 * Adds the facts that documents state about themselves: title, description, priority, audience, and the same document in other
 * languages. Front matter of the documents that `frontMatter` matches gives the first four, before any rule does. A first heading
 * becomes the title of a document without one. A read names the other languages in `meta`. A priority in front matter is capped
 * ({@link claimedPriority}), and does not lower the priority 1 of a rule.
 *
 * @throws ResourceError `invalid` for a malformed glob.
 */
export function documented(provider: Provider, options: DocumentedOptions = {}): Provider {
  const { frontMatter = [], headings = [] } = options
  const hasFrontMatter = compileGlobs(frontMatter)
  const hasHeading = compileGlobs(headings)
  const languages = (options.languages ?? ['ja', 'en']).map((language) => language.toLowerCase())
  const known = createRecent<FrontMatter>(20_000)

  /** Reads the front matter and the first heading at the beginning of a document. Resolves to undefined after an error that may pass. */
  const readStart = async ({ path, title }: Entry, context: Context): Promise<FrontMatter | undefined> => {
    try {
      const range = { start: 0, end: frontMatterBytes }
      const [content] = await provider.read({ path, params: new Map(), range }, context)
      if (content === undefined || 'bytes' in content) return {}
      const text = 'text' in content ? content.text : (await bytesOf(content)).toString()
      const start = text.slice(0, frontMatterBytes)
      const heading = title === undefined && hasHeading(path) ? headingIn(start) : undefined
      return {
        ...defined({ title: heading }),
        ...(hasFrontMatter(path) ? frontMatterOf(start) : {}),
      }
    } catch (error) {
      // The document is listed anyway; a read reports the fault.
      if (isTransient(error)) return undefined
      if (isResourceError(error)) return {}
      throw error
    }
  }

  const describe = async (entry: Entry, context: Context): Promise<Entry> => {
    const { path, title } = entry
    const isTold = hasFrontMatter(path) || (title === undefined && markdown.test(path) && hasHeading(path))
    if (!isTold || path.endsWith('/')) return entry
    const key = entry.version === undefined ? undefined : `${entry.version}/${path}`
    const found = (key === undefined ? undefined : known.get(key)) ?? (await readStart(entry, context))
    if (found === undefined) return entry
    if (key !== undefined) known.set(key, found)
    return { ...entry, ...found, ...priorityOf(entry.priority, found.priority) }
  }

  const { stat } = provider
  const alternatesOf = stat === undefined ? undefined : createAlternates({ stat, list: provider.list }, languages)
  const entries: Pick<Provider, 'list' | 'stat'> = {
    list: async function* (query, context) {
      for await (const entry of provider.list(query, context)) yield await describe(entry, context)
    },
    ...(stat === undefined ? {} : { stat: async (path, context) => describe(await stat(path, context), context) }),
  }

  return {
    ...provider,
    // If neither front matter nor headings are read, listings are passed through unchanged.
    ...(frontMatter.length + headings.length === 0 ? {} : entries),
    read: async (request, context) => {
      const contents = await provider.read(request, context)
      // A part is read by a wrapper that also reads the whole.
      if (alternatesOf === undefined || request.range !== undefined) return contents
      const alternates = await alternatesOf(request.path, context)
      return alternates.length === 0 ? contents : contents.map((content) => withAlternates(content, alternates))
    },
  }
}

/** Contents can neither require themselves, nor lower the priority that the operator requires. */
function priorityOf(ruled: number | undefined, claimed: number | undefined): Pick<Entry, 'priority'> {
  if (claimed === undefined) return {}
  return { priority: ruled === requiredPriority ? ruled : claimedPriority(claimed) }
}

function withAlternates(content: Content, alternates: readonly Alternate[]): Content {
  return content.path === undefined ? { ...content, meta: { ...content.meta, [alternatesKey]: alternates } } : content
}

/** The same document in another language. */
interface Alternate {
  /** A relative reference, from the URI of the document. */
  readonly href: string
  readonly language?: string
}

/** Finds the same document in other languages, by its path. */
type FindAlternates = (path: string, context: Context) => Promise<readonly Alternate[]>

const texts = /\.(?:md|mdx|markdown|txt|rst|adoc|asciidoc|org)$/i

/** Looks for each twin by `stat`, unless its folder is missing or its list does not have it. */
export function createAlternates(
  source: Required<Pick<Provider, 'stat' | 'list'>>,
  languages: readonly string[],
  now: () => number = Date.now,
): FindAlternates {
  const { stat } = source
  const possible = createFolderNames(source, now)

  const isThere = async (path: string, context: Context): Promise<boolean> => {
    try {
      await stat(path, context)
      return true
    } catch (error) {
      if (isResourceError(error)) return false
      throw error
    }
  }

  return async (path, context) => {
    if (languages.length === 0 || !(texts.test(path) || formatOf(path, undefined) !== undefined)) return []
    const twins = await possible(twinsOf(path, languages), context)
    const found = twins.map(async ({ path: at, ...facts }) =>
      (await isThere(at, context)) ? [{ href: referenceTo(at, path), ...facts }] : [],
    )
    return (await Promise.all(found)).flat()
  }
}
