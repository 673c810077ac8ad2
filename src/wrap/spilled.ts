import { isResourceError } from '../core/errors.ts'
import { jsonIn, objectSchema } from '../core/kit/object.ts'
import type { Context, Principal, Provider } from '../core/provider.ts'
import type { ResultFile } from '../core/shared.ts'
import type { ProvidedTool, ToolLink, ToolOutcome, ToolPart, ToolRequest } from '../core/tool.ts'
import { estimateTokens, lengthOfTokens } from '../text/excerpt.ts'
import { outlineEntries } from '../text/structure.ts'
import type { Spill } from './spill.ts'

export interface SpilledOptions {
  readonly spill: Spill
  /** Estimated number of tokens above which a result is kept as a resource. Default 8,000. */
  readonly maxTokens?: number
}

/** Size above which a binary part is kept as a resource, in bytes. */
const maxBinaryBytes = 256 * 1024
/** Maximum number of tokens of the beginning in an answer, and maximum share of `maxTokens`. */
const beginning = { tokens: 1000, share: 1 / 4 }
/** Number of characters at the beginning of a long text by which all its tokens are estimated. */
const sampled = 100_000
const maxOutline = 30

/**
 * Keeps long results of the tools of a provider as resources. The answer then has the outline and the beginning of the result, and a link
 * to it.
 */
export function spilled(provider: Provider, { spill, maxTokens = 8000 }: SpilledOptions): Provider {
  const { tools } = provider
  if (tools === undefined) return provider
  return {
    ...provider,
    tools: {
      list: async (context) => (await tools.list(context)).map(withSpilledSchema),
      call: async (request, context) =>
        shortenOutcome(visible(await tools.call(request, context), context), request, context.principal, {
          spill,
          maxTokens,
        }),
    },
  }
}

/** Returns the parts that the caller may see, because the rules of the mount do not apply to a kept result. */
function visible(outcome: ToolOutcome, { allows = () => true }: Context): ToolOutcome {
  const isVisible = (part: ToolPart) => {
    if ('content' in part) return allows(part.content.path)
    return 'entry' in part ? allows(part.entry.path) : true
  }
  return { ...outcome, parts: outcome.parts.filter(isVisible) }
}

async function shortenOutcome(
  outcome: ToolOutcome,
  request: ToolRequest,
  principal: Principal,
  bounds: Required<SpilledOptions>,
): Promise<ToolOutcome> {
  const { parts, structured, ...rest } = outcome
  const pieces = resultTextFiles(outcome, request)
  const isLong = estimateFileTokens(pieces, bounds.maxTokens) > bounds.maxTokens
  const texts = isLong ? pieces : []
  const binaries = parts.flatMap((part, index) => binaryOf(part, index))
  const files = makeNamesUnique([...texts, ...binaries.map(({ file }) => file)])
  if (files.length === 0) return outcome
  const others = parts.filter((part) => !(isLong && isText(part)) && !binaries.some((one) => one.part === part))
  const { kept, told: until } = await storeResultFiles(bounds.spill, principal, files)
  const links = (kept?.uris ?? []).map((uri, index) => ({ link: linkOf(uri, files[index]) }))
  const share = Math.min(beginning.tokens, bounds.maxTokens * beginning.share) / Math.max(1, texts.length)
  const descriptions = files.map((file, index) => describeResultFile(file, kept?.uris[index], share))
  const text = [`The result is too long for an answer. ${until}`, ...descriptions].join('\n\n')
  const expires = kept === undefined ? {} : { uris: kept.uris, expires: new Date(kept.expires).toISOString() }
  return {
    ...rest,
    parts: [{ text }, ...others, ...links],
    ...(structured === undefined ? {} : { structured: isLong ? { spilled: expires } : structured }),
  }
}

const tooLarge = 'It is also too large to be stored: this is its beginning. Ask the tool for less.'
const notKept = 'It could not be stored, because the store does not answer: this is its beginning.'

