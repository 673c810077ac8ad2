import { randomBytes } from 'node:crypto'
import { completeFromValues } from '../../core/completion.ts'
import { invalid, isResourceError, notFound } from '../../core/errors.ts'
import { defined, requireKeys } from '../../core/kit/object.ts'
import { workerLimits } from '../../core/kit/workers.ts'
import { isPath } from '../../core/path.ts'
import type {
  Change,
  Completion,
  CompletionRequest,
  Content,
  ContentMetadata,
  Context,
  Entry,
  Params,
  Provider,
  Template,
} from '../../core/provider.ts'
import { redactedMark, type Scrubber } from '../../core/scrub.ts'
import type { DetectionLayer } from '../../secrets/find.ts'
import { cleanEntry, cleanFacts, createSeal, isSecretPath, redactedKey } from '../../wrap/redacted/cleaner.ts'
import type { SettingsPart } from './answer.ts'
import { createSettingsReader, type SettingsReader } from './desk.ts'
import { compileFormatRules, type FormatOf, type FormatRules, formatMimeTypes } from './formats.ts'
import type { HidingPolicy } from './hiding.ts'
import { defaultSettingsLimits, parsePointer, type SettingsLimits } from './tree.ts'

export type { SettingsFormat } from './formats.ts'

export interface SettingsOptions extends FormatRules, Partial<HidingPolicy>, Partial<SettingsLimits> {
  /** Provider of the files, as text; not redacted, since only whole files can be parsed. It is closed with this provider. */
  readonly source: Provider
  /** Key of the version hashes. Replicas share it. Default: a random key for each provider. */
  readonly key?: Uint8Array
  /** Removes known secrets of this server, besides the values that the policy hides and those that the detectors find. */
  readonly scrubber?: Scrubber
  /** Time-out for reading one file, in milliseconds. Default `workerLimits.settings`: 5000. */
  readonly timeoutMs?: number
  /** File that the worker runs, for tests. */
  readonly file?: string
  /** Detector layers that are left out, for tests. */
  readonly without?: readonly DetectionLayer[]
}

const template: Template = {
  template: '{+path}{?pointer,as}',
  name: 'Settings',
  title: 'A file of settings, or one value of it',
  description:
    'pointer=/db/host gives one value as JSON (RFC 6901; in YAML with several documents, the first step is the number of the document, ' +
    `from 0); as=json gives the whole file as JSON; neither gives the file as it is, with its comments. Secrets are ${redactedMark}.`,
}

/**
 * Provider of files of settings in JSON (with comments), YAML, TOML, INI, dotenv and properties: each file unchanged, as JSON,
 * or one of its values.
 *
 * A value is hidden if its name, or one above it, sounds secret, if it looks random, or if a detector of `redacted` finds a secret in it.
 * Of dotenv files, and with `show: 'allowed'` of all files, only values that `allow` names are shown. Hidden values, and names in
 * which a detector finds a secret, are replaced with `[redacted]`. Nothing is expanded, included or looked up.
 *
 * Reads throw ResourceError `invalid` (reason `unreadable`, with `line` and `column`) for a file that does not have the format of
 * its name, `too-large` beyond a limit, `invalid` (reason `parameter`) for a malformed request, `not-found` for a pointer
 * to nothing.
 *
 * @throws ResourceError `invalid` for a malformed glob or an unknown format.
 */
