import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { createLruCache } from '../core/kit/lru.ts'
import { defined } from '../core/kit/object.ts'
import { createTaskWorker, type TaskFailure, workerLimits } from '../core/kit/workers.ts'
import type { FindOptions } from './find.ts'
import type { CleanBytes, CleanPart, RedactionJob, ScanAnswer, TextWindow } from './window.ts'

export interface Redactor {
  window(window: TextWindow, options: FindOptions, signal: AbortSignal): Promise<CleanPart | TaskFailure>
  bytes(bytes: Uint8Array, options: FindOptions, signal: AbortSignal): Promise<CleanBytes | TaskFailure>
  /** Ends the worker. The next job starts it again. */
  close(): void
}

interface RedactorOptions {
  /** Time-out of a job, in milliseconds. Default `workerLimits.redaction`: 5000. */
  readonly timeoutMs?: number
  /** File that the worker runs; tests use one that hangs or dies. */
  readonly file?: string
}

/** Creates a redactor with a worker of its own. */
export function createRedactor(options: RedactorOptions = {}): Redactor {
  const { file = join(import.meta.dirname, '../../dist/secrets/worker.js') } = options
  const host = createTaskWorker<RedactionJob, ScanAnswer>(file, {
    ...workerLimits.redaction,
    ...defined({ timeoutMs: options.timeoutMs }),
  })
  const run = async (job: RedactionJob, signal: AbortSignal): Promise<ScanAnswer | TaskFailure> => {
    const outcome = await host.run(job, signal)
    return 'failure' in outcome ? outcome.failure : outcome.result
  }
  const harmless = createSecretFreeCache()
  return {
    window: async (window, { path, without }, signal) => {
      signal.throwIfAborted()
      const { text, from, final, head } = window
      const key = contentKey(['window', path, without ?? [], from, final, head ?? null], text)
      const harmlessEnd = harmless.get(key)
      if (harmlessEnd !== undefined) return { text: text.slice(from, harmlessEnd), cut: harmlessEnd, changed: false }
      const answer = await run({ window, path, ...defined({ without }) }, signal)
      if (typeof answer === 'string') return answer
      if (!('part' in answer)) return 'crashed'
      if (!answer.part.changed) harmless.set(key, answer.part.cut)
      return answer.part
    },
    bytes: async (bytes, { path, without }, signal) => {
      signal.throwIfAborted()
      const key = contentKey(['bytes', path, without ?? []], bytes)
      if (harmless.get(key) !== undefined) return { bytes, changed: false }
      const answer = await run({ bytes, path, ...defined({ without }) }, signal)
      if (typeof answer === 'string') return answer
      if (!('clean' in answer)) return 'crashed'
      if ('bytes' in answer.clean && !answer.clean.changed) harmless.set(key, bytes.length)
      return answer.clean
    },
    close: host.close,
  }
}

let shared: Redactor | undefined

/** The redactor of this process. Its worker starts at the first job, and ends when it is idle. */
export function sharedRedactor(): Redactor {
  shared ??= createRedactor()
  return shared
}

const maxContents = 16_384

/**
 * Creates a cache of contents in which no secret was found. The keys are those of {@link contentKey}: the cache holds no part of a content.
 * The values are the ends of the harmless parts.
 */
export function createSecretFreeCache() {
  const { get, set } = createLruCache<number>(maxContents)
  return { get, set }
}

/**
 * Returns a hash of a content and of the settings on which the result depends.
 *
 * @param job Written as JSON. Different settings of the search must have different JSON.
 */
export function contentKey(job: readonly unknown[], content: string | Uint8Array): string {
  const hash = createHash('sha256').update(`${JSON.stringify(job)}\n`)
  // Different texts have different bytes in UTF-16. In UTF-8 all lone surrogates have the same bytes.
  return (typeof content === 'string' ? hash.update(content, 'utf16le') : hash.update(content)).digest('base64')
}
