import { createScanner, getNodeValue, type Node, type ParseError, parseTree, printParseErrorCode } from 'jsonc-parser'
import { eolOf, formatError, headOf, indentAt, indented, type Json, type Path, type SettingsEditor } from './types.ts'

/** Edits JSON with comments and trailing commas. An edit changes only commas and the lines of its value. */
export const json: SettingsEditor = {
  parse: (text) => {
    const root = rootOf(text)
    return root === undefined ? undefined : (getNodeValue(root) as unknown)
  },
  set: (text, path, value) => {
    const root = rootOf(text)
    if (root === undefined) return `${headOf(text)}${render(nested(path, value), '  ', '', eolOf(text))}${eolOf(text)}`
    const { node, rest } = walk(text, root, path)
    const style = styleOf(text, root)
    const [key, ...inner] = rest
    if (key === undefined) {
      const written = style.compact
        ? JSON.stringify(value)
        : render(value, style.unit, indentAt(text, node.offset), style.eol)
      return text.slice(0, node.offset) + written + text.slice(endOf(node))
    }
    const name = typeof key === 'number' ? '' : `${JSON.stringify(key)}: `
    return inserted(text, node, style, (indent) => {
      const whole = nested(inner, value)
      return name + (indent === undefined ? JSON.stringify(whole) : render(whole, style.unit, indent, style.eol))
    })
  },
  remove: (text, path) => {
    const root = rootOf(text)
    if (root === undefined) return text
    const { node: found, rest } = walk(text, root, path)
    const child = found.parent?.type === 'property' ? found.parent : found
    const siblings = child.parent?.children ?? []
    if (rest.length > 0 || child.parent === undefined) return text
    return without(text, child.parent, siblings.indexOf(child))
  },
  show: (path, value) => `${JSON.stringify(nested(path, value), undefined, 2)}\n`,
}

/** Whether a text has a comment or a trailing comma, which a strict reader refuses. */
export function strayIn(
  text: string,
  refuses: { readonly comments: boolean; readonly trailingCommas: boolean },
): boolean {
  const errors: ParseError[] = []
  parseTree(text, errors, { disallowComments: refuses.comments, allowTrailingComma: !refuses.trailingCommas })
  return errors.length > 0
}

interface JsonStyle {
  readonly eol: string
  readonly unit: string
  /** Whether the whole text is one line. */
  readonly compact: boolean
}

const endOf = (node: Node) => node.offset + node.length

function rootOf(text: string): Node | undefined {
  const errors: ParseError[] = []
  const root = parseTree(text, errors, { allowTrailingComma: true, allowEmptyContent: true })
  const [error] = errors
  if (error !== undefined)
    throw formatError(text, error.offset, `this is not JSON (${printParseErrorCode(error.error)}). Fix it first.`)
  if (root !== undefined && root.type !== 'object') throw formatError(text, root.offset, 'this is not an object.')
  return root
}

/** Follows a path of keys as far as it exists. */
function walk(text: string, root: Node, path: Path): { readonly node: Node; readonly rest: Path } {
  let node = root
  for (const [depth, key] of path.entries()) {
    const [expected, children] = [typeof key === 'number' ? 'array' : 'object', node.children ?? []]
    if (node.type !== expected) throw formatError(text, node.offset, `this is not an ${expected}, and is left alone.`)
    const named = children.filter((child) => child.children?.[0]?.value === key)
    if (named.length > 1) throw formatError(text, named[1]?.offset, `the key ${JSON.stringify(key)} occurs twice.`)
    const next = typeof key === 'number' ? children[key] : named[0]?.children?.[1]
    if (next === undefined) return { node, rest: path.slice(depth) }
    node = next
  }
  return { node, rest: [] }
}

function nested(path: Path, value: Json): Json {
  return path.reduceRight<Json>((inner, key) => (typeof key === 'number' ? [inner] : { [key]: inner }), value)
}

function render(value: Json, unit: string, indent: string, eol: string): string {
  return indented(JSON.stringify(value, undefined, unit), indent, eol)
}

