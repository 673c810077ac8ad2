import type { Span } from '../core/kit/sorted.ts'
import { indentOf, linesFrom, secretValues } from './values.ts'

/** Maximum length of the values of one Secret, in characters. */
const maxSecret = 1024 * 1024

/** Finds the values below `data` and `stringData` of Kubernetes Secrets, in YAML or JSON. */
export function findKubernetesSecrets(text: string): readonly Span[] {
  if (!text.includes(':')) return []
  if (!/["']?kind["']?\s{0,4}:\s{0,4}["']?Secret(?:List)?["']?\s*(?:[,}\r\n#]|$)/.test(text)) return []
  const spans: Span[] = []
  let from = 0
  for (const document of text.split(/^(?=---)/m)) {
    if (/kind["']?\s{0,4}:\s{0,4}["']?Secret/.test(document))
      spans.push(...valuesIn(text, from, from + document.length))
    from += document.length
  }
  return spans
}

function valuesIn(text: string, from: number, to: number): readonly Span[] {
  const hits: Span[] = []
  const heads = text
    .slice(from, to)
    .matchAll(
      /^([ \t]*(?:-[ \t]+)?)["']?(?:data|stringData)["']?[ \t]*:[ \t]*(\{)?|["'](?:data|stringData)["']\s*:\s*(\{)/gm,
    )
  let until = 0
  for (const head of heads) {
    const at = from + head.index + head[0].length
    if (at < until) continue
    const braces = head[2] ?? head[3]
    const spans = braces === undefined ? indented(text, at, to, head[1]?.length ?? 0) : inBraces(text, at, to)
    hits.push(...spans)
    until = spans.at(-1)?.end ?? at
  }
  return hits
}

function indented(text: string, from: number, to: number, indent: number): readonly Span[] {
  const spans: Span[] = []
  const body = text.indexOf('\n', from) + 1 || text.length
  for (const { 0: line, index: at } of linesFrom(text, body, Math.min(to, from + maxSecret))) {
    const own = indentOf(line)
    if (line.trim() !== '' && own <= indent) break
    const name = /^[ \t]*(?:"[^"]*"|'[^']*'|[^\s#:"'][^:]*?)[ \t]*:(?=\s|$)/.exec(line.slice(0, 1024))?.[0]
    const value = { kind: 'strong', style: 'config', first: true, indent: own, quotedOnly: false } as const
    if (name !== undefined)
      for (const span of secretValues(text, { ...value, from: at + name.length })) spans.push({ ...span, key: at })
  }
  return spans
}

/** Returns the values after a colon, up to the next closing brace. */
function inBraces(text: string, from: number, to: number): readonly Span[] {
  const stop = text.slice(from, Math.min(to, from + maxSecret)).indexOf('}')
  const inside = text.slice(from, stop === -1 ? to : from + stop)
  return Array.from(inside.matchAll(/:\s*(?:"((?:[^"\\]|\\.)*)"|'([^']*)'|([^\s,"'{}]+))/g), (match) => {
    const value = match[1] ?? match[2] ?? match[3] ?? ''
    const end = from + match.index + match[0].length - (match[3] === undefined ? 1 : 0)
    return { start: end - value.length, end, key: from + match.index }
  })
}
