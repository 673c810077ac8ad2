import { createScanner, type Node as JsonNode, type ParseError, parseTree, printParseErrorCode } from 'jsonc-parser'
import { type Budget, fault } from './limits.ts'
import { jsonNumber, type Node, type Scalar, type Tree } from './tree.ts'

/** Reads JSON, with comments and trailing commas. Keys that are there twice are both in the tree. */
export function parseJson(text: string, budget: Budget): Tree {
  measure(text, budget)
  const errors: ParseError[] = []
  const root = parseTree(text, errors, { allowTrailingComma: true })
  const [error] = errors
  if (error !== undefined)
    throw fault(words[printParseErrorCode(error.error)] ?? 'This is not valid JSON.', error.offset)
  if (root === undefined) throw fault('The file is empty: there is no value in it.', 0)
  return { root: nodeOf(root, text) }
}

const words: Readonly<Record<string, string>> = {
  InvalidSymbol: 'This is not a value of JSON: texts and keys stand in double quotes.',
  InvalidNumberFormat: 'This is not a number of JSON.',
  PropertyNameExpected: 'A key in double quotes is missing.',
  ValueExpected: 'A value is missing.',
  ColonExpected: 'A colon is missing between key and value.',
  CommaExpected: 'A comma is missing between two members.',
  CloseBraceExpected: 'An object is not closed.',
  CloseBracketExpected: 'An array is not closed.',
  EndOfFileExpected: 'Something follows the end of the value.',
  UnexpectedEndOfComment: 'A comment is not closed.',
  UnexpectedEndOfString: 'A text is not closed.',
  UnexpectedEndOfNumber: 'A number is not complete.',
  InvalidUnicode: 'An escape in a text is not valid.',
  InvalidEscapeCharacter: 'An escape in a text is not valid.',
  InvalidCharacter: 'A text holds a control character.',
}

/** Kinds of tokens, as the scanner numbers them: its enumeration is one that cannot be imported. */
const token = { openBrace: 1, closeBrace: 2, openBracket: 3, closeBracket: 4, comma: 5, colon: 6, end: 17 } as const

/** Counts depth and values by the tokens alone: the parser calls itself for each level, and would not stop in time. */
function measure(text: string, budget: Budget): void {
  const scanner = createScanner(text, true)
  let depth = 0
  for (let kind: number = scanner.scan(); kind !== token.end; kind = scanner.scan()) {
    if (kind === token.openBrace || kind === token.openBracket) budget.enter(++depth, scanner.getTokenOffset())
    else if (kind === token.closeBrace || kind === token.closeBracket) depth--
    else if (kind !== token.comma && kind !== token.colon) budget.enter(depth + 1, scanner.getTokenOffset())
  }
}

function nodeOf(node: JsonNode, text: string): Node {
  const { children = [] } = node
  if (node.type === 'array') return { kind: 'list', items: children.map((child) => nodeOf(child, text)) }
  if (node.type === 'object')
    return {
      kind: 'table',
      entries: children.flatMap(({ children: [key, value] = [] }) =>
        key === undefined || value === undefined ? [] : [{ key: String(key.value), value: nodeOf(value, text) }],
      ),
    }
  return scalarOf(node, text)
}

function scalarOf({ type, value, offset, length }: JsonNode, text: string): Scalar {
  const end = offset + length
  if (type === 'string') {
    const decoded = String(value)
    return {
      kind: 'scalar',
      text: decoded,
      json: JSON.stringify(decoded),
      start: offset + 1,
      end: end - 1,
      writing: 'inside',
    }
  }
  const lexeme = text.slice(offset, end)
  const json = type === 'number' ? (jsonNumber(lexeme) ?? JSON.stringify(lexeme)) : lexeme
  return { kind: 'scalar', text: lexeme, json, start: offset, end, writing: 'quoted' }
}
