import { createHash } from 'node:crypto'
import { invalid, isResourceError, type ResourceError } from '../core/errors.ts'
import { withResolvers } from '../core/kit/abort.ts'
import { createLruCache } from '../core/kit/lru.ts'
import { defined } from '../core/kit/object.ts'
import type { Log } from '../core/log.ts'
import type { Change } from '../core/provider.ts'
import { onlyPicturesMessage, type Picture, type Reading, scanFault } from '../readings/formats.ts'

/** A program that reads the text in pictures. */
export interface PictureReader {
  /** Resolves to the reason why the program cannot be used; undefined if it can. */
  missing(signal: AbortSignal): Promise<string | undefined>
  /** @throws ResourceError `unavailable` if it fails or exceeds a limit. */
  read(picture: Picture, signal: AbortSignal): Promise<string>
}

/** Results of OCR that outlive the process. */
export interface KeptScans {
  get(key: string): Promise<ScanReading | undefined>
  put(key: string, path: string, reading: ScanReading): Promise<void>
}

export interface ScanReading extends Pick<Reading, 'text' | 'parts' | 'pictures'> {
  /** Number of pages that OCR has read. */
  readonly ocr: number
}

export interface ScansOptions {
  readonly reader: PictureReader
  /** Maximum number of pages of one document that are read. Default 100. */
  readonly maxPages?: number
  /** Time-out of one document, in milliseconds: later pages are not read. Default 600,000. */
  readonly timeoutMs?: number
  readonly kept?: KeptScans
  readonly log?: Log
}

/** A PDF with pages that hold only pictures or unreadable text. */
export interface ScannedPdf {
  readonly path: string
  /** Indexes of these pages, from 0. */
  readonly pictures: readonly number[]
  readBytes(signal: AbortSignal): Promise<Uint8Array>
  /** Draws a page. Resolves to undefined if it cannot be drawn. */
  draw(bytes: Uint8Array, page: number, signal: AbortSignal): Promise<Picture | undefined>
  /** Returns the reading of the document with the texts of pages. */
  compose(bytes: Uint8Array, texts: ReadonlyMap<number, string>, signal: AbortSignal): Promise<Reading>
}

/** `waiting`: the scan waits for OCR. `missing`: OCR is not available, or too many documents wait. */
type Found = { readonly reading: ScanReading } | 'waiting' | 'missing'

/** Maximum number of waiting documents. */
const maxWaiting = 10_000
/** Maximum length of all results in memory, in characters. */
const keptCharacters = 4 * 1024 * 1024
/** Time after a failure before the next attempt, and time for which an answer of `missing` is valid, in milliseconds. */
const [failedMs, missingMs] = [10 * 60_000, 60_000]
/** Number of failed pages in a row after which a document is given up, and number of tries of a page. */
const [maxFailures, tries] = [3, 2]
const noText = '(OCR has found no text on this page.)'

let last: Promise<unknown> = Promise.resolve()
function inTurn<T>(work: () => Promise<T>): Promise<T> {
  const turn = last.then(work)
  last = turn.catch(() => {})
  return turn
}

