import { createScanner, type Node as JsonNode, type ParseError, parseTree, printParseErrorCode } from 'jsonc-parser'
import { type DetectionLayer, redactPhrase } from '../../secrets/find.ts'
import type { SettingsFormat } from './formats.ts'
import { type HidingPolicy, hiddenValues } from './hiding.ts'
import { parseDotenv, parseIni, parseProperties } from './lines.ts'
import { showJson, showSource } from './shown.ts'
import { parseToml } from './toml.ts'
import {
  childOf,
  createNodeCounter,
  createParseFault,
  escapeStep,
  isParseFault,
  jsonNumber,
  type NodeCounter,
  type Scalar,
  type SettingsFault,
  type SettingsLimits,
  type SettingsNode,
  type SettingsTree,
  unescapeStep,
} from './tree.ts'
import { parseYaml } from './yaml.ts'

/** Of duplicate keys, both are in the tree. */
function parseJson(text: string, counter: NodeCounter): SettingsTree {
  checkJsonBudget(text, counter)
  const errors: ParseError[] = []
  const root = parseTree(text, errors, { allowTrailingComma: true })
  const [error] = errors
  if (error !== undefined)
    throw createParseFault(words[printParseErrorCode(error.error)] ?? 'This is not valid JSON.', error.offset)
  if (root === undefined) throw createParseFault('The file is empty: there is no value in it.', 0)
  return { root: convertJsonNode(root, text) }
}

const words: Readonly<Record<string, string>> = {
  InvalidSymbol: 'This is not a JSON value: strings and keys must be in double quotes.',
  InvalidNumberFormat: 'This is not a JSON number.',
  PropertyNameExpected: 'A key in double quotes is missing.',
  ValueExpected: 'A value is missing.',
  ColonExpected: 'A colon is missing between key and value.',
  CommaExpected: 'A comma is missing between two members.',
  CloseBraceExpected: 'An object is not closed.',
  CloseBracketExpected: 'An array is not closed.',
  EndOfFileExpected: 'There is text after the end of the value.',
  UnexpectedEndOfComment: 'A comment is not closed.',
  UnexpectedEndOfString: 'A string is not closed.',
  UnexpectedEndOfNumber: 'A number is not complete.',
  InvalidUnicode: 'An escape sequence in a string is not valid.',
  InvalidEscapeCharacter: 'An escape sequence in a string is not valid.',
  InvalidCharacter: 'A string contains a control character.',
}

/** Kinds of tokens, by the numbers of the scanner, whose enumeration cannot be imported. */
const token = { openBrace: 1, closeBrace: 2, openBracket: 3, closeBracket: 4, comma: 5, colon: 6, end: 17 } as const

/** Counts depth and values by the tokens alone, because the recursive parser would not stop in time. */
function checkJsonBudget(text: string, counter: NodeCounter): void {
  const scanner = createScanner(text, true)
  let depth = 0
  for (let kind: number = scanner.scan(); kind !== token.end; kind = scanner.scan()) {
    if (kind === token.openBrace || kind === token.openBracket) counter.enter(++depth, scanner.getTokenOffset())
    else if (kind === token.closeBrace || kind === token.closeBracket) depth--
    else if (kind !== token.comma && kind !== token.colon) counter.enter(depth + 1, scanner.getTokenOffset())
  }
}

function convertJsonNode(node: JsonNode, text: string): SettingsNode {
  const { children = [] } = node
  if (node.type === 'array') return { kind: 'list', items: children.map((child) => convertJsonNode(child, text)) }
  if (node.type === 'object')
    return {
      kind: 'table',
      entries: children.flatMap(({ children: [key, value] = [] }) =>
        key === undefined || value === undefined
          ? []
          : [{ key: String(key.value), value: convertJsonNode(value, text) }],
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

/** The part of a settings file that a request asks for: the file as it is, a part of it as JSON, or names that complete a pointer. */
export type SettingsPart =
  | { readonly kind: 'source' }
  | { readonly kind: 'json'; readonly steps: readonly string[] }
  | { readonly kind: 'names'; readonly typed: string }

export interface SettingsRequest {
  readonly text: string
  readonly path: string
  readonly format: SettingsFormat
  readonly want: SettingsPart
  readonly policy: HidingPolicy
  readonly limits: SettingsLimits
  readonly without: readonly DetectionLayer[]
}

export type SettingsAnswer =
  | { readonly text: string }
  | { readonly pointers: readonly string[]; readonly hasMore: boolean }
  | { readonly absent: true }
  | { readonly fault: SettingsFault }

/** Reply of the worker: the answer, or an error. The error has no text, because that might hold a part of the file. */
export type SettingsReply = SettingsAnswer | { readonly error: true }

const parsers: Readonly<Record<SettingsFormat, (text: string, counter: NodeCounter) => SettingsTree>> = {
  json: parseJson,
  yaml: parseYaml,
  toml: parseToml,
  ini: parseIni,
  dotenv: parseDotenv,
  properties: parseProperties,
}

const maxPointers = 100

/** Answers a request about a file. A fault contains no part of the file. */
export async function answerSettings(ask: SettingsRequest): Promise<SettingsAnswer> {
  try {
    return await answerSettingsRequest(ask)
  } catch (error) {
    if (isParseFault(error)) return { fault: error.fault }
    // A recursive function ran out of stack.
    if (error instanceof RangeError)
      return createParseFault('It is nested too deeply to be read.', 0, ask.limits.maxDepth)
    throw error
  }
}

async function answerSettingsRequest({
  text,
  path,
  format,
  want,
  policy,
  limits,
  without,
}: SettingsRequest): Promise<SettingsAnswer> {
  const tree = parsers[format](text, createNodeCounter(limits))
  if (want.kind === 'names') return names(tree.root, want.typed)
  // Of a dotenv file, only values that `allow` names are shown.
  const denied = hiddenValues(tree, format === 'dotenv' ? { ...policy, show: 'allowed' } : policy)
  const source = { text, path, tree, denied, without }
  if (want.kind === 'source') return { text: await showSource(source) }
  const node = want.steps.reduce<SettingsNode | undefined>((node, step) => node && visibleChild(node, step), tree.root)
  return node === undefined ? { absent: true } : { text: await showJson(node, source) }
}

/** A name that is itself a secret looks missing. */
function visibleChild(node: SettingsNode, step: string): SettingsNode | undefined {
  return isSecretName(step) ? undefined : childOf(node, step)
}

const isSecretName = (name: string) => redactPhrase(name) !== name

/** Completes the last step of a pointer with names in the file, never with values. */
function names(root: SettingsNode, typed: string): SettingsAnswer {
  const slash = typed.lastIndexOf('/')
  if (typed !== '' && slash === -1) return { pointers: [], hasMore: false }
  const head = typed.slice(0, Math.max(0, slash))
  const start = unescapeStep(typed.slice(slash + 1))
  const steps = head === '' ? [] : head.slice(1).split('/').map(unescapeStep)
  const parent = steps.reduce<SettingsNode | undefined>((node, step) => node && visibleChild(node, step), root)
  if (parent === undefined || parent.kind === 'scalar') return { pointers: [], hasMore: false }
  const keys =
    parent.kind === 'table' ? [...new Set(parent.entries.map(({ key }) => key))] : parent.items.map((_, i) => String(i))
  const fitting = keys.filter((key) => key.startsWith(start) && key.isWellFormed() && !isSecretName(key))
  return {
    pointers: fitting.slice(0, maxPointers).map((key) => `${head}/${escapeStep(key)}`),
    hasMore: fitting.length > maxPointers,
  }
}
