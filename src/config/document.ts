import { type Node, type ParseError, parseTree, printParseErrorCode } from 'jsonc-parser'
import {
  type ConfigDocument,
  type ConfigProblem,
  type Finding,
  formatKey,
  type PathStep,
  type TextPosition,
} from './problem.ts'

/**
 * Parses JSON with comments and trailing commas.
 * @returns The value (of a document with faults, the part that could be parsed), the syntax faults and the duplicate
 * keys.
 */
export function parseDocument(file: string, text: string) {
  const source = text.replace(/^\ufeff/, '')
  const errors: ParseError[] = []
  const tree = parseTree(source, errors, { allowTrailingComma: true })
  const position = positions(source)
  const document: ConfigDocument = {
    file,
    value: tree === undefined ? undefined : toValue(tree),
    positionOf: (path, at) => position(tree === undefined ? 0 : offsetOf(tree, path, at)),
  }
  const problemAt = (offset: number, { path, ...rest }: Finding): ConfigProblem => ({
    file,
    ...position(offset),
    key: formatKey(path),
    ...rest,
  })
  const twice = { message: 'The key occurs twice.', fix: 'Remove one of the two, or merge them.' }
  return {
    document,
    faults: errors.map(({ error, offset }) =>
      problemAt(offset, { path: [], ...(syntaxFaults[printParseErrorCode(error)] ?? unknownFault) }),
    ),
    duplicates: Array.from(tree === undefined ? [] : duplicatesIn(tree, []), ({ node, path }) =>
      problemAt(node.offset, { path, ...twice }),
    ),
  }
}

const unknownFault = { message: 'This is not valid JSON.', fix: 'Correct the syntax at this position.' }
const syntaxFaults: Readonly<Record<string, { readonly message: string; readonly fix: string }>> = {
  InvalidSymbol: { message: 'This is not a JSON value.', fix: 'Put strings and keys in double quotes.' },
  InvalidNumberFormat: { message: 'This is not a JSON number.', fix: 'Write it as digits, such as 42 or 0.5.' },
  PropertyNameExpected: { message: 'A key is missing here.', fix: 'Write it in double quotes, such as "mounts".' },
  ValueExpected: { message: 'A value is missing here.', fix: 'Write one, or remove the key.' },
  ColonExpected: { message: 'A colon is missing between key and value.', fix: 'Put a colon here.' },
  CommaExpected: { message: 'A comma is missing here.', fix: 'Put a comma before this position.' },
  CloseBraceExpected: { message: 'An object is not closed.', fix: 'Put a } here.' },
  CloseBracketExpected: { message: 'An array is not closed.', fix: 'Put a ] here.' },
  EndOfFileExpected: { message: 'There is text after the end of the object.', fix: 'Remove it.' },
  UnexpectedEndOfComment: { message: 'A comment is not closed.', fix: 'Put */ at its end.' },
  UnexpectedEndOfString: { message: 'A string is not closed.', fix: 'Put a " at its end, on the same line.' },
  InvalidUnicode: {
    message: 'An escape sequence in a string is not valid.',
    fix: 'Write \\u and four hexadecimal digits.',
  },
  InvalidEscapeCharacter: {
    message: 'An escape sequence in a string is not valid.',
    fix: 'Write \\\\ for a backslash.',
  },
  InvalidCharacter: {
    message: 'A string contains a control character.',
    fix: 'Write it as an escape sequence, such as \\n or \\t.',
  },
}

/** Unlike `getNodeValue` of jsonc-parser, it keeps `__proto__` as an ordinary key, as JSON has it. */
function toValue(node: Node): unknown {
  if (node.type === 'array') return (node.children ?? []).map(toValue)
  if (node.type !== 'object') return node.value
  return Object.fromEntries(
    members(node).map(({ key, value }) => [key.value, value === undefined ? null : toValue(value)]),
  )
}

function members(object: Node): readonly { readonly key: Node; readonly value: Node | undefined }[] {
  return (object.children ?? []).flatMap(({ children: [key, value] = [] }) =>
    key === undefined ? [] : [{ key, value }],
  )
}

function* duplicatesIn(node: Node, path: readonly PathStep[]): Generator<{ node: Node; path: readonly PathStep[] }> {
  if (node.type === 'array')
    for (const [index, child] of (node.children ?? []).entries()) yield* duplicatesIn(child, [...path, index])
  if (node.type !== 'object') return
  const keys = new Set<string>()
  for (const { key, value } of members(node)) {
    const name = String(key.value)
    if (keys.has(name)) yield { node: key, path: [...path, name] }
    keys.add(name)
    if (value !== undefined) yield* duplicatesIn(value, [...path, name])
  }
}

/** Of duplicate keys, the last one applies. */
function offsetOf(tree: Node, path: readonly PathStep[], at: 'key' | 'value'): number {
  let member = { key: tree, value: tree }
  for (const step of path) {
    const next = typeof step === 'number' ? itemAt(member.value, step) : memberAt(member.value, step)
    // A missing member is reported at the key of its parent.
    if (next === undefined) return member.key.offset
    member = next
  }
  return member[at].offset
}

function itemAt(array: Node, index: number) {
  const item = array.type === 'array' ? array.children?.[index] : undefined
  return item === undefined ? undefined : { key: item, value: item }
}

function memberAt(object: Node, name: string) {
  const member = object.type === 'object' ? members(object).findLast(({ key }) => key.value === name) : undefined
  return member === undefined ? undefined : { key: member.key, value: member.value ?? member.key }
}

function positions(text: string): (offset: number) => TextPosition {
  const starts = [0, ...Array.from(text.matchAll(/\r\n|\r|\n/g), (end) => end.index + end[0].length)]
  return (offset) => {
    const line = starts.findLastIndex((start) => start <= offset)
    return { line: line + 1, column: offset - (starts[line] ?? 0) + 1 }
  }
}
