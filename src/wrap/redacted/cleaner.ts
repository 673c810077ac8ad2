import { ResourceError } from '../../core/errors.ts'
import { compileGlobs } from '../../core/glob.ts'
import type { Log } from '../../core/log.ts'
import type { Content, ContentFacts } from '../../core/provider.ts'
import type { Scrubber } from '../../core/scrub.ts'
import { isVault } from '../../secrets/credential-files.ts'
import type { Layer } from '../../secrets/find.ts'
import type { Redactor } from '../../secrets/redactor.ts'
import { isTableFile } from '../../secrets/tables.ts'
import type { Window } from '../../secrets/window.ts'
import { cleanFacts, type Reason, redactedKey, type Seal, withheld } from './facts.ts'
import { type Clean, cleanParts, piecesOf, type ReadPiece } from './parts.ts'

interface CleanerOptions {
  readonly mode: 'mask' | 'withhold'
  readonly seal: Seal
  readonly redactor: Redactor
  readonly scrubber: Scrubber | undefined
  /** Globs of files that are not withheld for their names. */
  readonly except: readonly string[]
  readonly log: Log
  readonly without: readonly Layer[]
}

/** Removes the secrets from contents. */
export interface Cleaner {
  /** A complete content. */
  whole(content: Content, requested: string, signal: AbortSignal): Promise<Content>
  /**
   * Yields the parts of a text at a path, from the beginning of a part on; at a fault, the last one is the reason why the rest is
   * withheld.
   */
  parts(path: string, read: ReadPiece, from: number, signal: AbortSignal): AsyncGenerator<Clean | Reason>
  facts(facts: ContentFacts, requested: string): ContentFacts
  /** Returns the replacement for a withheld content. */
  withhold(reason: Reason, path: string, facts: ContentFacts): Content
  isVault(path: string): boolean
}

/** Maximum size of a stream that is held in memory, in bytes. */
const maxStream = 64 * 1024 * 1024

export function createCleaner(options: CleanerOptions): Cleaner {
  const { mode, seal, redactor, scrubber, except, log, without } = options
  const isExcepted = except.length === 0 ? () => false : compileGlobs(except)
  const cleaner: Cleaner = {
    whole: async (content, requested, signal) => {
      const path = content.path ?? requested
      const facts = cleanFacts(content, requested, seal)
      if (cleaner.isVault(path)) return cleaner.withhold('vault', path, facts)
      if ('text' in content) return wholeText(content.text, path, facts, signal)
      return wholeBytes('bytes' in content ? content.bytes : await collect(content), path, facts, signal)
    },
    parts: async function* (path, read, from, signal) {
      const redact = (window: Window) => redactor.window(window, { path, without }, signal)
      for await (const part of cleanParts(read, from, redact, isTableFile(path))) {
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
    isVault: (path) => !without.includes('vaults') && isVault(path) && !isExcepted(path),
  }

  const wholeText = async (text: string, path: string, facts: ContentFacts, signal: AbortSignal): Promise<Content> => {
    const pieces: string[] = []
    let changed = false
    for await (const part of cleaner.parts(path, piecesOf(Buffer.from(text)), 0, signal)) {
      if (typeof part === 'string') return cleaner.withhold(part, path, facts)
      pieces.push(part.text)
      changed ||= part.changed
    }
    if (changed && mode === 'withhold') return cleaner.withhold('secret', path, facts)
    const clean = pieces.join('')
    return { ...markedFacts(facts, changed), size: Buffer.byteLength(clean), text: clean }
  }

  const wholeBytes = async (
    bytes: Uint8Array,
    path: string,
    facts: ContentFacts,
    signal: AbortSignal,
  ): Promise<Content> => {
    if (without.includes('bytes')) return { ...facts, bytes }
    const outcome = await redactor.bytes(bytes, { path, without }, signal)
    if (typeof outcome === 'string') return cleaner.withhold(outcome, path, facts)
    if ('withheld' in outcome) return cleaner.withhold(outcome.withheld, path, facts)
    const clean = scrubber?.scrubBytes(outcome.bytes) ?? outcome.bytes
    const changed = outcome.changed || clean !== outcome.bytes
    if (changed && mode === 'withhold') return cleaner.withhold('secret', path, facts)
    return { ...markedFacts(facts, changed), size: clean.length, bytes: clean }
  }

  return cleaner
}

/** Members of a content from which something was removed: clients may not cache it without limit. */
export function markedFacts(facts: ContentFacts, changed: boolean): ContentFacts {
  if (!changed) return facts
  const { immutable: _, ...rest } = facts
  return { ...rest, meta: { ...facts.meta, [redactedKey]: true } }
}

type Stream = { readonly stream: AsyncIterable<Uint8Array>; readonly length: number }

async function collect({ stream, length }: Stream): Promise<Buffer> {
  const pieces: Uint8Array[] = []
  let collected = 0
  if (length <= maxStream)
    for await (const piece of stream) {
      pieces.push(piece)
      collected += piece.length
      if (collected > maxStream) break
    }
  if (Math.max(collected, length) <= maxStream) return Buffer.concat(pieces)
  throw new ResourceError(
    'too-large',
    `The resource has ${length} bytes. What is no text is looked through for secrets as a whole, up to ${maxStream} bytes.`,
    { reason: 'too-large', size: length, limit: maxStream },
  )
}
