import {
  type Alias,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  type ParsedNode,
  parseAllDocuments,
  parseDocument,
  type YAMLMap,
  type YAMLParseError,
  type Scalar as YamlScalar,
} from 'yaml'
import { deepNestingIn } from '../../text/front-matter.ts'
import {
  createParseFault,
  createTextScalar,
  jsonNumber,
  type NodeCounter,
  type Scalar,
  type SettingsNode,
  type SettingsTree,
  type TableEntry,
} from './tree.ts'

const maxDocuments = 100
/** Maximum nesting of brackets. A deeper text is refused before it is parsed, because the parser recurses. */
const maxBrackets = 1000

/**
 * Reads YAML 1.2 with the core schema, whatever version a directive names: `no` is a text, a date is a text, an unknown tag
 * changes nothing. Several documents make a list. Merge keys (`<<`) are followed. An alias is the node that it stands for.
 */
export function parseYaml(text: string, counter: NodeCounter): SettingsTree {
  refuseBrackets(text)
  refuseVersions(text)
  const parsedDocuments = parseAllDocuments(text, options)
  // A text without a document may have directives. Only the parser of a single document reports them as an error.
  if ('empty' in parsedDocuments) refuseErrors(parseDocument(text, options).errors)
  // The library returns an empty document for nothing, or only comments, between two ends of documents.
  const documents = parsedDocuments.filter(({ contents, errors, directives: { docStart } }) => {
    const isNothing = contents === null || (isScalar(contents) && contents.range[0] === contents.range[1])
    return !isNothing || docStart === true || errors.length > 0
  })
  if (documents.length > maxDocuments)
    throw createParseFault(`It has more than ${maxDocuments} documents.`, 0, maxDocuments)
  const roots: SettingsNode[] = []
  for (const document of documents) {
    refuseErrors(document.errors)
    roots.push(createYamlNodeReader(text, counter)(document.contents, 1, 0))
  }
  const [root, second] = roots
  // A file without a value, such as one of comments only, is valid.
  if (root === undefined) return { root: scalarOf(undefined, text, text.length) }
  return { root: second === undefined ? root : { kind: 'list', items: roots } }
}

const options = {
  schema: 'core',
  // A tag such as !!omap or !!binary changes nothing.
  resolveKnownTags: false,
  intAsBigInt: true,
  // Checked by the reader, because the library compares each key with all keys before it, which is slow.
  uniqueKeys: false,
  prettyErrors: false,
  logLevel: 'silent',
} as const

function refuseErrors([error]: readonly YAMLParseError[]): void {
  if (error !== undefined) throw createParseFault(words[error.code] ?? 'This is not valid YAML.', error.pos[0])
}

const words: Readonly<Record<string, string>> = {
  ALIAS_PROPS: 'An alias cannot have an anchor or a tag of its own.',
  BAD_ALIAS: 'An alias or an anchor has a name that is not valid.',
  BAD_DIRECTIVE: 'A directive is not valid.',
  BAD_DQ_ESCAPE: 'An escape sequence in a string is not valid.',
  BAD_INDENT: 'This line is not indented like the rest of its block.',
  BAD_PROP_ORDER: 'An anchor or tag is in the wrong place.',
  BAD_SCALAR_START: 'A string cannot begin with this character without quotes.',
  BLOCK_AS_IMPLICIT_KEY: 'A list or table cannot be a key without a "?" before it.',
  BLOCK_IN_FLOW: 'A block cannot stand in brackets.',
  DUPLICATE_KEY: 'A key occurs twice.',
  IMPOSSIBLE: 'This is not valid YAML.',
  KEY_OVER_1024_CHARS: 'A key is longer than 1024 characters.',
  MISSING_CHAR: 'A closing bracket, a quote or another character is missing.',
  MULTILINE_IMPLICIT_KEY: 'A key goes over several lines.',
  MULTIPLE_ANCHORS: 'A value has several anchors.',
  MULTIPLE_DOCS: 'A second document begins.',
  MULTIPLE_TAGS: 'A value has several tags.',
  TAB_AS_INDENT: 'A tab is used to indent: YAML requires spaces.',
  TAG_RESOLVE_FAILED: 'A value does not fit its tag.',
  UNEXPECTED_TOKEN: 'A character or word stands where YAML allows none.',
}

function refuseBrackets(text: string): void {
  const index = deepNestingIn(text, maxBrackets)
  if (index !== undefined) throw createParseFault('It is nested too deeply to be read.', index, maxBrackets)
}

