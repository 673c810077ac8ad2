import type { Token, Tokens } from 'marked'

/**
 * Maximum number of elements that a preview draws at once. With more, the browser takes seconds for the layout, and the page
 * blocks.
 */
export const maxNodes = 20_000
export const maxDepth = 100
export const maxColumns = 300
/** Maximum length of a TeX formula that is drawn, in characters. */
export const maxFormulaLength = 5000

/** The remaining budget, and whether something was left out. */
interface Budget {
  nodes: number
  isCut: boolean
}

function take(budget: Budget, nodes: number): boolean {
  const isEnough = nodes <= budget.nodes
  budget.nodes -= isEnough ? nodes : budget.nodes
  if (!isEnough) budget.isCut = true
  return isEnough
}

/** Returns the beginning of a parsed Markdown document within the limits, and whether something was left out. */
export function truncateTokens(tokens: readonly Token[]): { readonly tokens: Token[]; readonly isCut: boolean } {
  const budget: Budget = { nodes: maxNodes, isCut: false }
  return { tokens: boundedList(tokens, 1, budget), isCut: budget.isCut }
}

function boundedList(tokens: readonly Token[], depth: number, budget: Budget): Token[] {
  const keptTokens: Token[] = []
  for (const token of tokens) {
    const own = token.type === 'html' ? countTags(token.raw) : 1
    if (depth > maxDepth || !take(budget, own)) {
      budget.isCut = true
      break
    }
    keptTokens.push(boundedToken(token, depth, budget))
  }
  return keptTokens
}

function boundedToken(token: Token, depth: number, budget: Budget): Token {
  if (token.type === 'table') return boundedTable(token as Tokens.Table, depth, budget)
  if (token.type === 'list') {
    const list = token as Tokens.List
    return { ...list, items: boundedList(list.items, depth + 1, budget) as Tokens.ListItem[] }
  }
  if (!('tokens' in token) || token.tokens === undefined) return token
  return { ...token, tokens: boundedList(token.tokens, depth + 1, budget) }
}

function boundedTable(table: Tokens.Table, depth: number, budget: Budget): Tokens.Table {
  if (table.header.length > maxColumns) budget.isCut = true
  const row = (cells: readonly Tokens.TableCell[]) =>
    cells.slice(0, maxColumns).map((cell) => ({ ...cell, tokens: boundedList(cell.tokens, depth + 1, budget) }))
  const width = Math.min(table.header.length, maxColumns) + 1
  take(budget, width)
  const header = row(table.header)
  const rows: Tokens.TableCell[][] = []
  for (const cells of table.rows) {
    if (!take(budget, width)) break
    rows.push(row(cells))
  }
  return { ...table, header, align: table.align.slice(0, maxColumns), rows }
}

export function countTags(html: string): number {
  let count = 0
  for (let at = html.indexOf('<'); at !== -1; at = html.indexOf('<', at + 1)) count++
  return count
}

/** Maximum number of open elements while a document is parsed, because the parsing time grows with the square of that number. */
const maxOpen = 1000
/** Elements without an end tag, or with an optional one. */
const unclosed =
  /^(?:area|base|body|br|col|colgroup|dd|dt|embed|head|hr|html|img|input|li|link|meta|option|p|rp|rt|source|tbody|td|tfoot|th|thead|tr|track|wbr)$/i

export function truncateNesting(html: string): string {
  let open = 0
  for (let at = html.indexOf('<'); at !== -1; at = html.indexOf('<', at + 1)) {
    const [, end, name] = /^<(\/?)([a-z][a-z0-9-]*)/i.exec(html.slice(at, at + 40)) ?? []
    if (name === undefined || unclosed.test(name)) continue
    open = Math.max(0, open + (end === '/' ? -1 : 1))
    if (open > maxOpen) return html.slice(0, at)
  }
  return html
}

/** Removes elements of a parsed document beyond the limits of number, depth and columns. Returns whether it removed any. */
export function prune(root: Element): boolean {
  let [left, isCut] = [maxNodes, false]
  // An explicit stack, because a document may be nested deeper than the call stack allows.
  const pending: { readonly element: Element; readonly depth: number }[] = [{ element: root, depth: 0 }]
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    const { element, depth } = next
    const most = element.nodeName === 'TR' ? maxColumns : Number.POSITIVE_INFINITY
    const children = [...element.children]
    const elements = depth >= maxDepth ? [] : children.slice(0, Math.min(most, Math.max(0, left)))
    left -= elements.length
    if (elements.length < children.length) isCut = true
    for (const child of children.slice(elements.length)) child.remove()
    for (const child of elements.reverse()) pending.push({ element: child, depth: depth + 1 })
  }
  return isCut
}

/**
 * Shortens the arrays of a parsed JSON value to `maxNodes / 4` items in all, and replaces objects and arrays deeper than `maxDepth` by
 * `null`.
 */
export function truncateValue(value: unknown): { readonly value: unknown; readonly isCut: boolean } {
  const budget: Budget = { nodes: maxNodes / 4, isCut: false }
  return { value: truncateToBudget(value, 1, budget), isCut: budget.isCut }
}

function truncateToBudget(value: unknown, depth: number, budget: Budget): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (depth > maxDepth) {
    budget.isCut = true
    return null
  }
  if (Array.isArray(value)) {
    const items: unknown[] = []
    for (const item of value) {
      if (!take(budget, 1)) break
      items.push(truncateToBudget(item, depth + 1, budget))
    }
    return items
  }
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [key, truncateToBudget(inner, depth + 1, budget)]),
  )
}

/** The HTML of a Markdown document, up to the limits of a page. */
export interface MarkdownHtml {
  readonly html: string
  /** Whether parts of the document were left out. */
  readonly isCut: boolean
}

/** Returns the first 100,000 characters of a text as written, for a text that cannot be laid out. */
export function plainHtml(text: string): MarkdownHtml {
  return { html: `<pre>${escapeHtml(text.slice(0, 100_000))}</pre>`, isCut: true }
}

export function escapeHtml(text: string): string {
  return text.replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`)
}