function styleOf(text: string, root: Node): JsonStyle {
  const whole = text.slice(root.offset, endOf(root))
  const first = root.children?.[0]
  const unit = first === undefined ? '' : indentAt(text, first.offset)
  const owned = first !== undefined && text.slice(root.offset, first.offset).includes('\n')
  return {
    eol: eolOf(text),
    unit: owned && unit !== '' ? unit : '  ',
    compact: first !== undefined && !whole.includes('\n'),
  }
}

/** Token kinds of the scanner. The library has them only as compile-time constants. */
const [commaToken, endOfText] = [5, 17]

/** Returns the offset of the first comma between two offsets that is not in a comment. */
function commaIn(text: string, from: number, to: number): number | undefined {
  const scanner = createScanner(text, false)
  scanner.setPosition(from)
  while (scanner.scan() !== endOfText && scanner.getTokenOffset() < to)
    if (scanner.getToken() === commaToken) return scanner.getTokenOffset()
  return undefined
}

/**
 * Appends a child to an object or array.
 *
 * @param write Gets the indent of the child's line; undefined for a child on the same line.
 */
function inserted(text: string, parent: Node, style: JsonStyle, write: (indent: string | undefined) => string): string {
  const close = endOf(parent) - 1
  const last = parent.children?.at(-1)
  if (last === undefined) {
    const end = parent.offset + 1 + text.slice(parent.offset + 1, close).trimEnd().length
    if (style.compact) return text.slice(0, end) + write(undefined) + text.slice(end)
    const outer = indentAt(text, parent.offset)
    const tail = text.slice(end, close)
    const child = style.eol + outer + style.unit + write(outer + style.unit)
    return text.slice(0, end) + child + (tail.includes('\n') ? tail : style.eol + outer) + text.slice(close)
  }
  const comma = commaIn(text, endOf(last), close)
  const end = endOf(last) + text.slice(endOf(last), close).trimEnd().length
  const isBlock = text.slice(parent.offset, last.offset).includes('\n')
  // The child cannot follow a line comment on the same line.
  const isCommented = text.slice(endOf(last), end).includes('//')
  const own = isBlock ? indentAt(text, last.offset) : indentAt(text, parent.offset) + style.unit
  const indent = isBlock || isCommented ? own : undefined
  const child = indent === undefined ? ` ${write(undefined)}` : style.eol + indent + write(indent)
  const between = (comma === undefined ? ',' : '') + text.slice(endOf(last), end)
  return text.slice(0, endOf(last)) + between + child + (comma === undefined ? '' : ',') + text.slice(end)
}

/** Removes a child, with one comma and the white space before it. Comments stay. */
function without(text: string, parent: Node, index: number): string {
  const [before, child, next] = [parent.children?.[index - 1], parent.children?.[index], parent.children?.[index + 1]]
  if (child === undefined) return text
  const close = endOf(parent) - 1
  const comma = commaIn(text, endOf(child), next?.offset ?? close)
  const rest = comma === undefined ? text.slice(endOf(child)) : text.slice(endOf(child), comma) + text.slice(comma + 1)
  const head = text.slice(0, child.offset)
  const blank = /\s*$/.exec(head)?.[0] ?? ''
  // The text after a line comment must stay on its own line.
  const joins = blank.includes('\n') && !/^[ \t]*\r?\n/.test(rest)
  const kept = joins ? head : head.slice(0, head.length - blank.length)
  const after = joins ? rest.replace(/^[ \t]+/, '') : rest
  if (comma !== undefined || before === undefined) return emptied(kept, after, parent)
  const dangling = commaIn(text, endOf(before), child.offset) ?? kept.length
  return kept.slice(0, dangling) + kept.slice(dangling + 1) + after
}

/** Joins the text around a removed child. An object or array that became empty is written `{}` or `[]`. */
function emptied(head: string, rest: string, parent: Node): string {
  const inner = /^\s*(?=[}\]])/.exec(rest)?.[0]
  const isEmpty = inner !== undefined && head.length === parent.offset + 1
  return head + (isEmpty ? rest.slice(inner.length) : rest)
}
