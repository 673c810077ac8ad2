import {
  applyEdits,
  createScanner,
  type FormattingOptions,
  findNodeAtLocation,
  getNodeValue,
  modify,
  type Node,
  type ParseError,
  parseTree,
  printParseErrorCode,
} from 'jsonc-parser'
import { leadingComments, lineEndOf, nestedValue, type SettingsEditor, settingsError } from './types.ts'

export const jsonEditor: SettingsEditor = {
  parse: (text) => {
    const root = rootOf(text)
    return root === undefined ? undefined : (getNodeValue(root) as unknown)
  },
  set: (text, path, value) => {
    const eol = lineEndOf(text)
    if (rootOf(text) === undefined)
      return `${leadingComments(text)}${JSON.stringify(nestedValue(path, value), undefined, 2).replaceAll('\n', eol)}${eol}`
    // Behind another member, the library would put a new key between that member and the comment behind it.
    const options = { formattingOptions: styleOf(text), getInsertionIndex: () => 0 }
    return applyEdits(text, modify(text, [...path], value, options))
  },
  remove: (text, path) => {
    const root = rootOf(text)
    const node = root === undefined ? undefined : findNodeAtLocation(root, [...path])
    const child = node?.parent?.type === 'property' ? node.parent : node
    return child?.parent === undefined ? text : without(text, child.parent, child)
  },
  show: (path, value) => `${JSON.stringify(nestedValue(path, value), undefined, 2)}\n`,
}

/** Whether a text has an extension of JSON that its reader refuses, or another syntax error. */
export function hasRefusedSyntax(
  text: string,
  refuses: { readonly comments: boolean; readonly trailingCommas: boolean },
): boolean {
  const errors: ParseError[] = []
  parseTree(text, errors, { disallowComments: refuses.comments, allowTrailingComma: !refuses.trailingCommas })
  return errors.length > 0
}

function rootOf(text: string): Node | undefined {
  const errors: ParseError[] = []
  const root = parseTree(text, errors, { allowTrailingComma: true, allowEmptyContent: true })
  const [error] = errors
  if (error !== undefined)
    throw settingsError(text, error.offset, `this is not JSON (${printParseErrorCode(error.error)}). Fix it first.`)
  if (root !== undefined && root.type !== 'object')
    throw settingsError(text, root.offset, 'this is not an object. Put the settings into { }.')
  return root
}

function styleOf(text: string): FormattingOptions {
  const indent = /^([ \t]+)"/m.exec(text)?.[1] ?? '  '
  return { insertSpaces: !indent.startsWith('\t'), tabSize: indent.length, eol: lineEndOf(text) }
}

const nodeEnd = (node: Node) => node.offset + node.length

/** Token kinds of the scanner. The library has them only as compile-time constants. */
const [commaToken, endOfText] = [5, 17]

function commaIn(text: string, from: number, to: number): number | undefined {
  const scanner = createScanner(text, false)
  scanner.setPosition(from)
  while (scanner.scan() !== endOfText && scanner.getTokenOffset() < to)
    if (scanner.getToken() === commaToken) return scanner.getTokenOffset()
  return undefined
}

/** The library would remove the comments beside the child too. */
function without(text: string, parent: Node, child: Node): string {
  const siblings = parent.children ?? []
  const index = siblings.indexOf(child)
  const [before, next] = [siblings[index - 1], siblings[index + 1]]
  const after = commaIn(text, nodeEnd(child), next?.offset ?? nodeEnd(parent))
  const comma = after ?? (before && commaIn(text, nodeEnd(before), child.offset))
  const commas = comma === undefined ? [] : [{ offset: comma, length: 1, content: '' }]
  const rest = applyEdits(text, [{ offset: child.offset, length: child.length, content: '' }, ...commas])
  const at = comma !== undefined && comma < child.offset ? child.offset - 1 : child.offset
  const [head, tail] = [rest.slice(0, at), rest.slice(at)]
  if (/[{[]\s*$/.test(head) && /^\s*[}\]]/.test(tail)) return head.trimEnd() + tail.trimStart()
  return /\n[ \t]*$/.test(head) && /^[ \t]*\r?\n/.test(tail)
    ? head.replace(/\r?\n[ \t]*$/, '') + tail.replace(/^[ \t]+/, '')
    : rest
}
