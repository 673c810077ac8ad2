import { randomBytes } from 'node:crypto'
import { invalid, isOverReadLimit, isResourceError, notFound, ResourceError } from '../core/errors.ts'
import { mapGroups } from '../core/kit/groups.ts'
import { defined, jsonIn } from '../core/kit/object.ts'
import type { Log } from '../core/log.ts'
import type {
  Change,
  Content,
  Context,
  Prompt,
  PromptMessage,
  Prompts,
  Provider,
  ReadRequest,
} from '../core/provider.ts'
import type { Scrubber } from '../core/scrub.ts'
import type { ProvidedTool, ToolLink, ToolPart, Tools } from '../core/tool.ts'
import { isTableFile } from '../secrets/assignments.ts'
import { type DetectionLayer, redactPhrase } from '../secrets/find.ts'
import { type Redactor, sharedRedactor } from '../secrets/redactor.ts'
import { type TailFacts, tailIn, tailKey, withoutTail } from './part.ts'
import {
  type Cleaner,
  cleanCompletion,
  cleanEntry,
  cleanMeta,
  cleanPhrase,
  cleanValue,
  createCleaner,
  createSeal,
  isSecretPath,
  maxHeadBytes,
  redactedKey,
  type Seal,
} from './redacted/cleaner.ts'
import { createRangeReader } from './redacted/range.ts'
import { tailed } from './tailed.ts'

export interface RedactedOptions {
  /**
   * `mask`: each secret is replaced by `[redacted]`. `withhold`: a content with a secret is not shown. `off`: nothing is removed. Default
   * `mask`.
   */
  readonly mode?: 'mask' | 'withhold' | 'off'
  /** Key of the version hashes: only wrappers with the same key give the same versions. Default: a random key. */
  readonly key?: Uint8Array
  /** Removes known secrets as well, before a part is cut off. */
  readonly scrubber?: Scrubber
  /** Globs of paths: a matching file is scanned like others, although it has the name of a credentials file. */
  readonly except?: readonly string[]
  readonly log?: Log
  readonly redactor?: Redactor
  /** Layers that are left out, for tests. */
  readonly without?: readonly DetectionLayer[]
}

/**
 * Removes secrets from what a provider returns: contents, titles, descriptions, metadata, completions. The sizes of entries are left out,
 * and versions are hashed with a key, because both reveal facts about the secrets. An entry with a secret in its path looks missing. Put
 * this wrapper inside `sliced`, and outside decoding wrappers. A content that cannot be scanned is withheld, with a text that says so.
 * docs/redaction.md lists the secrets that are found and those that are not.
 *
 * @throws ResourceError `invalid` for another mode (reason `configuration`), and for a malformed glob (reason `argument`).
 */