/** The tool has already run, so a store that does not answer must not fail the call. */
async function storeResultFiles(spill: Spill, principal: Principal, files: readonly ResultFile[]) {
  try {
    const keptResult = await spill.put(principal, files)
    if (keptResult === undefined) return { kept: keptResult, told: tooLarge }
    return { kept: keptResult, told: `It is kept for you until ${new Date(keptResult.expires).toISOString()}.` }
  } catch (error) {
    if (!isResourceError(error)) throw error
    return { kept: undefined, told: notKept }
  }
}

/** Returns the joined texts of a result as a file, and its structured content as another unless it repeats the text. */
function resultTextFiles({ parts, structured }: ToolOutcome, { path }: ToolRequest): readonly ResultFile[] {
  const stem = (path.split('/').at(-1) ?? 'result').replace(/[^A-Za-z0-9_.-]/g, '_').slice(0, 100)
  const texts = parts.filter(isText).map((part) => ('text' in part ? part.text : part.content.text))
  const joined = texts.join('\n\n')
  const structuredText = structured === undefined ? undefined : JSON.stringify(structured)
  const isSame =
    structuredText !== undefined && isJsonObjectOrArray(joined) && JSON.stringify(JSON.parse(joined)) === structuredText
  return [
    ...(joined === '' ? [] : [createResultFile(stem, joined)]),
    ...(structuredText === undefined || isSame ? [] : [createResultFile(`${stem}-structured`, structuredText)]),
  ]
}

function createResultFile(stem: string, text: string): ResultFile {
  const title = `Result of ${stem}`
  if (isJsonObjectOrArray(text))
    return { name: `${stem}.json`, title, mimeType: 'application/json', body: breakJsonIntoLines(text) }
  const isMarkdown = /^#{1,6} \S/m.test(text)
  return isMarkdown
    ? { name: `${stem}.md`, title, mimeType: 'text/markdown', body: text }
    : { name: `${stem}.txt`, title, mimeType: 'text/plain', body: text }
}

type TextPart = Extract<ToolPart, { readonly text: string }> | { readonly content: { readonly text: string } }

function isText(part: ToolPart): part is ToolPart & TextPart {
  return 'text' in part || ('content' in part && 'text' in part.content)
}

function binaryOf(part: ToolPart, index: number): readonly { readonly part: ToolPart; readonly file: ResultFile }[] {
  const binary = 'bytes' in part ? part : 'content' in part && 'bytes' in part.content ? part.content : undefined
  if (binary === undefined || binary.bytes.length <= maxBinaryBytes) return []
  const mimeType = binary.mimeType ?? 'application/octet-stream'
  const extension = /^[a-z]+\/([a-z0-9]{1,8})/i.exec(mimeType)?.[1] ?? 'bin'
  const name = `part-${index + 1}.${extension}`
  return [{ part, file: { name, title: name, mimeType, body: binary.bytes } }]
}

function makeNamesUnique(files: readonly ResultFile[]): readonly ResultFile[] {
  const names = new Set<string>()
  return files.map((file, index) => {
    const name = names.has(file.name) ? `${index + 1}-${file.name}` : file.name
    names.add(name)
    return { ...file, name }
  })
}

function estimateFileTokens(files: readonly ResultFile[], most: number): number {
  return files.reduce((sum, { body }) => sum + (typeof body === 'string' ? estimateTokens(body, most + 1) : 0), 0)
}

function linkOf(uri: string, file: ResultFile | undefined): ToolLink {
  return {
    uri,
    name: file?.name ?? 'result',
    description: 'The whole result.',
    ...(file && { mimeType: file.mimeType }),
  }
}

function describeResultFile({ name, mimeType, body }: ResultFile, uri: string | undefined, most: number): string {
  const whole = uri ?? name
  if (typeof body !== 'string') return `${whole}  (${body.length} bytes)`
  const lines = body.split('\n')
  const sample = body.slice(0, sampled)
  const tokens = Math.ceil((estimateTokens(sample) * body.length) / Math.max(1, sample.length))
  const outline = name.endsWith('.json') ? keysOf(lines) : outlineEntries(lines, name, mimeType, maxOutline)
  const beginning = body.slice(0, lengthOfTokens(body, most)).toWellFormed()
  return [
    `${whole}  (${lines.length} lines, about ${tokens} tokens)`,
    ...(uri === undefined ? [] : [`Read a part of it: ${uri}?lines=1-200`]),
    ...(outline.length === 0
      ? []
      : [`Outline:`, ...outline.slice(0, maxOutline).map(({ line, text }) => `${line}: ${text}`)]),
    'Beginning:',
    beginning,
  ].join('\n')
}

