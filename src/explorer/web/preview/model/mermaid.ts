import { renderMermaidSVG } from 'beautiful-mermaid'

/** Maximum length of a diagram that is drawn, in characters and in lines. */
const [maxDiagramLength, maxDiagramLines] = [20_000, 500]
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

/** Rewrites a diagram for the library. `undefined`: the library would draw only a part of it. */
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

/** The brackets around the name of a node; longer brackets come first. */
const shapes: readonly (readonly [string, string])[] = [
  ...[['(((', ')))'] as const, ['([', '])'] as const, ['((', '))'] as const, ['[[', ']]'] as const],
  ...[['[(', ')]'] as const, ['[/', '\\]'] as const, ['[\\', '/]'] as const, ['{{', '}}'] as const],
  ...[['[', ']'] as const, ['(', ')'] as const, ['{', '}'] as const, ['>', ']'] as const],
]

interface FlowNode {
  readonly id: string
  readonly style: string
}

/** A line of nodes with arrows between them. */
interface Statement {
  readonly groups: readonly (readonly FlowNode[])[]
  readonly arrows: readonly string[]
}

interface Block {
  /** The line that opens the subgraph; empty for the diagram itself. */
  readonly opening: string
  readonly lines: (Statement | string)[]
  readonly blocks: Block[]
}

/**
 * Rewrites a flowchart in the syntax that the library supports: spaces around arrows, ASCII ids, subgraphs before the nodes that they
 * share, and the label of a node where its id first occurs.
 *
 * @returns `undefined` if a line is not supported, because the library would silently leave it out.
 */