export function redacted(inner: Provider, options: RedactedOptions = {}): Provider {
  const { mode = 'mask', key = randomBytes(32), log = () => {}, scrubber, except = [], without = [] } = options
  if (mode === 'off') return inner
  // The parts of entries are left out, because the source yields them unredacted.
  const { parts: _, ...provider } = inner
  if (mode !== 'mask' && mode !== 'withhold')
    throw invalid('"redact" must be "mask", "withhold" or "off".', 'configuration')
  const seal = createSeal(key, mode)
  const redactor = options.redactor ?? sharedRedactor()
  const cleaner = createCleaner({ mode, seal, redactor, scrubber, except, log, without })
  const readRange = createRangeReader(provider, cleaner)
  const { stat, watch, complete, prompts, tools } = provider

  /** Throws the error of a read of a whole resource. If its parts cannot be shown either, the error gets the reason `withheld`. */
  const refused = async (error: unknown, request: ReadRequest, context: Context): Promise<never> => {
    if (!isResourceError(error, 'too-large') || isOverReadLimit(error)) throw error
    const isInParts = async () =>
      error.detail.reason !== 'too-large' ||
      (!cleaner.isVault(request.path) && (await readRange(request, { start: 0, end: 1 }, context)) !== undefined)
    if (mode === 'mask' && (await isInParts())) throw error
    throw new ResourceError('too-large', tooLargeToSearch[mode], { ...error.detail, reason: 'withheld' })
  }

  /** Returns the beginning of the table of which the content is the end; undefined for any other content. */
  const headOf = async (content: Content, request: ReadRequest, context: Context): Promise<string | undefined> => {
    const isEnd = (content.meta?.[tailKey] as TailFacts | undefined)?.earlier === true
    if (!isEnd || !('text' in content) || !isTableFile(request.path)) return undefined
    const [start] = await provider.read({ ...withoutTail(request), range: { start: 0, end: maxHeadBytes } }, context)
    return start !== undefined && 'text' in start ? start.text : undefined
  }

  const readWhole = async ({ path, params }: ReadRequest, context: Context): Promise<readonly Content[]> => {
    const contents: Content[] = []
    for (const content of await provider
      .read({ path, params }, context)
      .catch((error) => refused(error, { path, params }, context))) {
      if (content.path !== undefined && isSecretPath(content.path)) continue
      const head = await headOf(content, { path, params }, context)
      contents.push(await cleaner.whole(content, path, context.signal, head))
    }
    if (contents.length === 0) throw notFound('every part has a secret in its path')
    return contents
  }

  return {
    ...provider,
    list: (query, context) => {
      const { skim } = query
      const isShown = (path: string) => !isSecretPath(path) && skim?.(path) === true
      const entries = provider.list(skim === undefined ? query : { ...query, skim: isShown }, context)
      return mapGroups(entries, (entry) => (isSecretPath(entry.path) ? undefined : cleanEntry(entry, seal)))
    },
    read: async (request, context) => {
      const { path, range } = request
      if (isSecretPath(path)) throw notFound('a secret in the path')
      if (mode === 'withhold' && tailIn(request.params) !== undefined) {
        // The end may contain no secret although the rest contains one, so the whole is read.
        const whole = await readWhole(withoutTail(request), context)
        if (whole.some(({ meta }) => meta?.[redactedKey] !== undefined)) return whole
        return tailed({ ...provider, read: async () => whole }).read(request, context)
      }
      // In mode `withhold`, the whole content must be searched, even for a part.
      if (range === undefined || mode === 'withhold' || cleaner.isVault(path)) return readWhole(request, context)
      const part = await readRange(request, range, context)
      return part === undefined ? readWhole(request, context) : [part]
    },
    ...(stat && {
      stat: async (path, context) => {
        if (isSecretPath(path)) throw notFound('a secret in the path')
        return cleanEntry(await stat(path, context), seal)
      },
    }),
    ...(complete && {
      complete: async (request, context) => {
        const completion = await complete(request, context)
        return completion && cleanCompletion(completion)
      },
    }),
    ...(prompts && { prompts: cleanPrompts(prompts, cleaner, seal) }),
    ...(tools && { tools: cleanTools(tools, cleaner, seal) }),
    ...(watch && { watch: async (signal) => withoutSecretPaths(await watch(signal)) }),
  }
}

const tooLargeToSearch = {
  mask: 'The content is not text, so it would have to be searched for secrets as a whole, and it is too large for that.',
  withhold:
    'The resource is too large to be searched for secrets as a whole, which "redact": "withhold" requires even for a part.',
}

async function* withoutSecretPaths(changes: AsyncIterable<Change>): AsyncGenerator<Change> {
  for await (const change of changes) if (change.path === undefined || !isSecretPath(change.path)) yield change
}

type SourcePart = Exclude<ToolPart, { readonly link: ToolLink }>

function partCleaner(cleaner: Cleaner, seal: Seal) {
  return async (part: SourcePart, path: string, signal: AbortSignal): Promise<SourcePart | undefined> => {
    if ('entry' in part) return isSecretPath(part.entry.path) ? undefined : { entry: cleanEntry(part.entry, seal) }
    if ('content' in part) {
      const { content } = part
      if (isSecretPath(content.path)) return undefined
      return { content: { ...(await cleaner.whole(content, content.path, signal)), path: content.path } }
    }
    const clean = await cleaner.whole(part, path, signal)
    if ('text' in part || !('bytes' in clean)) return { text: 'text' in clean ? clean.text : '' }
    return { bytes: clean.bytes, mimeType: part.mimeType }
  }
}