/** Returns the keys of a JSON text in lines, of its two outer levels. */
function keysOf(lines: readonly string[]) {
  return lines.flatMap((text, index) => {
    const key = /^ {2,4}("(?:[^"\\]|\\.){1,80}"): ?(.{0,40})/.exec(text)
    return key === null ? [] : [{ line: index + 1, text: `${key[1]}: ${key[2]}` }]
  })
}

const spilledSchema = {
  type: 'object',
  description: 'The result is too long for an answer, and is kept as resources.',
  properties: {
    spilled: objectSchema([], {
      uris: { type: 'array', items: { type: 'string' } },
      expires: { type: 'string' },
    }),
  },
  required: ['spilled'],
  additionalProperties: false,
}

/**
 * Extends the output schema of a tool by the structured content of a long result. A schema that cannot be nested, such as one with
 * references to parts of itself besides its definitions, is left out.
 */
function withSpilledSchema(tool: ProvidedTool): ProvidedTool {
  const { outputSchema, ...rest } = tool
  if (outputSchema === undefined) return tool
  const { $schema, $defs, definitions, ...own } = outputSchema
  const references = JSON.stringify(own).match(/"\$(?:ref|dynamicRef|recursiveRef)":"[^"]*"/g) ?? []
  const isNestable = references.every((one) => /":"#\/(?:\$defs|definitions)\//.test(one))
  if (!isNestable || '$id' in own || '$anchor' in own) return rest
  const shared = Object.fromEntries(
    Object.entries({ $schema, $defs, definitions }).filter(([, value]) => value !== undefined),
  )
  return { ...rest, outputSchema: { ...shared, type: 'object', anyOf: [own, spilledSchema] } }
}

/**
 * Puts each member of a JSON text on its own line, so that parts can be read by lines. Numbers keep their digits. The text must be JSON.
 */
export function breakJsonIntoLines(text: string): string {
  const pieces: string[] = []
  let depth = 0
  const newLine = () => pieces.push('\n', '  '.repeat(Math.min(depth, maxIndent)))
  for (const token of jsonTokensOf(text)) {
    if (token === '{' || token === '[') {
      depth++
      pieces.push(token)
      newLine()
    } else if (token === '}' || token === ']') {
      depth--
      newLine()
      pieces.push(token)
    } else if (token === ',') {
      pieces.push(token)
      newLine()
    } else pieces.push(token === ':' ? ': ' : token)
  }
  return `${pieces.join('')}\n`
}

/** Yields the tokens of a JSON text. An empty object or array is one token. */
function* jsonTokensOf(text: string): Generator<string> {
  // A long string as a part of the expression would exceed the stack of the matcher, so its end is searched separately.
  const start = /"|[{[]\s*[}\]]|[{}[\],:]|[^\s"{}[\],:]+/g
  for (let match = start.exec(text); match !== null; match = start.exec(text)) {
    if (match[0] !== '"') {
      yield match[0]
      continue
    }
    const end = endOfString(text, match.index + 1)
    yield text.slice(match.index, end)
    start.lastIndex = end
  }
}

function endOfString(text: string, from: number): number {
  for (let quote = text.indexOf('"', from); quote !== -1; quote = text.indexOf('"', quote + 1)) {
    let backslashes = 0
    while (quote - 1 - backslashes >= from && text[quote - 1 - backslashes] === '\\') backslashes++
    if (backslashes % 2 === 0) return quote + 1
  }
  return text.length
}

/** Maximum indentation, in levels. */
const maxIndent = 20

export function isJsonObjectOrArray(text: string): boolean {
  return /^\s*[{[]/.test(text) && jsonIn(text) !== undefined
}