export function plainFlowchart(source: string): string | undefined {
  const [header = '', ...lines] = source
    .split('\n')
    .flatMap((line) => line.split(/;(?=(?:[^"]*"[^"]*")*[^"]*$)/))
    .map((line) => line.trim())
    .filter((line) => line !== '')
  if (!/^(?:flowchart|graph)(?:\s+(?:TD|TB|LR|RL|BT))?$/i.test(header)) return undefined
  const names = new Map<string, string>()
  const root = blocksOf(lines, names)
  if (root === undefined) return undefined
  return [
    /\s/.test(header) ? header : `${header} TD`,
    ...written(root, names, { known: new Map(), named: new Set() }),
  ].join('\n')
}

function blocksOf(lines: readonly string[], names: Map<string, string>): Block | undefined {
  const root: Block = { opening: '', lines: [], blocks: [] }
  const open = [root]
  const titles = new Set<string>()
  for (const line of lines) {
    const inner = open.at(-1) ?? root
    const [, title] = /^subgraph\s+(.+)$/.exec(line) ?? []
    if (title !== undefined) {
      titles.add(/^[\p{L}\p{N}_-]+/u.exec(title)?.[0] ?? title)
      const block: Block = { opening: openingOf(title, titles.size), lines: [], blocks: [] }
      inner.blocks.push(block)
      open.push(block)
    } else if (line === 'end') {
      if (open.length === 1) return undefined
      open.pop()
    } else if (/^direction\s+(?:TD|TB|LR|RL|BT)$/i.test(line)) inner.lines.push(line)
    else if (/^(?:classDef|class|style)\s+[\w, -]+\s+\S/.test(line)) root.lines.push(line)
    else if (!/^(?:click|linkStyle)\s/.test(line)) {
      const statement = statementOf(line, names)
      if (statement === undefined) return undefined
      inner.lines.push(statement)
    }
  }
  // The library would draw an arrow to a subgraph as an arrow to another node with the same name.
  const mentioned = [...names.keys()]
  return open.length === 1 && mentioned.every((id) => !titles.has(id)) ? root : undefined
}

function openingOf(title: string, count: number): string {
  const [, label] = /^[\p{L}\p{N}_-]+\s*\[(.+)\]$/u.exec(title) ?? []
  return `subgraph group${count} [${(label ?? title).replace(/^"(.*)"$/, '$1').replace(/[[\]]/g, ' ')}]`
}

function statementOf(line: string, names: Map<string, string>): Statement | undefined {
  const groups: (readonly FlowNode[])[] = []
  const arrows: string[] = []
  const reader = { text: line, at: 0 }
  for (;;) {
    const group = [nodeAt(reader, names)]
    while (taken(reader, /\s*&\s*/y) !== undefined) group.push(nodeAt(reader, names))
    const nodes = group.filter((node) => node !== undefined)
    if (nodes.length < group.length) return undefined
    groups.push(nodes)
    if (taken(reader, /\s*$/y) !== undefined) return { groups, arrows }
    const arrow = arrowAt(reader)
    if (arrow === undefined) return undefined
    arrows.push(arrow)
  }
}

interface Reader {
  readonly text: string
  at: number
}

/** Returns the match of a sticky pattern at the current position. */
function taken(reader: Reader, pattern: RegExp): RegExpExecArray | undefined {
  pattern.lastIndex = reader.at
  const match = pattern.exec(reader.text) ?? undefined
  if (match !== undefined) reader.at += match[0].length
  return match
}

function nodeAt(reader: Reader, names: Map<string, string>): FlowNode | undefined {
  const [id] = taken(reader, /[\p{L}\p{N}_]+(?:[-.](?=[\p{L}\p{N}_])[\p{L}\p{N}_]+)*/uy) ?? []
  if (id === undefined) return undefined
  const shape = shapes.find(([opening]) => reader.text.startsWith(opening, reader.at))
  if (shape !== undefined) {
    const [opening, closing] = shape
    const begin = reader.at + opening.length
    const isQuoted = reader.text[begin] === '"'
    const ending = isQuoted ? `"${closing}` : closing
    const end = reader.text.indexOf(ending, begin + 1)
    if (end === -1) return undefined
    const label = reader.text.slice(begin, end + (isQuoted ? 1 : 0))
    names.set(id, `${opening}${label}${closing}`)
    reader.at = end + ending.length
  } else if (!names.has(id)) names.set(id, '')
  const [, style] = taken(reader, /:::([\w-]+)/y) ?? []
  return { id, style: style === undefined ? '' : `:::${style}` }
}

function arrowAt(reader: Reader): string | undefined {
  taken(reader, /\s*/y)
  const start = taken(reader, /</y) === undefined ? '' : '<'
  const [arrow] = taken(reader, /-{2,}>|-{3,}|={2,}>|={3,}|-\.+->?/y) ?? []
  if (arrow !== undefined) {
    const [, label = ''] = taken(reader, /\s*\|([^|]*)\|/y) ?? []
    if (taken(reader, /[xo](?=\s|$)/y) !== undefined) return undefined
    taken(reader, /\s*/y)
    return `${start}${plainArrow(arrow)}${label === '' ? '' : `|${label}|`}`
  }
  const [, label, ending] = taken(reader, /(?:--|==|-\.)\s*([^|<>]+?)\s*(-{2,}>|-{3,}|={2,}>|={3,}|\.+->?)\s*/y) ?? []
  if (label === undefined || ending === undefined) return undefined
  return `${start}${plainArrow(ending.startsWith('.') ? `-${ending}` : ending)}|${label}|`
}

/** Returns an arrow in the only length that the library supports. */
function plainArrow(arrow: string): string {
  if (arrow.startsWith('=')) return arrow.endsWith('>') ? '==>' : '==='
  if (arrow.includes('.')) return arrow.endsWith('>') ? '-.->' : '-.-'
  return arrow.endsWith('>') ? '-->' : '---'
}

interface Ids {
  readonly known: Map<string, string>
  readonly named: Set<string>
}

function written(block: Block, names: ReadonlyMap<string, string>, ids: Ids): readonly string[] {
  const inner = block.blocks.flatMap((one) => written(one, names, ids))
  const own = block.lines.map((line) => {
    if (typeof line === 'string') return line
    const groups = line.groups.map((group) => group.map((node) => writtenNode(node, names, ids)).join(' & '))
    return groups.map((group, index) => `${group} ${line.arrows[index] ?? ''}`.trimEnd()).join(' ')
  })
  return block.opening === '' ? [...inner, ...own] : [block.opening, ...inner, ...own, 'end']
}

function writtenNode({ id, style }: FlowNode, names: ReadonlyMap<string, string>, ids: Ids): string {
  const known = ids.known.get(id) ?? (/^\w[\w-]*$/.test(id) ? id : `node${ids.known.size}_`)
  ids.known.set(id, known)
  const name = names.get(id) || (known === id ? '' : `["${id}"]`)
  if (ids.named.has(id)) return `${known}${style}`
  ids.named.add(id)
  return `${known}${name}${style}`
}
