import { renderMermaidSVG } from 'beautiful-mermaid'
import { plainFlowchart } from './mermaid-flowchart.ts'

/** Maximum length of a diagram that is drawn, in characters and in lines. */
const maxDiagramLength = 20_000
const maxDiagramLines = 500
/** Maximum size of a drawing that is shown, in characters. */
const maxDrawingLength = 1_000_000

/** A diagram in the colours of both themes, or the reason why there is none. */
export type Drawn =
  | { readonly light: string; readonly dark: string }
  | { readonly reason: 'kind'; readonly kind: string }
  | { readonly reason: 'large' | 'broken' }

const kinds = ['flowchart', 'graph', 'stateDiagram', 'sequenceDiagram', 'classDiagram', 'erDiagram']

const shared = { font: 'system-ui', padding: 16, transparent: true } as const
/** The colours of the page, as in style/theme.css. */
const light = {
  ...{ bg: '#ffffff', fg: '#1b1f27', line: '#535b69', accent: '#0b5c8f', muted: '#535b69' },
  ...{ surface: '#f6f8fa', border: '#9aa3b2' },
}
const dark = {
  ...{ bg: '#16181d', fg: '#e8eaf0', line: '#a7afbd', accent: '#7cc4f5', muted: '#a7afbd' },
  ...{ surface: '#1c1f26', border: '#5d6675' },
}

/** Draws a Mermaid diagram as SVG. Show the SVG only as an image, because it contains text from untrusted documents. */
export function drawnMermaid(text: string): Drawn {
  const source = bareSource(text)
  const named = /^[\w-]+/.exec(source)?.[0] ?? ''
  const kind = named.replace(/-v2$/, '')
  if (!kinds.includes(kind)) return { reason: 'kind', kind: named.slice(0, 40) }
  if (source.length > maxDiagramLength || source.split('\n').length > maxDiagramLines) return { reason: 'large' }
  try {
    const plain = plainSource(kind, source)
    if (plain === undefined) return { reason: 'broken' }
    const drawings = [light, dark].map((colours) => alone(renderMermaidSVG(plain, { ...shared, ...colours })))
    const [byDay = '', byNight = ''] = drawings
    if (byDay.length > maxDrawingLength) return { reason: 'large' }
    return { light: byDay, dark: byNight }
  } catch {
    return { reason: 'broken' }
  }
}

/** Removes the text that only Mermaid itself reads: comments, and settings before the diagram. */
function bareSource(text: string): string {
  return text
    .slice(0, maxDiagramLength + 5000)
    .replace(/^\s*---\r?\n[\s\S]{0,4000}?\r?\n---[ \t]*\r?\n/, '')
    .replace(/^[ \t]*%%.*$/gm, '')
    .trim()
}

/** @returns `undefined` if the library would draw only a part of the diagram. */
function plainSource(kind: string, source: string): string | undefined {
  if (kind === 'flowchart' || kind === 'graph') return plainFlowchart(source)
  const [header = '', ...lines] = source
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
  return /\s/.test(header) || !isDrawnWhole(kind, lines) ? undefined : [header, ...lines].join('\n')
}

/** Removes addresses from a drawing: the library loads a font from another server, and colours of a diagram may contain URLs. */
function alone(svg: string): string {
  return svg.replace(/@import[^;]*;/g, '').replace(/url\((?!#)[^)]*\)/gi, 'none')
}

/**
 * For each kind of diagram, the lines that the library draws correctly. The library silently leaves out other lines, so a diagram
 * with any other line is shown as its source.
 */
const word = '[\\p{L}\\p{N}_.-]+'
const state = `(?:\\[\\*\\]|[\\w\\p{L}-]+)`

const known: Readonly<Record<string, readonly RegExp[]>> = {
  sequenceDiagram: [
    new RegExp(`^(?:participant|actor)\\s+${word}(?:\\s+as\\s+.+)?$`, 'u'),
    new RegExp(`^${word}\\s*(?:->>|-->>|->|-->)\\s*[+-]?${word}\\s*:\\s*.+$`, 'u'),
    /^note\s+(?:left of|right of|over)\s+[^:]+:\s*.+$/i,
    /^(?:loop|alt|opt|par|critical|break|else|and)(?:\s.*)?$/,
    /^end$/,
    /^(?:activate|deactivate)\s+\S+$/,
  ],
  stateDiagram: [
    new RegExp(`^${state}\\s*-->\\s*${state}(?:\\s*:\\s*.+)?$`, 'u'),
    /^state\s+(?:"[^"]+"\s+as\s+)?[\w\p{L}]+\s*\{$/u,
    /^state\s+"[^"]+"\s+as\s+[\w\p{L}]+$/u,
    /^[\w\p{L}-]+\s*:\s*.+$/u,
    /^direction\s+(?:TD|TB|LR|RL|BT)$/i,
    /^\}$/,
  ],
  classDiagram: [
    /^class\s+[\w\p{L}]+\s*\{?$/u,
    /^\}$/,
    /^[\w\p{L}]+\s*:\s*.+$/u,
    /^[\w\p{L}]+\s+(?:"[^"]*"\s+)?(?:<\|--|--\|>|\*--|--\*|o--|--o|-->|<--|--|\.\.>|<\.\.|\.\.\|>|<\|\.\.)\s+(?:"[^"]*"\s+)?[\w\p{L}]+(?:\s*:\s*.+)?$/u,
    /^<<\w+>>$/,
    // The members of a class.
    /^[+\-#~]?[\w\p{L}].*$/u,
  ],
  erDiagram: [
    /^\S+\s+[|o}{]{2}(?:--|\.\.)[|o}{]{2}\s+\S+\s*:\s*.+$/,
    /^\S+\s*\{$/,
    /^\}$/,
    /^\S+\s+\S+(?:\s+(?:PK|FK|UK)(?:\s*,\s*(?:PK|FK|UK))*)?(?:\s+"[^"]*")?$/,
  ],
}

/** Whether the library draws each line of a diagram. */
function isDrawnWhole(kind: string, lines: readonly string[]): boolean {
  const patterns = known[kind] ?? []
  let depth = 0
  for (const line of lines) {
    if (!patterns.some((pattern) => pattern.test(line))) return false
    // A line is a member only within a class or an entity. Elsewhere the same line has another meaning.
    const isMember = kind === 'classDiagram' && patterns.slice(0, -2).every((pattern) => !pattern.test(line))
    if (isMember && depth === 0) return false
    if (line.endsWith('{')) depth++
    if (line === '}') depth--
    if (depth < 0) return false
  }
  return depth === 0
}
