import { type Span, type Style, span } from './cells.ts'

/** How a line is coloured. `fenced`: a line of code in Markdown. */
export type Language = 'plain' | 'markdown' | 'fenced' | 'json' | 'hex' | 'note' | 'names'

/** A line with its colours: light, line by line, in linear time. It changes no character. */
export function highlight(text: string, language: Language): readonly Span[] {
  switch (language) {
    case 'plain':
      return [span(text)]
    case 'markdown':
      return markdown(text)
    case 'fenced':
      return [span(text, 'code')]
    case 'json':
      return split(text, jsonParts, jsonStyle)
    case 'hex':
      return [span(text.slice(0, 10), 'dim'), span(text.slice(10))]
    case 'note':
      return [span(text, 'dim')]
    case 'names':
      return [span(text, text.endsWith('/') ? 'folder' : 'plain')]
  }
}

const jsonParts = /"(?:[^"\\]|\\.)*"(\s*:)?|-?\d[\d.eE+-]*|\b(?:true|false|null)\b/g

function jsonStyle(part: string): Style {
  if (part.endsWith(':')) return 'key'
  return part.startsWith('"') ? 'string' : 'number'
}

const inline = /`[^`]+`|\*\*[^*]+\*\*|\[[^\][]*\]\([^()\s]*\)/g

function markdown(text: string): readonly Span[] {
  if (/^ {0,3}#{1,6}(?:\s|$)/.test(text)) return [span(text, 'heading')]
  const lead = /^\s*(?:[-*+]|\d{1,9}[.)])\s|^\s*>[\s>]*|^\s*\|/.exec(text)?.[0] ?? ''
  return [
    ...(lead === '' ? [] : [span(lead, 'key')]),
    ...split(text.slice(lead.length), inline, (part) =>
      part.startsWith('`') ? 'code' : part.startsWith('*') ? 'bold' : 'string',
    ),
  ]
}

function split(text: string, parts: RegExp, styleOf: (part: string) => Style): readonly Span[] {
  const spans: Span[] = []
  let at = 0
  for (const match of text.matchAll(parts)) {
    if (match.index > at) spans.push(span(text.slice(at, match.index)))
    spans.push(span(match[0], styleOf(match[0])))
    at = match.index + match[0].length
  }
  if (at < text.length) spans.push(span(text.slice(at)))
  return spans
}

/** The language of a resource, by its type or the end of its name. */
export function languageOf(uri: string, mimeType = ''): Language {
  const [path = ''] = uri.split(/[?#]/)
  if (/^text\/markdown/.test(mimeType) || /\.(?:md|mdx|markdown)$/i.test(path)) return 'markdown'
  if (/^application\/(?:[\w.-]+\+)?json/.test(mimeType) || /\.(?:json|jsonl|ndjson|geojson)$/i.test(path)) return 'json'
  return 'plain'
}

/** Which lines of Markdown are code between fences. */
export function createFences(): (line: string) => boolean {
  let fence: string | undefined
  return (line) => {
    const mark = /^ {0,3}(`{3,}|~{3,})/.exec(line)?.[1]
    if (fence === undefined) {
      fence = mark
      return mark !== undefined
    }
    if (mark?.startsWith(fence)) fence = undefined
    return true
  }
}
