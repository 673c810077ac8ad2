import { type Found, type FoundHit, piecesOf, rowsMimeType } from '../../core/found.ts'
import { defined } from '../../core/kit/defined.ts'
import { compileTemplate } from '../../core/template.ts'
import { hasTextForm } from '../../search/feed-document.ts'
import type { SearchHit } from '../../search/search-index.ts'

/** How a part of a document is asked for. */
const partTemplate = compileTemplate('{?as,lines}')

/** Kinds of document parts that a mount can return. */
export interface Parts {
  readonly lines: boolean
  readonly as: boolean
}

/**
 * A hit as it is answered. Its score is told beside that of the best hit that may be seen: alone it would tell how often the words
 * stand in what may not.
 */
export function formatHit(hit: SearchHit, best: number, { lines, as }: Parts, path: string): FoundHit {
  const { uri, mount, title, mimeType, heading, audience, priority, modified, link, revision, snippet } = hit
  const asText = as && hasTextForm(path, mimeType)
  const part = {
    ...(asText ? { as: 'text' } : {}),
    ...(lines && mimeType !== rowsMimeType ? { lines: `${hit.lines.start}-${hit.lines.end}` } : {}),
  }
  return {
    uri: uri + partTemplate.expand(part),
    document: uri,
    mount,
    ...defined({ title, mimeType, heading }),
    lines: hit.lines,
    score: best > 0 ? Math.round((hit.score / best) * 100) / 100 : 0,
    ...(modified === undefined ? {} : { modified: new Date(modified).toISOString() }),
    ...defined({ priority, audience, link, revision }),
    snippet,
  }
}

export function formatFound(found: Found): string {
  return `${JSON.stringify(found, undefined, 2)}\n`
}

/** An answer for a model or a person to read. Found text is quoted, because it is untrusted. */
export function formatMarkdown({ query, hits, next, total, notes, fallback }: Found): string {
  const many = total === undefined ? `the first ${hits.length}` : String(total)
  const lines = [
    `# Found for “${escapeMarkdown(query)}”: ${next === undefined && total === undefined ? hits.length : many}`,
    '',
    ...(fallback === undefined ? [] : [fallback, '']),
  ]
  for (const [index, hit] of hits.entries()) {
    const name = escapeMarkdown(hit.title ?? nameOf(hit.document))
    const under = hit.heading === undefined || hit.heading === hit.title ? '' : ` · ${escapeMarkdown(hit.heading)}`
    const source = hit.link === undefined ? '' : ` · [source](<${hit.link}>)`
    lines.push(`${index + 1}. [${name}](<${hit.uri}>)${under} (lines ${hit.lines.start}–${hit.lines.end})${source}`)
    const marked = piecesOf(hit.snippet).map(({ text, marked }) => (marked ? bold(text) : escapeMarkdown(text)))
    lines.push(
      ...marked
        .join('')
        .split(/\r\n|[\r\n\u2028\u2029]/)
        .map((line) => `   > ${line}`),
      '',
    )
  }
  if (hits.length === 0) lines.push('Nothing.', '')
  if (next !== undefined) lines.push(`There is more: after=${next}.`, '')
  lines.push(...notes.map((note) => `Note: ${note}`))
  return `${lines.join('\n').trimEnd()}\n`
}

function bold(text: string): string {
  const [, before = '', inner = '', behind = ''] = /^(\s*)(.*?)(\s*)$/s.exec(text) ?? []
  return inner === '' || /[\r\n]/.test(inner) ? escapeMarkdown(text) : `${before}**${escapeMarkdown(inner)}**${behind}`
}

/** Text in which nothing is Markdown. */
function escapeMarkdown(text: string): string {
  return text.replace(/[\\`*_[\]<>#|~]/g, (character) => `\\${character}`)
}

function nameOf(uri: string): string {
  const last = uri.slice(uri.lastIndexOf('/') + 1)
  try {
    return decodeURIComponent(last)
  } catch {
    return last
  }
}
