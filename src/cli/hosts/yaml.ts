import { isMap, isScalar, type Pair, parseAllDocuments, Scalar, stringify, type YAMLMap } from 'yaml'
import { eolOf, formatError, headOf, indented, type Json, type Path, type SettingsEditor } from './types.ts'

/** Edits YAML by lines: an item is appended to its map, or its lines are removed. */
export const yaml: SettingsEditor = {
  parse: (text) => documentOf(text)?.toJS() as unknown,
  set: (text, path, value) => {
    const eol = eolOf(text)
    const root = mapOf(text)
    if (root === undefined) return `${headOf(text)}${rendered(path, value, 2).replaceAll('\n', eol)}`
    const { map, pair, rest } = walk(text, root, path)
    if (pair !== undefined && rest.length === 0) return replaced(text, map, pair, path, value)
    const added = pair === undefined ? rest : rest.slice(1)
    if (pair !== undefined && isNothing(pair)) return filled(text, map, pair, added, value)
    return map.flow ? inFlow(text, map, added, value) : inBlock(text, map, added, value)
  },
  remove: (text, path) => {
    const root = mapOf(text)
    if (root === undefined) return text
    const { map, pair, rest, holder } = walk(text, root, path)
    if (pair === undefined || rest.length > 0) return text
    const [start, end] = spanOf(text, map, pair)
    if (map.flow) return withoutInFlow(text, map, pair)
    if (map.items.length > 1 || holder === undefined) return text.slice(0, start) + text.slice(end)
    // The last entry of a map is removed: write `{}`, because YAML reads a key without a value as null.
    const colon = text.indexOf(':', rangeOf(holder.key)[1])
    return `${text.slice(0, colon + 1)} {}${text.slice(colon + 1, start)}${text.slice(end)}`
  },
  show: (path, value) => rendered(path, value, 2),
}

type YamlPair = Pair<unknown, unknown>

function documentOf(text: string) {
  const documents = parseAllDocuments(text)
  if ('empty' in documents) return undefined
  const [document, second] = documents
  if (second !== undefined) throw formatError(text, second.range[0], 'there is a second document in this file.')
  const error = document?.errors[0]
  if (error !== undefined) throw formatError(text, error.pos[0], 'this is not YAML. Fix it first.')
  return document
}

function mapOf(text: string): YAMLMap | undefined {
  const contents = documentOf(text)?.contents
  if (contents === undefined || contents === null || isNothing({ value: contents })) return undefined
  if (isMap(contents)) return contents
  throw formatError(text, rangeOf(contents)[0], 'this is not a map.')
}

function rangeOf(node: unknown): readonly [number, number] {
  const range = typeof node === 'object' && node !== null && 'range' in node ? node.range : undefined
  return Array.isArray(range) ? [Number(range[0]), Number(range[1])] : [0, 0]
}

const isNothing = ({ value }: { readonly value: unknown }) =>
  value === null || (isScalar(value) && value.value === null)

/**
 * Follows a path as far as it exists. Returns the last map on it, the item of the next key in that map, the item that holds the map,
 * and the missing rest of the path. The rest begins with the key of the item if the item has no value.
 */
function walk(text: string, root: YAMLMap, path: Path) {
  let [map, holder]: [YAMLMap, YamlPair | undefined] = [root, undefined]
  for (const [depth, key] of path.entries()) {
    const pair = map.items.find((item) => isScalar(item.key) && item.key.value === key)
    if (pair !== undefined && depth === path.length - 1) return { map, pair, holder, rest: [] }
    if (pair === undefined || isNothing(pair)) return { map, pair, holder, rest: path.slice(depth) }
    if (!isMap(pair.value)) throw formatError(text, rangeOf(pair.value)[0], 'this is not a map, and is left alone.')
    ;[map, holder] = [pair.value, pair]
  }
  return { map, pair: undefined, holder: undefined, rest: [] }
}

function rendered(path: Path, value: Json, indent: number): string {
  const whole = path.reduceRight<Json>((inner, key) => ({ [key]: inner }), value)
  const text = stringify(withQuotes(whole), { indent, lineWidth: 0 })
  return text.replace(unusual, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

/**
 * Line ends of YAML 1.1 that YAML 1.2 does not have, and other characters that a parser may change or refuse without an escape.
 */
const unusual = /[\u007f-\u009f\u2028\u2029\ufeff]/g

/** Puts texts with control characters in double quotes, the only form that all parsers of YAML 1.1 and 1.2 read unchanged. */
function withQuotes(value: Json): unknown {
  if (typeof value === 'string') {
    if (!/[\p{Cc}\u2028\u2029\ufeff]/u.test(value)) return value
    const scalar = new Scalar(value)
    scalar.type = Scalar.QUOTE_DOUBLE
    return scalar
  }
  if (Array.isArray(value)) return value.map(withQuotes)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, withQuotes(inner)]))
}

