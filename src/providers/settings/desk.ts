import { join } from 'node:path'
import { invalid, isResourceError, ResourceError, tooLarge } from '../../core/errors.ts'
import { createTaskWorker, workerLimits } from '../../core/kit/workers.ts'
import type { Content, Context, Provider, ReadRequest } from '../../core/provider.ts'
import type { DetectionLayer } from '../../secrets/find.ts'
import { contentKey, createSecretFreeCache } from '../../secrets/redactor.ts'
import type { SettingsPart, SettingsReply, SettingsRequest } from './answer.ts'
import type { SettingsFormat } from './formats.ts'
import type { HidingPolicy } from './hiding.ts'
import { positionOf, type SettingsFault, type SettingsLimits } from './tree.ts'

interface DeskOptions {
  readonly source: Provider
  readonly policy: HidingPolicy
  readonly limits: SettingsLimits
  readonly timeoutMs: number
  readonly without: readonly DetectionLayer[]
  /** File that the worker runs; tests use one that hangs. */
  readonly file?: string
}

export type SettingsReader = ReturnType<typeof createSettingsReader>

/** A file that is read as it is, and has no secrets, is not scanned again while its hash is cached. */
export function createSettingsReader(options: DeskOptions) {
  const { source, policy, limits, without, timeoutMs } = options
  const file = options.file ?? join(import.meta.dirname, '../../../dist/providers/settings/worker.js')
  const host = createTaskWorker<SettingsRequest, SettingsReply>(file, { ...workerLimits.settings, timeoutMs })
  const harmless = createSecretFreeCache()
  return {
    /**
     * Resolves to the answer, with the facts of the file.
     *
     * @throws ResourceError `invalid` (reason `unreadable`) for a file that cannot be read as its format, with line and column in
     * the detail and nothing of the file; `too-large` beyond a limit.
     */
    ask: async (path: string, format: SettingsFormat, want: SettingsPart, context: Context) => {
      const content = await readSettingsFile(source, path, limits.maxBytes, context)
      const { text } = content
      const key = want.kind === 'source' ? contentKey([path, format], text) : undefined
      if (key !== undefined && harmless.get(key) !== undefined) return { answer: { text }, facts: content }
      const outcome = await host.run({ text, path, format, want, policy, limits, without }, context.signal)
      if ('failure' in outcome || 'error' in outcome.result) throw unreadableFileError(outcome)
      const answer = outcome.result
      if ('fault' in answer) throw faulty(answer.fault, text, format)
      if (key !== undefined && 'text' in answer && answer.text === text) harmless.set(key, text.length)
      return { answer, facts: content }
    },
    close: host.close,
  }
}

const noText =
  'The file is not text, so no settings can be read from it. If it is in an encoding other than UTF-8, the operator ' +
  'can name it ("encodings").'

/** @throws ResourceError `invalid` for content that is not one text, `too-large` beyond the limit. */
async function readSettingsFile(source: Provider, path: string, maxBytes: number, context: Context) {
  const request: ReadRequest = { path, params: new Map() }
  let contents: readonly Content[]
  try {
    // One byte more shows that the file is too large; a character takes up to four.
    contents = await source.read({ ...request, range: { start: 0, end: maxBytes + 4 } }, context)
  } catch (error) {
    // A range that begins at 0 is invalid for an empty file.
    if (!isResourceError(error, 'invalid') || error.detail.reason !== 'range') throw error
    contents = await source.read(request, context)
  }
  const [content] = contents
  if (content === undefined)
    throw new ResourceError('internal', 'the source of settings returned no content for a read')
  const size = content.size ?? 0
  if (!('text' in content) || contents.length > 1) throw invalid(noText, 'unreadable', { line: 1, column: 1 })
  if (Math.max(size, Buffer.byteLength(content.text)) <= maxBytes) return content
  throw tooLarge(`The file has more than ${maxBytes} bytes, too many for a file of settings.`, { limit: maxBytes })
}

function faulty({ what, offset, limit }: SettingsFault, text: string, format: SettingsFormat): ResourceError {
  const { line, column } = positionOf(text, offset)
  const message = `The file cannot be read as ${format}. Line ${line}, column ${column}: ${what}`
  if (limit === undefined) return invalid(message, 'unreadable', { line, column })
  return tooLarge(message, { reason: 'too-much', line, column, limit })
}

function unreadableFileError(outcome: { readonly failure: string } | { readonly result: unknown }): ResourceError {
  if ('failure' in outcome && outcome.failure === 'late')
    return tooLarge('Reading the file exceeds the time limit ("timeout"). Split the file, or raise the limit.', {
      reason: 'too-much',
    })
  return new ResourceError('internal', 'a file of settings could not be read')
}
