import { createHmac } from 'node:crypto'
import { tooLarge } from '../../core/errors.ts'
import { compileGlobs } from '../../core/glob.ts'
import { defined } from '../../core/kit/object.ts'
import { wholeCharacters } from '../../core/kit/utf8.ts'
import type { TaskFailure } from '../../core/kit/workers.ts'
import type { Log } from '../../core/log.ts'
import type { Completion, Content, ContentMetadata, Entry } from '../../core/provider.ts'
import { redactedMark, type Scrubber } from '../../core/scrub.ts'
import { isTableFile } from '../../secrets/assignments.ts'
import { isCredentialFile } from '../../secrets/credential-files.ts'
import { type DetectionLayer, redactPhrase } from '../../secrets/find.ts'
import type { Redactor } from '../../secrets/redactor.ts'
import { findKnownTokens } from '../../secrets/shapes.ts'
import { type CleanPart, contextBytes, type TextWindow, windowBytes } from '../../secrets/window.ts'

/** Key in `_meta` of the mark that something was removed from a content. */
export const redactedKey = 'dev.hikidashi/redacted'

/** Version of the redaction. Increase it whenever the same source can give another result. */
const policy = 1

/** Turns a version of the source into one that reveals nothing of it. */
export type Seal = (path: string, version: string) => string

/** The hash is keyed, so that it cannot be compared with the hash of a guess. */
export function createSeal(key: Uint8Array, mode: string): Seal {
  return (path, version) =>
    createHmac('sha256', key)
      .update(JSON.stringify([policy, mode, path, version]))
      .digest('base64url')
      .slice(0, 22)
}

/** Whether a path contains a token of a recognisable form. */
export function isSecretPath(path: string): boolean {
  return /[\w-]{16}/.test(path) && findKnownTokens(path).length > 0
}

/** Returns an entry without secrets, and without the size. */
export function cleanEntry({ size: _, version, name, title, description, meta, ...rest }: Entry, seal: Seal): Entry {
  return {
    ...rest,
    ...defined({ name: cleanPhrase(name), title: cleanPhrase(title), description: cleanPhrase(description) }),
    ...cleanMeta(meta),
    ...(version === undefined ? {} : { version: seal(rest.path, version) }),
  }
}

/** Returns the facts of a content without secrets, sizes and ranges. */
export function cleanFacts(content: ContentMetadata, requested: string, seal: Seal): ContentMetadata {
  const { path, title, mimeType, version, immutable, meta } = content
  return {
    ...defined({ path, title: cleanPhrase(title), mimeType, immutable }),
    ...(version === undefined ? {} : { version: seal(path ?? requested, version) }),
    ...cleanMeta(meta),
  }
}

export function cleanPhrase(text: string | undefined): string | undefined {
  return text === undefined ? undefined : redactPhrase(text)
}

export function cleanMeta(meta: Meta | undefined): { readonly meta?: Meta } {
  return meta === undefined ? {} : { meta: cleanValue(meta, 0) as Meta }
}

type Meta = Readonly<Record<string, unknown>>

/** Returns a JSON value with the secrets removed from its keys and texts. Objects and arrays below `maxDepth` levels become `[redacted]`. */
export function cleanValue(value: unknown, depth: number, maxDepth = 8): unknown {
  if (typeof value === 'string') return redactPhrase(value)
  if (typeof value !== 'object' || value === null) return value
  if (depth > maxDepth) return redactedMark
  if (Array.isArray(value)) return value.map((member) => cleanValue(member, depth + 1, maxDepth))
  return Object.fromEntries(
    Object.entries(value).map(([key, member]) => [redactPhrase(key), cleanValue(member, depth + 1, maxDepth)]),
  )
}

/** Returns a completion without the values that contain a secret, and then without `total`. */
export function cleanCompletion({ values, total, hasMore }: Completion): Completion {
  const phrases = values.filter((value) => redactPhrase(value) === value)
  if (phrases.length === values.length) return { values, ...defined({ total, hasMore }) }
  return { values: phrases, ...defined({ hasMore }) }
}

/** Why a content is withheld. `vault`: its file name is that of a file with credentials. */
type Reason = TaskFailure | 'secret' | 'encoding' | 'vault'

