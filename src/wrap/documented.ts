import { isResourceError } from '../core/errors.ts'
import { compileGlobs } from '../core/glob.ts'
import { defined } from '../core/kit/defined.ts'
import { createRecent } from '../core/kit/lru.ts'
import { claimedPriority, requiredPriority } from '../core/priority.ts'
import type { Content, Context, Entry, Provider } from '../core/provider.ts'
import { type FrontMatter, frontMatterBytes, frontMatterOf } from '../text/front-matter.ts'
import { headingIn } from '../text/heading.ts'
import { type Alternate, createAlternates } from './alternates.ts'
import { bytesOf } from './content.ts'

export interface DocumentedOptions {
  /** Globs over the documents whose front matter is read. Listing them costs one small read each, once for each version. */
  readonly frontMatter?: readonly string[]
  /** Globs over the Markdown documents whose first heading is their title, where they have none yet. It costs the same. */
  readonly headings?: readonly string[]
  /**
   * The languages that documents are told apart by, as they stand in paths. Default `ja` and `en`; with none, no document
   * names another. That is how it has to be where access rules hide some of them: nothing else here knows the rules.
   */
  readonly languages?: readonly string[]
}

/** The key of the {@link Alternate}s of a document in `_meta`. */
export const alternatesKey = 'dev.hikidashi/alternates'

const markdown = /\.(?:md|mdx|markdown)$/i

/**
 * Lets documents speak for themselves: the front matter of those that `frontMatter` matches gives title, description,
 * priority and audience, before any rule does; a first heading gives a title to what has none; and what is read names the same
 * document in other languages in `meta`. A priority out of front matter is capped ({@link claimedPriority}), and does not lower
 * the priority 1 of a rule.
 *
 * @throws ResourceError `invalid` for a malformed glob.
 */
export function documented(provider: Provider, options: DocumentedOptions = {}): Provider {
  const { frontMatter = [], headings = [] } = options
  const hasFrontMatter = compileGlobs(frontMatter)
  const hasHeading = compileGlobs(headings)
  const languages = (options.languages ?? ['ja', 'en']).map((language) => language.toLowerCase())
  const known = createRecent<FrontMatter>(20_000)

  /** Reads the front matter and the first heading at the beginning of a document. */
  const readStart = async ({ path, title }: Entry, context: Context): Promise<FrontMatter> => {
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
    if (key !== undefined) known.set(key, found)
    return { ...entry, ...found, ...priorityOf(entry.priority, found.priority) }
  }

  const { stat } = provider
  const alternatesOf = stat === undefined ? undefined : createAlternates(stat, languages)
  const entries: Pick<Provider, 'list' | 'stat'> = {
    list: async function* (query, context) {
      for await (const entry of provider.list(query, context)) yield await describe(entry, context)
    },
    ...(stat === undefined ? {} : { stat: async (path, context) => describe(await stat(path, context), context) }),
  }

  return {
    ...provider,
    // When neither front matter nor headings are read, listings are passed through at no cost.
    ...(frontMatter.length + headings.length === 0 ? {} : entries),
    read: async (request, context) => {
      // A part is read for the sake of something else, which asks for the whole too.
      if (request.range !== undefined || context.bare === true) return provider.read(request, context)
      const contents = await provider.read(request, context)
      const alternates = (await alternatesOf?.(request.path, context)) ?? []
      return alternates.length === 0 ? contents : contents.map((content) => withAlternates(content, alternates))
    },
  }
}

/** Contents neither require themselves, nor take back what the operator requires. */
function priorityOf(ruled: number | undefined, claimed: number | undefined): Pick<Entry, 'priority'> {
  if (claimed === undefined) return {}
  return { priority: ruled === requiredPriority ? ruled : claimedPriority(claimed) }
}

function withAlternates(content: Content, alternates: readonly Alternate[]): Content {
  return content.path === undefined ? { ...content, meta: { ...content.meta, [alternatesKey]: alternates } } : content
}
