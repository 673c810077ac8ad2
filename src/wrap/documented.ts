import { capClaimedPriority, requiredPriority } from '../core/entry.ts'
import { fallbackTo, isResourceError, isTransient } from '../core/errors.ts'
import { compileGlobs } from '../core/glob.ts'
import { createLruCache } from '../core/kit/lru.ts'
import { defined } from '../core/kit/object.ts'
import type { Content, Context, Entry, Provider } from '../core/provider.ts'
import { type FrontMatter, frontMatterBytes, frontMatterOf, headingIn } from '../text/front-matter.ts'
import { readContentBytes } from './part.ts'
import { alternatesMeta, isTranslatable, type TranslationPath, translationPathsOf } from './translations.ts'

export interface DocumentedOptions {
  /** Globs of the documents whose front matter is read: a listing reads the beginning of each, and caches it by its version. */
  readonly frontMatter?: readonly string[]
  /** Globs of the Markdown documents whose first heading becomes their title, if they have no title. */
  readonly headings?: readonly string[]
  /**
   * The languages of documents, as written in paths. Default `ja` and `en`. Pass an empty list if access rules hide some documents, because
   * the rules are not known here.
   */
  readonly languages?: readonly string[]
}

const markdown = /\.(?:md|mdx|markdown)$/i

/**
 * Adds to entries the facts that documents state about themselves (title, description, priority, audience), and to contents the paths of
 * the same document in other languages. Front matter takes precedence over the facts of an entry. A priority in front matter is capped
 * ({@link capClaimedPriority}), and does not lower the priority 1 of an entry.
 *
 * @throws ResourceError `invalid` for a malformed glob.
 */
export function documented(provider: Provider, options: DocumentedOptions = {}): Provider {
  const { frontMatter = [], headings = [] } = options
  const hasFrontMatter = compileGlobs(frontMatter)
  const hasHeading = compileGlobs(headings)
  const languages = (options.languages ?? ['ja', 'en']).map((language) => language.toLowerCase())
  const cache = createLruCache<FrontMatter>(20_000)

  /** Resolves to undefined after an error that may pass, which must not be cached. */
  const readStart = async ({ path, title }: Entry, context: Context): Promise<FrontMatter | undefined> => {
    try {
      const range = { start: 0, end: frontMatterBytes }
      const [content] = await provider.read({ path, params: new Map(), range }, context)
      if (content === undefined || 'bytes' in content) return {}
      const text = 'text' in content ? content.text : (await readContentBytes(content)).toString()
      const start = text.slice(0, frontMatterBytes)
      const heading = title === undefined && hasHeading(path) ? headingIn(start) : undefined
      return {
        ...defined({ title: heading }),
        ...(hasFrontMatter(path) ? frontMatterOf(start) : {}),
      }
    } catch (error) {
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
    const frontMatter = (key === undefined ? undefined : cache.get(key)) ?? (await readStart(entry, context))
    if (frontMatter === undefined) return entry
    if (key !== undefined) cache.set(key, frontMatter)
    return { ...entry, ...frontMatter, ...priorityOf(entry.priority, frontMatter.priority) }
  }

  const { stat } = provider
  const entries: Pick<Provider, 'list' | 'stat'> = {
    list: async function* (query, context) {
      for await (const entry of provider.list(query, context)) yield await describe(entry, context)
    },
    ...(stat === undefined ? {} : { stat: async (path, context) => describe(await stat(path, context), context) }),
  }

  return {
    ...provider,
    ...(frontMatter.length + headings.length === 0 ? {} : entries),
    read: async (request, context) => {
      const contents = await provider.read(request, context)
      const { path, range } = request
      if (stat === undefined || range !== undefined || !isTranslatable(path)) return contents
      const meta = alternatesMeta(await findTwins(stat, path, languages, context), path)
      return contents.map((content) => withMeta(content, meta))
    },
  }
}

/** A document can neither require itself, nor lower the priority that the operator requires. */
function priorityOf(ruled: number | undefined, claimed: number | undefined): Pick<Entry, 'priority'> {
  if (claimed === undefined) return {}
  return { priority: ruled === requiredPriority ? ruled : capClaimedPriority(claimed) }
}

function withMeta(content: Content, { meta }: Pick<Content, 'meta'>): Content {
  return content.path === undefined && meta !== undefined ? { ...content, meta: { ...content.meta, ...meta } } : content
}

async function findTwins(
  stat: NonNullable<Provider['stat']>,
  path: string,
  languages: readonly string[],
  context: Context,
): Promise<readonly TranslationPath[]> {
  const find = async (translation: TranslationPath) => {
    await stat(translation.path, context)
    return [translation]
  }
  const translations = await Promise.all(
    translationPathsOf(path, languages).map((translation) => find(translation).catch(fallbackTo([]))),
  )
  return translations.flat()
}