const reasons: Readonly<Record<Reason, string>> = {
  secret: 'it contains a secret that cannot be removed from it.',
  vault: 'files with this name usually contain secrets.',
  encoding: 'it is text in an encoding that cannot be searched for secrets.',
  late: 'it could not be searched for secrets in time. Read a part of it.',
  crashed: 'it could not be searched for secrets.',
}

function withheld(reason: Reason, { path, title }: ContentMetadata): Content {
  return {
    ...defined({ path, title }),
    mimeType: 'text/plain',
    meta: { [redactedKey]: 'withheld' },
    text: `${redactedMark} This content is withheld: ${reasons[reason]}\n`,
  }
}

interface CleanerOptions {
  readonly mode: 'mask' | 'withhold'
  readonly seal: Seal
  readonly redactor: Redactor
  readonly scrubber: Scrubber | undefined
  /** Globs of files that are not withheld for their names. */
  readonly except: readonly string[]
  readonly log: Log
  readonly without: readonly DetectionLayer[]
}

export interface Cleaner {
  /**
   * Returns a complete content without secrets, or its replacement if it is withheld.
   *
   * @param head The beginning of the table of which the content is the end.
   */
  whole(content: Content, requested: string, signal: AbortSignal, head?: string): Promise<Content>
  /** Yields the parts of a text without secrets. If the text cannot be scanned further, the last value is the reason. */
  parts(path: string, read: ReadPiece, from: number, signal: AbortSignal, head?: string): AsyncGenerator<Clean | Reason>
  facts(facts: ContentMetadata, requested: string): ContentMetadata
  withhold(reason: Reason, path: string, facts: ContentMetadata): Content
  isVault(path: string): boolean
}

/** Maximum size of a stream that is held in memory, in bytes. */
const maxStreamBytes = 64 * 1024 * 1024

export function createCleaner(options: CleanerOptions): Cleaner {
  const { mode, seal, redactor, scrubber, except, log, without } = options
  const isExcepted = except.length === 0 ? () => false : compileGlobs(except)
  const cleaner: Cleaner = {
    whole: async (content, requested, signal, head) => {
      const path = content.path ?? requested
      const facts = cleanFacts(content, requested, seal)
      if (cleaner.isVault(path)) return cleaner.withhold('vault', path, facts)
      if ('text' in content) return wholeText(content.text, path, facts, signal, head)
      return wholeBytes('bytes' in content ? content.bytes : await readWholeStream(content), path, facts, signal)
    },
    parts: async function* (path, readPiece, from, signal, head) {
      const redact = (window: TextWindow) => redactor.window(window, { path, without }, signal)
      for await (const part of cleanParts(readPiece, from, redact, head ?? isTableFile(path))) {
        if (typeof part === 'string') {
          yield part
          return
        }
        const text = scrubber?.scrub(part.text) ?? part.text
        yield { ...part, text, changed: part.changed || text !== part.text }
      }
    },
    facts: (facts, requested) => cleanFacts(facts, requested, seal),
    withhold: (reason, path, facts) => {
      log(reason === 'late' || reason === 'crashed' ? 'warn' : 'debug', 'a content is withheld', { path, reason })
      return withheld(reason, facts)
    },
    isVault: (path) => !without.includes('vaults') && isCredentialFile(path) && !isExcepted(path),
  }

  const wholeText = async (
    text: string,
    path: string,
    facts: ContentMetadata,
    signal: AbortSignal,
    tableHead: string | undefined,
  ): Promise<Content> => {
    const pieces: string[] = []
    let isChanged = false
    for await (const part of cleaner.parts(path, createMemoryReader(Buffer.from(text)), 0, signal, tableHead)) {
      if (typeof part === 'string') return cleaner.withhold(part, path, facts)
      pieces.push(part.text)
      isChanged ||= part.changed
    }
    if (isChanged && mode === 'withhold') return cleaner.withhold('secret', path, facts)
    const clean = pieces.join('')
    return { ...factsAfterRemoval(facts, isChanged), size: Buffer.byteLength(clean), text: clean }
  }

  const wholeBytes = async (
    bytes: Uint8Array,
    path: string,
    facts: ContentMetadata,
    signal: AbortSignal,
  ): Promise<Content> => {
    if (without.includes('bytes')) return { ...facts, bytes }
    const outcome = await redactor.bytes(bytes, { path, without }, signal)
    if (typeof outcome === 'string') return cleaner.withhold(outcome, path, facts)
    if ('withheld' in outcome) return cleaner.withhold(outcome.withheld, path, facts)
    const clean = scrubber?.scrubBytes(outcome.bytes) ?? outcome.bytes
    const isChanged = outcome.changed || clean !== outcome.bytes
    if (isChanged && mode === 'withhold') return cleaner.withhold('secret', path, facts)
    return { ...factsAfterRemoval(facts, isChanged), size: clean.length, bytes: clean }
  }

  return cleaner
}