export function settings(options: SettingsOptions): Provider {
  requireKeys('settings({ source })', options, { source: 'an object' })
  const { source, key = randomBytes(32), show = 'safe', allow = [], scrubber } = options
  const formatOf = compileFormatRules(options)
  const limits: SettingsLimits = { ...defaultSettingsLimits, ...limitsIn(options) }
  const seal = createSeal(key, JSON.stringify([show, allow]))
  const desk = createSettingsReader({
    source,
    policy: { show, allow },
    limits,
    timeoutMs: options.timeoutMs ?? workerLimits.settings.timeoutMs,
    without: options.without ?? [],
    ...defined({ file: options.file }),
  })
  const { stat, watch } = source

  const entryOf = (entry: Entry): Entry | undefined => {
    const format = served(formatOf, entry.path)
    return format === undefined ? undefined : { ...cleanEntry(entry, seal), mimeType: formatMimeTypes[format] }
  }

  const list: Provider['list'] = async function* ({ shallow = false, skim, ...query }, context) {
    // A directory that is not empty may still have no served file.
    const isWanted = (path: string) =>
      (path.endsWith('/') || served(formatOf, path) !== undefined) && (skim?.(path) ?? true)
    const innerQuery = shallow || skim !== undefined ? { ...query, skim: isWanted } : query
    for await (const entry of source.list(innerQuery, context)) {
      const own = entryOf(entry)
      if (own !== undefined) yield own
    }
  }

  const readSettings = async (path: string, params: Params, context: Context): Promise<Content> => {
    const format = served(formatOf, path)
    if (format === undefined) throw notFound('no file of settings')
    const want = wantIn(params)
    const { answer, facts } = await desk.ask(path, format, want, context)
    if (!('text' in answer)) throw notFound('nothing at the pointer')
    const text = scrubber?.scrub(answer.text) ?? answer.text
    const mimeType = want.kind === 'source' ? formatMimeTypes[format] : formatMimeTypes.json
    return { ...contentFacts(cleanFacts(facts, path, seal), text), mimeType, size: Buffer.byteLength(text), text }
  }

  return {
    list,
    ...(stat && {
      stat: async (path, context) => {
        const entry = path.endsWith('/') ? undefined : entryOf(await stat(path, context))
        if (entry === undefined) throw notFound('no file of settings')
        return entry
      },
    }),
    read: async ({ path, params }, context) => [await readSettings(path, params, context)],
    templates: async () => [template],
    complete: (request, context) => completeSettings(request, { formatOf, desk }, context),
    ...(watch && { watch: async (signal) => ofSettings(await watch(signal), formatOf) }),
    close: async () => {
      desk.close()
      await source.close?.()
    },
  }
}

function served(formatOf: FormatOf, path: string) {
  const format = formatOf(path)
  return format === undefined || isSecretPath(path) ? undefined : format
}

function wantIn(params: Params): SettingsPart {
  const as = params.get('as')
  if (as !== undefined && as !== 'json')
    throw invalid('The parameter "as" must be json. Write ?as=json, or leave it out.', 'parameter', { parameter: 'as' })
  const pointer = params.get('pointer')
  if (as === undefined && pointer === undefined) return { kind: 'source' }
  return { kind: 'json', steps: parsePointer(pointer ?? '') }
}

/** Drops `immutable`, because the content depends on the policy, and `range`, which is that of the source. Marks a redacted text. */
function contentFacts({ immutable: _, range: __, ...facts }: ContentMetadata, text: string): ContentMetadata {
  return text.includes(redactedMark) ? { ...facts, meta: { ...facts.meta, [redactedKey]: true } } : facts
}

function limitsIn({ maxBytes, maxDepth, maxNodes }: Partial<SettingsLimits>): Partial<SettingsLimits> {
  return defined({ maxBytes, maxDepth, maxNodes })
}

async function* ofSettings(changes: AsyncIterable<Change>, formatOf: FormatOf): AsyncGenerator<Change> {
  for await (const change of changes) {
    const { path } = change
    if (path === undefined || path === '' || path.endsWith('/') || served(formatOf, path) !== undefined) yield change
  }
}

async function completeSettings(
  { argument, arguments: filled }: CompletionRequest,
  { formatOf, desk }: { readonly formatOf: FormatOf; readonly desk: SettingsReader },
  context: Context,
): Promise<Completion | undefined> {
  if (argument.name === 'path') return undefined
  if (argument.name === 'as') return completeFromValues(['json'], argument.value)
  const path = filled.get('path') ?? ''
  const format = isPath(path) ? formatOf(path) : undefined
  if (argument.name !== 'pointer' || format === undefined) return completeFromValues([])
  try {
    const { answer } = await desk.ask(path, format, { kind: 'names', typed: argument.value }, context)
    if (!('pointers' in answer)) return completeFromValues([])
    return answer.hasMore ? { values: answer.pointers, hasMore: true } : completeFromValues(answer.pointers)
  } catch (error) {
    // A file that cannot be read has no completions; reading it reports the reason.
    if (isResourceError(error) && error.kind !== 'unavailable') return completeFromValues([])
    throw error
  }
}