function cleanPrompts(prompts: Prompts, cleaner: Cleaner, seal: Seal): Prompts {
  const cleanPart = partCleaner(cleaner, seal)
  const { complete } = prompts
  return {
    ...prompts,
    ...(complete && { complete: async (request, context) => cleanCompletion(await complete(request, context)) }),
    list: async (context) =>
      (await prompts.list(context))
        .filter(({ path, name }) => !isSecretPath(path) && !isSecretPath(name))
        .map(cleanFacts),
    get: async (request, context) => {
      if (isSecretPath(request.path)) throw notFound('a secret in the path')
      const { description, messages } = await prompts.get(request, context).catch((error: unknown) => {
        if (!isResourceError(error, 'invalid')) throw error
        throw new ResourceError('invalid', redactPhrase(error.message), error.detail)
      })
      const clean: PromptMessage[] = []
      for (const { role, content } of messages) {
        const part =
          'uri' in content ? { uri: redactPhrase(content.uri) } : await cleanPart(content, request.path, context.signal)
        if (part !== undefined) clean.push({ role, content: part })
      }
      return { ...defined({ description: cleanPhrase(description) }), messages: clean }
    },
  }
}

function cleanFacts({ title, description, meta, arguments: declared, ...rest }: Prompt): Prompt {
  return {
    ...rest,
    ...defined({ title: cleanPhrase(title), description: cleanPhrase(description) }),
    ...cleanMeta(meta),
    ...(declared && {
      arguments: declared.map(({ title, description, values, ...argument }) => ({
        ...argument,
        ...defined({ title: cleanPhrase(title), description: cleanPhrase(description) }),
        ...(values === undefined ? {} : { values: values.filter((value) => redactPhrase(value) === value) }),
      })),
    }),
  }
}

function cleanTools(tools: Tools, cleaner: Cleaner, seal: Seal): Tools {
  const cleanPart = partCleaner(cleaner, seal)
  /** Scans an object as one JSON text, because some secrets are found only by the key before them. */
  const cleanStructured = async (value: Readonly<Record<string, unknown>>, path: string, signal: AbortSignal) => {
    const text = JSON.stringify(value)
    const clean = await cleaner.whole({ text, mimeType: 'application/json' }, `${path}.json`, signal)
    if ('text' in clean && clean.text === text) return value
    return cleanValue(jsonIn('text' in clean ? clean.text : '') ?? {}, 0) as Readonly<Record<string, unknown>>
  }
  return {
    list: async (context) =>
      (await tools.list(context)).filter(({ path, name }) => !isSecretPath(path) && !isSecretPath(name)).map(cleanTool),
    call: async (request, context) => {
      const { path, report } = request
      const { signal } = context
      if (isSecretPath(path)) throw notFound('a secret in the path')
      const clean =
        report &&
        (({ message, ...rest }: Parameters<typeof report>[0]) =>
          report({ ...rest, ...defined({ message: cleanPhrase(message) }) }))
      const toolRequest = clean === undefined ? request : { ...request, report: clean }
      const { parts, structured, ...rest } = await tools.call(toolRequest, context)
      const toolParts: ToolPart[] = []
      for (const part of parts) {
        const one = 'link' in part ? part : await cleanPart(part, path, signal)
        if (one !== undefined) toolParts.push(one)
      }
      const facts = structured && (await cleanStructured(structured, path, signal))
      return { ...rest, parts: toolParts, ...(facts === undefined ? {} : { structured: facts }) }
    },
  }
}

function cleanTool({ title, description, meta, inputSchema, outputSchema, ...rest }: ProvidedTool): ProvidedTool {
  return {
    ...rest,
    inputSchema: cleanValue(inputSchema, 0, maxSchemaDepth) as ProvidedTool['inputSchema'],
    ...defined({ title: cleanPhrase(title), description: cleanPhrase(description) }),
    ...cleanMeta(meta),
    ...(outputSchema && { outputSchema: cleanValue(outputSchema, 0, maxSchemaDepth) as ProvidedTool['inputSchema'] }),
  }
}

/** Maximum depth of a schema. Deeper objects and arrays become `[redacted]`. */
const maxSchemaDepth = 64