/** Refuses a document with two `%YAML` directives, of which the library would take the last. */
function refuseVersions(text: string): void {
  let versions = 0
  for (const { 0: line, index } of text.matchAll(/^.*$/gm)) {
    if (line.startsWith('...')) versions = 0
    else if (/^\ufeff?%YAML\s/.test(line)) versions++
    else if (!/^\ufeff?\s*(?:[%#].*)?$/.test(line)) versions = Number.NEGATIVE_INFINITY
    if (versions > 1) throw createParseFault('A document has two %YAML directives.', index)
  }
}

type Reader = (node: ParsedNode | null, depth: number, offset: number) => SettingsNode

function createYamlNodeReader(text: string, counter: NodeCounter): Reader {
  const anchors = new Map<string, SettingsNode>()
  /** The text that each node with an anchor has as a key, by the anchor. */
  const keys = new Map<string, string>()
  /** Nodes count again for each alias that repeats them, because a small file can expand to a huge value. */
  const recount = (node: SettingsNode, depth: number, offset: number): void => {
    counter.enter(depth, offset)
    if (node.kind === 'list') for (const item of node.items) recount(item, depth + 1, offset)
    if (node.kind === 'table') for (const { value } of node.entries) recount(value, depth + 1, offset)
  }

  const aliased = (alias: Alias.Parsed, depth: number): SettingsNode => {
    const [offset] = alias.range
    const node = anchors.get(alias.source)
    if (node === undefined)
      throw createParseFault('An alias has no anchor before it, or is inside its own anchor.', offset)
    recount(node, depth, offset)
    return node
  }

  /** Returns a key as text. For a list or a map it is the source text; for an alias it is that of its node. */
  const keyOf = (key: ParsedNode | null, depth: number): string => {
    if (key === null) return ''
    if (isAlias(key)) {
      aliased(key as Alias.Parsed, depth)
      return keys.get(key.source) ?? ''
    }
    // The node of a key, and the nodes in it, may have anchors.
    if (key.anchor !== undefined || !isScalar(key)) reader(key, depth, key.range[0])
    return keyText(key, text)
  }

  const table = (map: YAMLMap.Parsed, depth: number): SettingsNode => {
    const entries: TableEntry[] = []
    const tableEntries: TableEntry[] = []
    const keys = new Set<string>()
    for (const pair of map.items) {
      const offset = pair.key?.range[0] ?? map.range[0]
      const key = keyOf(pair.key, depth + 1)
      const value = reader(pair.value, depth + 1, pair.key?.range[1] ?? offset)
      if (key === '<<' && isScalar(pair.key) && pair.key.type === 'PLAIN') {
        tableEntries.push(...mergedEntries(value, offset))
        continue
      }
      if (keys.has(key)) throw createParseFault('A key occurs twice.', offset)
      keys.add(key)
      entries.push({ key, value })
    }
    // Own keys override merged keys, and an earlier merged map overrides a later one.
    for (const entry of tableEntries) {
      if (keys.has(entry.key)) continue
      keys.add(entry.key)
      entries.push(entry)
    }
    return { kind: 'table', entries }
  }

  const reader: Reader = (node, depth, offset) => {
    if (isAlias(node)) return aliased(node as Alias.Parsed, depth)
    counter.enter(depth, node?.range[0] ?? offset)
    const settingsNode = isMap(node)
      ? table(node as YAMLMap.Parsed, depth)
      : isSeq(node)
        ? ({
            kind: 'list',
            items: node.items.map((item) => reader(item as ParsedNode, depth + 1, node.range?.[0] ?? offset)),
          } as const)
        : scalarOf(isScalar(node) ? (node as YamlScalar.Parsed) : undefined, text, offset)
    if (node?.anchor === undefined) return settingsNode
    anchors.set(node.anchor, settingsNode)
    keys.set(node.anchor, keyText(node, text))
    return settingsNode
  }
  return reader
}

function mergedEntries(value: SettingsNode, offset: number): readonly TableEntry[] {
  if (value.kind === 'table') return value.entries
  if (value.kind === 'list' && value.items.every((item) => item.kind === 'table'))
    return value.items.flatMap((item) => (item.kind === 'table' ? item.entries : []))
  throw createParseFault('A merge key (<<) needs a table, or a list of tables.', offset)
}

function keyText(node: ParsedNode, text: string): string {
  if (isScalar(node)) return typeof node.value === 'string' ? node.value : (node.source ?? '')
  // The library begins a map at its first colon if it has no key before that.
  const first = isMap(node) ? (node.items[0]?.key as ParsedNode | null | undefined) : undefined
  const start = Math.min(node.range[0], first?.range[0] ?? node.range[0])
  return text.slice(start, node.range[1]).trimEnd()
}

function scalarOf(scalar: YamlScalar.Parsed | undefined, text: string, offset: number): Scalar {
  const [start, end] = scalar?.range ?? [offset, offset]
  const source = scalar?.source ?? ''
  if (scalar?.type === 'QUOTE_DOUBLE' || scalar?.type === 'QUOTE_SINGLE')
    return createTextScalar(source, { start: start + 1, end: end - 1, writing: 'inside' })
  if (scalar?.type === 'BLOCK_LITERAL' || scalar?.type === 'BLOCK_FOLDED')
    return createTextScalar(source, { start, end, writing: 'block' })
  const span = { start, end, writing: 'quoted' } as const
  const { value } = scalar ?? { value: null }
  if (value === null) return { kind: 'scalar', text: '', json: 'null', ...span }
  if (typeof value === 'boolean') return { kind: 'scalar', text: source, json: String(value), ...span }
  if (typeof value === 'bigint' || typeof value === 'number')
    return {
      kind: 'scalar',
      text: source,
      json: jsonNumber(jsonNumber(source) === undefined ? String(value) : source) ?? JSON.stringify(source),
      ...span,
    }
  // A tag may change the value, so the source text is used.
  return createTextScalar(text.slice(start, end).includes('\n') ? source : text.slice(start, end), span)
}