/** Reads scans by OCR in the background. All queues of the process together read one document at a time. */
export function createScanQueue(options: ScansOptions) {
  const { reader, maxPages = 100, timeoutMs = 600_000, kept, log = () => {} } = options
  const waiting = new Map<string, ScannedPdf>()
  const readings = createLruCache<ScanReading>(keptCharacters, ({ text }) => text.length)
  const failedScans = createLruCache<{ readonly error: ResourceError; readonly until: number }>(1000)
  const listeners = new Set<(path: string) => void>()
  const closing = new AbortController()
  let isWorking = false
  let lastAnswer: { readonly reason: string | undefined; readonly until: number } | undefined

  const isMissing = async (): Promise<boolean> => {
    if (lastAnswer === undefined || performance.now() > lastAnswer.until) {
      const reason = await reader.missing(closing.signal)
      if (reason !== undefined && reason !== lastAnswer?.reason)
        log('warn', 'OCR cannot read the scans of a mount', { reason })
      lastAnswer = { reason, until: performance.now() + missingMs }
    }
    return lastAnswer.reason !== undefined
  }

  const readPage = async (scan: ScannedPdf, bytes: Uint8Array, page: number): Promise<string | undefined> => {
    const picture = await scan.draw(bytes, page, closing.signal)
    if (picture === undefined) return undefined
    for (let attempt = 1; ; attempt++) {
      try {
        return (await reader.read(picture, closing.signal)) || noText
      } catch (error) {
        if (closing.signal.aborted || !isResourceError(error)) throw error
        if (attempt < tries) continue
        log('warn', 'OCR cannot read a page', { path: scan.path, page: page + 1, error })
        return undefined
      }
    }
  }

  const readScan = async (key: string, scan: ScannedPdf): Promise<void> => {
    const bytes = await scan.readBytes(closing.signal)
    // The document has changed meanwhile.
    if (contentHash(bytes) !== key) return
    const texts = new Map<number, string>()
    const end = performance.now() + timeoutMs
    let failures = 0
    for (const page of scan.pictures.slice(0, maxPages)) {
      if (failures >= maxFailures || performance.now() > end) break
      const text = await readPage(scan, bytes, page)
      failures = text === undefined ? failures + 1 : 0
      if (text !== undefined) texts.set(page, text)
    }
    const { text, parts, hasText, pictures } = await scan.compose(bytes, texts, closing.signal)
    if (texts.size === 0 && hasText !== true) throw failedScan()
    const reading: ScanReading = { text, ocr: texts.size, ...defined({ parts, pictures }) }
    readings.set(key, reading)
    const isWhole = texts.size === Math.min(scan.pictures.length, maxPages)
    if (isWhole)
      await kept
        ?.put(key, scan.path, reading)
        .catch((error: unknown) => log('warn', 'a result of OCR cannot be stored', { error }))
  }

  const work = async (): Promise<void> => {
    if (isWorking) return
    isWorking = true
    try {
      for (let next = firstEntry(waiting); next !== undefined && !closing.signal.aborted; next = firstEntry(waiting)) {
        const [key, scan] = next
        await inTurn(() => readScan(key, scan)).catch((error: unknown) => {
          if (closing.signal.aborted) return
          const isFinal = isResourceError(error, 'invalid') || isResourceError(error, 'too-large')
          const resourceError = isFinal ? error : failedScan()
          if (!isFinal) log('warn', 'OCR cannot read a document', { path: scan.path, error })
          if (!isResourceError(error, 'unavailable') && !isResourceError(error, 'not-found'))
            failedScans.set(key, { error: resourceError, until: performance.now() + failedMs })
        })
        waiting.delete(key)
        if (!closing.signal.aborted) for (const listen of listeners) listen(scan.path)
      }
    } finally {
      isWorking = false
    }
  }

  return {
    /**
     * Returns the reading of a scan. If there is none yet, OCR begins if it is available, and a change of the path is reported at its end.
     *
     * @throws The error of an OCR that failed.
     */
    find: async (bytes: Uint8Array, scan: ScannedPdf): Promise<Found> => {
      const key = contentHash(bytes)
      if (waiting.has(key)) return 'waiting'
      const reading = readings.get(key) ?? (await keptOf(kept, key, log))
      if (reading !== undefined) return { reading: reading }
      const failure = failedScans.get(key)
      if (failure !== undefined && performance.now() < failure.until) throw failure.error
      if (await isMissing()) return 'missing'
      if (waiting.size >= maxWaiting || closing.signal.aborted) return 'missing'
      if (!waiting.has(key)) waiting.set(key, scan)
      void work()
      return 'waiting'
    },
    contentHash,
    /** Whether a document waits for OCR, by the key of its content. */
    isWaiting: (key: string): boolean => waiting.has(key),
    /** Adds to the changes of a source the documents with which OCR is done, also those that it could not read. */
    withChanges: (changes: AsyncIterable<Change>, signal: AbortSignal): AsyncIterable<Change> =>
      withEnded(changes, listeners, signal),
    close: (): void => closing.abort(new Error('The mount is closed.')),
  }
}

export type ScanQueue = ReturnType<typeof createScanQueue>

function failedScan(): ResourceError {
  return invalid(`${onlyPicturesMessage} OCR of its pages has failed: see the log of the server.`, 'unreadable', {
    fault: scanFault,
  })
}

function contentHash(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('base64url')
}

function firstEntry<K, V>(map: ReadonlyMap<K, V>): readonly [K, V] | undefined {
  for (const entry of map) return entry
  return undefined
}

async function keptOf(scans: KeptScans | undefined, key: string, log: Log): Promise<ScanReading | undefined> {
  try {
    return await scans?.get(key)
  } catch (error) {
    log('warn', 'the stored results of OCR cannot be read', { error })
    return undefined
  }
}

function withEnded(
  changes: AsyncIterable<Change>,
  listeners: Set<(path: string) => void>,
  signal: AbortSignal,
): AsyncIterable<Change> {
  const own: Change[] = []
  let wake = withResolvers<void>()
  const listen = (path: string) => {
    own.push({ path })
    wake.resolve()
  }
  listeners.add(listen)
  signal.addEventListener('abort', () => listeners.delete(listen), { once: true })
  const merge = async function* (): AsyncGenerator<Change> {
    const iterator = changes[Symbol.asyncIterator]()
    try {
      let next = iterator.next()
      for (;;) {
        const isOfSource = await Promise.race([next.then(() => true), wake.promise.then(() => false)])
        for (let change = own.shift(); change !== undefined; change = own.shift()) yield change
        wake = withResolvers()
        if (!isOfSource) continue
        const { done, value } = await next
        if (done === true) return
        yield value
        next = iterator.next()
      }
    } finally {
      listeners.delete(listen)
      // Not awaited, because it may wait for a change that never comes.
      void Promise.resolve(iterator.return?.()).catch(() => {})
    }
  }
  return merge()
}
