import { formatHttpUrl, type HttpUrl, originOf, resolveHttpUrl } from '../../core/http-url.ts'
import { isPath } from '../../core/path.ts'
import type { Description } from '../../core/provider.ts'

export type LinkedPage = Description & { readonly path: string }

const maxPages = 10_000

/** A link of the list: `- [title](url): description`. Its parts are bounded, so that no line takes long to match. */
const link = /^\s{0,8}[-*+]\s{1,8}\[([^\]\n]{1,500})\]\(<?([^)>\s]{1,2000})>?\)(?::?\s{1,8}(.{1,2000}))?/

/** Priority of the pages below the heading "Optional", which a short context may leave out (llmstxt.org). */
const optionalPriority = 0.2

/**
 * Returns the pages that an `llms.txt` names at or below a URL, each once. A link to elsewhere, or with a query, names no page.
 *
 * @param at URL of the list: links may be relative to it.
 */
export function parseLlmsTxt(text: string, at: HttpUrl, base: HttpUrl): readonly LinkedPage[] {
  const pages = new Map<string, LinkedPage>()
  let isOptional = false
  for (const line of text.split(/\r?\n/)) {
    const [, heading] = /^##\s+(.{1,200})$/.exec(line) ?? []
    if (heading !== undefined) isOptional = heading.trim().toLowerCase() === 'optional'
    const [, title = '', target = '', description] = link.exec(line) ?? []
    const path = target === '' ? undefined : linkPath(target, at, base)
    if (path === undefined || pages.has(path)) continue
    if (pages.size >= maxPages) break
    const more = description === undefined ? {} : { description: description.trim() }
    pages.set(path, { path, title: title.trim(), ...more, ...(isOptional ? { priority: optionalPriority } : {}) })
  }
  return [...pages.values()]
}

function linkPath(target: string, at: HttpUrl, base: HttpUrl): string | undefined {
  try {
    const url = resolveHttpUrl(at, target)
    const top = base.target.replace(/\/$/, '')
    const below = url.target.replace(/\/$/, '')
    if (originOf(url) !== originOf(base) || url.target.includes('?')) return undefined
    if (below !== top && !below.startsWith(`${top}/`)) return undefined
    const segments = below.slice(top.length + 1).split('/')
    const path = segments.map((segment) => decodeURIComponent(segment)).join('/')
    const isPlain = segments.length === path.split('/').length && isPath(path)
    return isPlain && formatHttpUrl(url) !== formatHttpUrl(at) ? path : undefined
  } catch {
    // The target is not a valid URL of a page.
    return undefined
  }
}