/** Returns the column of the keys of a map, from 0. */
function columnOf(text: string, map: YAMLMap): number {
  const start = rangeOf(map.items[0]?.key)[0]
  return start - (text.lastIndexOf('\n', start - 1) + 1)
}

/** Returns the indentation of nested maps in a map, in columns; 2 if it has none. */
function stepOf(text: string, map: YAMLMap): number {
  const inner = map.items
    .map(({ value }) => value)
    .find((value) => isMap(value) && !value.flow && value.items.length > 0)
  const step = isMap(inner) ? columnOf(text, inner as YAMLMap) - columnOf(text, map) : 2
  return step > 0 ? step : 2
}

/** Returns the offsets of the lines of an item, from the beginning of the first to the end of the last. */
function spanOf(text: string, map: YAMLMap, pair: YamlPair): readonly [number, number] {
  const start = rangeOf(pair.key)[0] - columnOf(text, map)
  const end = pair.value === null ? rangeOf(pair.key)[1] : Math.max(rangeOf(pair.value)[1], rangeOf(pair.key)[1])
  return [start, text[end - 1] === '\n' ? end : lineAfter(text, end)]
}

function lineAfter(text: string, at: number): number {
  const line = text.indexOf('\n', at)
  return line === -1 ? text.length : line + 1
}

function lines(text: string, map: YAMLMap, path: Path, value: Json, column: number): string {
  const eol = eolOf(text)
  const block = rendered(path, value, stepOf(text, map)).trimEnd()
  return `${' '.repeat(column)}${indented(block, ' '.repeat(column), eol)}${eol}`
}

function inBlock(text: string, map: YAMLMap, path: Path, value: Json): string {
  const last = map.items.at(-1)
  const at = last === undefined ? text.length : spanOf(text, map, last)[1]
  const head = text.slice(0, at)
  const gap = head === '' || head.endsWith('\n') ? '' : eolOf(text)
  return head + gap + lines(text, map, path, value, columnOf(text, map)) + text.slice(at)
}

/** Returns the text with a value in the lines below a key that has no value. */
function filled(text: string, map: YAMLMap, pair: YamlPair, path: Path, value: Json): string {
  if (map.flow) throw formatError(text, rangeOf(pair.key)[0], 'this has no value, and is left alone.')
  const explicit = rangeOf(pair.value)
  if (explicit[1] > explicit[0])
    throw formatError(text, explicit[0], 'this is null, and is left alone. Remove the word.')
  const at = lineAfter(text, rangeOf(pair.key)[1])
  const head = text.slice(0, at)
  const gap = head.endsWith('\n') ? '' : eolOf(text)
  const column = columnOf(text, map) + stepOf(text, map)
  return head + gap + lines(text, map, path, value, column) + text.slice(at)
}

/** Appends an item to a map in braces. The item is written as JSON, which is also YAML. */
function inFlow(text: string, map: YAMLMap, path: Path, value: Json): string {
  const [key, ...inner] = path
  const close = rangeOf(map)[1] - 1
  const end = text.slice(0, close).trimEnd().length
  const item = `${JSON.stringify(key)}: ${JSON.stringify(inner.reduceRight<Json>((rest, name) => ({ [name]: rest }), value))}`
  return `${text.slice(0, end)}${map.items.length > 0 ? ', ' : ''}${item}${text.slice(end)}`
}

function withoutInFlow(text: string, map: YAMLMap, pair: YamlPair): string {
  const index = map.items.indexOf(pair)
  const [before, next] = [map.items[index - 1], map.items[index + 1]]
  const end = rangeOf(pair.value)[1]
  if (before !== undefined)
    return text.slice(0, Math.max(rangeOf(before.value)[1], rangeOf(before.key)[1])) + text.slice(end)
  return text.slice(0, rangeOf(pair.key)[0]) + text.slice(next === undefined ? end : rangeOf(next.key)[0])
}

function replaced(text: string, map: YAMLMap, pair: YamlPair, path: Path, value: Json): string {
  const key = path.slice(-1)
  if (map.flow) return inFlow(withoutInFlow(text, map, pair), flowIn(text, map, pair), key, value)
  const [start, end] = spanOf(text, map, pair)
  return text.slice(0, start) + lines(text, map, key, value, columnOf(text, map)) + text.slice(end)
}

/** Returns a map in braces as it is after the removal of an item, with its new range. */
function flowIn(text: string, map: YAMLMap, pair: YamlPair): YAMLMap {
  const shorter = text.length - withoutInFlow(text, map, pair).length
  const copy = map.clone() as YAMLMap
  copy.items = map.items.filter((item) => item !== pair)
  const [start, end] = rangeOf(map)
  copy.range = [start, end - shorter, end - shorter]
  return copy
}