/** Returns the facts of a content. With `isChanged`, they say that something was removed, and are not immutable. */
export function factsAfterRemoval(facts: ContentMetadata, isChanged: boolean): ContentMetadata {
  if (!isChanged) return facts
  const { immutable: _, ...rest } = facts
  return { ...rest, meta: { ...facts.meta, [redactedKey]: true } }
}

type Stream = { readonly stream: AsyncIterable<Uint8Array>; readonly length: number }

async function readWholeStream({ stream, length }: Stream): Promise<Buffer> {
  const pieces: Uint8Array[] = []
  let collected = 0
  if (length <= maxStreamBytes)
    for await (const piece of stream) {
      pieces.push(piece)
      collected += piece.length
      if (collected > maxStreamBytes) break
    }
  if (Math.max(collected, length) <= maxStreamBytes) return Buffer.concat(pieces)
  throw tooLarge(
    `The resource has ${length} bytes. A content that is not text can be searched for secrets only up to ${maxStreamBytes} bytes.`,
    { reason: 'withheld', size: length, limit: maxStreamBytes },
  )
}

interface Piece {
  readonly bytes: Buffer
  /** Byte offset of the bytes in the text. */
  readonly start: number
  readonly final: boolean
}

/** Reads approximately the bytes of a text from `start` to `end`; they may be cut within a character. */
export type ReadPiece = (start: number, end: number) => Promise<Piece>

interface Clean {
  readonly text: string
  readonly next: number
  readonly final: boolean
  readonly changed: boolean
}

/**
 * Yields the parts of a text without their secrets, in order, from the beginning of a part. A failure is yielded as the last value.
 *
 * @param tableHead The beginning of a table of which the text is the end, or whether the text is a table: later windows get its
 *   beginning.
 */
async function* cleanParts(
  readPiece: ReadPiece,
  from: number,
  redact: (window: TextWindow) => Promise<CleanPart | TaskFailure>,
  tableHead: string | boolean = false,
): AsyncGenerator<Clean | TaskFailure> {
  let head = typeof tableHead === 'string' ? tableHead : undefined
  for (let at = from; ; ) {
    if (tableHead === true && head === undefined && at > contextBytes)
      head = (await readPiece(0, maxHeadBytes)).bytes.toString()
    const piece = await readPiece(Math.max(0, at - contextBytes), at + windowBytes + contextBytes)
    const whole = wholeCharacters(piece.bytes)
    // The last bytes of a text are shown even if they are not a complete character.
    const bytes = piece.bytes.subarray(piece.start === 0 ? 0 : whole.from, piece.final ? undefined : whole.to)
    const start = piece.start + (piece.start === 0 ? 0 : whole.from)
    const text = bytes.toString()
    // The source leaves out a byte order mark, so its first bytes may start after `at`.
    const begin = bytes.subarray(0, Math.max(0, at - start)).toString().length
    const part = await redact({ text, from: begin, final: piece.final, ...defined({ head }) })
    if (typeof part === 'string') {
      yield part
      return
    }
    const final = piece.final && part.cut === text.length
    at = start + Buffer.byteLength(text.slice(0, part.cut))
    yield { text: part.text, next: at, final, changed: part.changed }
    if (final) return
  }
}

/** The longest beginning of a table in which the names of its columns are searched, in bytes. */
export const maxHeadBytes = 64 * 1024

function createMemoryReader(bytes: Buffer): ReadPiece {
  return async (start, end) => ({ bytes: bytes.subarray(start, end), start, final: end >= bytes.length })
}
