import { join } from 'node:path'
import { invalid, isResourceError, ResourceError, tooLarge, unavailable } from '../core/errors.ts'
import { createLruCache } from '../core/kit/lru.ts'
import { defined } from '../core/kit/object.ts'
import { createTaskWorker, type TaskFailure, type TaskOutcome, workerLimits } from '../core/kit/workers.ts'
import { metaKeys } from '../core/meta.ts'
import type { Content, ContentMetadata, Context, Provider, ReadRequest, Template } from '../core/provider.ts'
import {
  type DocumentFormat,
  documentFormatOf,
  namesEncodings,
  onlyPicturesMessage,
  type Reading,
  type ReadingAnswer,
  type ReadingForm,
  type ReadingJob,
  readingFormsOf,
  scanFault,
  scanWaitingFault,
} from '../readings/formats.ts'
import { readWhole } from './part.ts'
import type { ScannedPdf, ScanQueue, ScanReading } from './scans.ts'

export interface ReadableOptions {
  /** Maximum size of a document, in bytes. Default 32 MiB. */
  readonly maxBytes?: number
  /** Maximum length of the text of a document, in characters. Default 8,000,000. */
  readonly maxCharacters?: number
  readonly timeoutMs?: number
  /** Maximum memory of the worker, in MiB, in addition to that of PDFium (at most 256). Default `workerLimits.documents`: 256. */
  readonly memoryMb?: number
  /** Reads the bytes of documents as they are stored, if `provider` decodes texts. Default: `provider`. */
  readonly stored?: Provider
  /** Reads PDF pages that hold only pictures or unreadable text by OCR. Default: they are not read. */
  readonly scans?: ScanQueue
}

/** Facts in the `_meta` of a document that has readings, and of a reading. */
export interface ReadingFacts {
  readonly forms?: readonly ReadingForm[]
  /** The MIME type of the document that this is a reading of. */
  readonly of?: string
  readonly parts?: number
  /** Number of pages that hold only pictures or unreadable text, and are not read. */
  readonly pictures?: number
  /** Number of pages that OCR has read. */
  readonly ocr?: number
  /** Whether the document waits for OCR of the pages that `pictures` counts. */
  readonly waiting?: true
}

export const readingKey = metaKeys.reading

const template: Template = {
  template: '{+path}{?as}',
  name: 'Reading of a document',
  title: 'A document as text',
  description:
    'as=text is the text of a PDF, an office document, a book, a mail or a page of HTML; as=markdown keeps the headings, lists, ' +
    'tables and links of all but PDF.',
}

/** Maximum number of waiting readings. */
const maxWaiting = 16
/** Maximum number of unpacked bytes per byte of the document size limit. */
const unpackedPerByte = 8
/** Maximum length of all cached texts, in characters. */
const keptCharacters = 16 * 1024 * 1024

/** How long a document that a worker could not read is not tried again, in milliseconds. */
const hopelessMs = 10 * 60_000

type ReadContent = Content & { readonly text: string }

const forms: readonly string[] = ['text', 'markdown'] satisfies readonly ReadingForm[]

/**
 * Adds readings to documents of each {@link DocumentFormat}: `?as=text`, and `?as=markdown` for all but PDF. A worker thread reads the
 * documents one after the other, within limits of size, memory and time. The size of a reading is that of its text; its version is that of
 * the document. Reads throw ResourceError `invalid` (reasons `parameter`, `unreadable`, `withheld`), `too-large`, and `unavailable` if too
 * many documents wait.
 */
export function readable(provider: Provider, options: ReadableOptions = {}): Provider {
  const { maxBytes = 32 * 1024 * 1024, maxCharacters = 8_000_000, stored = provider, scans } = options
  const { watch } = provider
  const { timeoutMs = workerLimits.documents.timeoutMs, memoryMb = workerLimits.documents.memoryMb } = options
  const limits = { characters: maxCharacters, unpacked: maxBytes * unpackedPerByte }
  const file = join(import.meta.dirname, '../../dist/readings/worker.js')
  const host = createTaskWorker<ReadingJob, ReadingAnswer>(file, { timeoutMs, memoryMb })
  const cache = createLruCache<ReadContent>(keptCharacters, ({ text }) => text.length)
  const hopeless = createLruCache<{ readonly error: ResourceError; readonly until: number }>(1000)
  let waiting = 0

  const run = async (job: ReadingJob, { signal }: Context): Promise<TaskOutcome<ReadingAnswer>> => {
    if (waiting >= maxWaiting) throw unavailable('Too many documents wait to be read. Try again later.')
    waiting++
    try {
      return await host.run(job, signal)
    } finally {
      waiting--
    }
  }

  const runJob: ScanReaderOptions['runJob'] = async (bytes, job, signal) => {
    const outcome = await host.run({ format: 'pdf', form: 'text', bytes, limits, ...job }, signal)
    if ('failure' in outcome) throw readingError(outcome.failure, timeoutMs)
    return readingOf(outcome.result)
  }
  const scanReader = createScanReader({ provider, scans, maxBytes, runJob })

  const readAs = async (
    form: ReadingForm,
    format: DocumentFormat,
    request: ReadRequest,
    version: string | undefined,
    context: Context,
  ) => {
    const keyOf = (of: string | undefined) =>
      of === undefined ? undefined : JSON.stringify([context.principal.id, request.path, [...request.params], form, of])
    const cacheKey = keyOf(version)
    const cachedReading = cacheKey === undefined ? undefined : cache.get(cacheKey)
    if (cachedReading !== undefined) return cachedReading
    const failure = cacheKey === undefined ? undefined : hopeless.get(cacheKey)
    if (failure !== undefined && performance.now() < failure.until) throw failure.error
    const progress = cacheKey === undefined ? undefined : scanReader.begun(cacheKey)
    if (progress !== undefined) return progress
    if (!readingFormsOf(format).includes(form))
      throw invalid('A PDF cannot be read as Markdown. Write ?as=text.', 'parameter', { parameter: 'as' })
    const source = namesEncodings(format) ? stored : provider
    const { bytes, facts } = await readWhole(source, request, maxBytes, tooLargeFor(maxBytes), context)
    const key = keyOf(facts.version)
    const outcome = await run({ format, form, bytes, limits, ...(format === 'pdf' ? { ocr: new Map() } : {}) }, context)
    if ('failure' in outcome) {
      const error = readingError(outcome.failure, timeoutMs)
      if (key !== undefined) hopeless.set(key, { error, until: performance.now() + hopelessMs })
      throw error
    }
    const whole = readingOf(outcome.result)
    const { reading, isWaiting } = await scanReader.read(whole, bytes, { key, request }, context)
    const content = readingContent(reading, form, facts, isWaiting)
    if (isWaiting) scanReader.begin(key, bytes, content)
    else if (key !== undefined) cache.set(key, content)
    return content
  }

  const readText = async (form: ReadingForm, request: ReadRequest, context: Context): Promise<readonly Content[]> => {
    const { range: _, ...whole } = request
    const entry = await provider.stat?.(request.path, context)
    const format = documentFormatOf(request.path, entry?.mimeType)
    if (format !== undefined) return [await readAs(form, format, whole, entry?.version, context)]
    // The content may have another type than its entry, or a type although the entry has none.
    const contents = await provider.read(request, context)
    const [content] = contents
    const documentFormat = content === undefined ? undefined : documentFormatOf('', content.mimeType)
    if (documentFormat !== undefined) return [await readAs(form, documentFormat, whole, content?.version, context)]
    const isMarkdown = content?.mimeType?.startsWith('text/markdown') === true
    if ((form === 'text' || isMarkdown) && contents.every((one) => 'text' in one)) return contents
    throw invalid(
      form === 'text'
        ? 'The format of the resource cannot be read as text. Leave out ?as.'
        : 'The format of the resource cannot be read as Markdown. Leave out ?as.',
      'parameter',
      { parameter: 'as' },
    )
  }

  const readAsked = async (form: string, request: ReadRequest, context: Context): Promise<readonly Content[]> => {
    if (!isForm(form))
      throw invalid('?as must be text or markdown: write ?as=text or ?as=markdown.', 'parameter', {
        parameter: 'as',
      })
    const params = new Map([...request.params].filter(([name]) => name !== 'as'))
    return readText(form, { ...request, params }, context)
  }

  return {
    ...provider,
    read: async (request, context) => {
      const form = request.params.get('as')
      if (form !== undefined) return readAsked(form, request, context)
      const contents = await provider.read(request, context)
      return request.range === undefined ? contents.map((content) => withForms(content, request.path)) : contents
    },
    templates: async (context) => [...((await provider.templates?.(context)) ?? []), template],
    ...(scans !== undefined && watch !== undefined
      ? { watch: async (signal) => scans.withChanges(await watch(signal), signal) }
      : {}),
    close: async () => {
      scans?.close()
      host.close()
      await provider.close?.()
    },
  }
}

interface ScanReaderOptions {
  readonly provider: Provider
  readonly scans: ScanQueue | undefined
  readonly maxBytes: number
  readonly runJob: (bytes: Uint8Array, job: Partial<ReadingJob>, signal: AbortSignal) => Promise<Reading>
}

function createScanReader({ provider, scans, maxBytes, runJob }: ScanReaderOptions) {
  /** Documents that wait for OCR: the keys of their contents, and what is read of them so far. */
  const unfinished = createLruCache<{ readonly bytesKey: string; readonly content: ReadContent | undefined }>(1000)
  const begin = (key: string | undefined, bytes: Uint8Array, content?: ReadContent): void => {
    if (key !== undefined && scans !== undefined) unfinished.set(key, { bytesKey: scans.contentHash(bytes), content })
  }

  const scanOf = (pictures: readonly number[], request: ReadRequest, context: Context): ScannedPdf => ({
    path: request.path,
    pictures,
    readBytes: async (signal) =>
      (await readWhole(provider, request, maxBytes, tooLargeFor(maxBytes), { ...context, signal })).bytes,
    draw: async (document, page, signal) => {
      try {
        return (await runJob(document, { form: 'picture', page }, signal)).picture
      } catch (error) {
        if (isResourceError(error, 'invalid') || isResourceError(error, 'too-large')) return undefined
        throw error
      }
    },
    compose: (document, ocr, signal) => runJob(document, { ocr }, signal),
  })

  return {
    /** Returns what has been read of a document that waits for OCR, or throws if nothing has. Undefined: the document does not wait. */
    begun: (key: string): ReadContent | undefined => {
      const scan = unfinished.get(key)
      if (scan === undefined || scans?.isWaiting(scan.bytesKey) !== true) return undefined
      if (scan.content === undefined) throw unreadScan('waiting')
      return scan.content
    },
    begin,
    /** Returns what is known of a document, and whether OCR will read more of it. Throws if no page can be read now. */
    read: async (
      reading: Reading,
      bytes: Uint8Array,
      { key, request }: { readonly key: string | undefined; readonly request: ReadRequest },
      context: Context,
    ): Promise<{ readonly reading: Reading & Partial<ScanReading>; readonly isWaiting: boolean }> => {
      const { pictures = [], hasText = false } = reading
      if (pictures.length === 0) return { reading, isWaiting: false }
      if (scans === undefined) {
        if (hasText) return { reading, isWaiting: false }
        throw invalid(onlyPicturesMessage, 'unreadable', { fault: scanFault })
      }
      const scanReading = await scans.find(bytes, scanOf(pictures, request, context))
      if (typeof scanReading === 'object') return { reading: scanReading.reading, isWaiting: false }
      if (hasText) return { reading, isWaiting: true }
      begin(key, bytes)
      throw unreadScan(scanReading)
    },
  }
}

function unreadScan(why: keyof typeof unread): ResourceError {
  return invalid(`${onlyPicturesMessage} ${unread[why]}`, 'unreadable', { fault: scanWaitingFault })
}

function isForm(form: string): form is ReadingForm {
  return forms.includes(form)
}

function withForms(content: Content, path: string): Content {
  const format = documentFormatOf(content.path ?? path, content.mimeType)
  if (format === undefined) return content
  const readingFacts: ReadingFacts = { forms: readingFormsOf(format) }
  return { ...content, meta: { ...content.meta, [readingKey]: readingFacts } }
}

function readingError(failure: TaskFailure, timeoutMs: number): ResourceError {
  return failure === 'late'
    ? tooLarge(`Reading the document as text takes longer than ${timeoutMs} ms. Leave out ?as to read its bytes.`, {
        reason: 'too-much',
      })
    : tooLarge(
        'Reading the document as text exceeds the memory limit, or the document is damaged. Leave out ?as to read its bytes.',
        {
          reason: 'too-much',
        },
      )
}

function readingOf(answer: ReadingAnswer): Reading {
  if ('reading' in answer) return answer.reading
  throw new ResourceError(answer.kind, answer.message, { reason: answer.reason })
}

const unread = {
  waiting: 'OCR is reading them: ask for the text again later.',
  missing: 'OCR is not available now: see the log of the server.',
}

function readingContent(
  { text, title, parts, pictures = [], ocr }: Reading & Partial<ScanReading>,
  form: ReadingForm,
  { version, path, immutable, mimeType, meta }: ContentMetadata,
  isWaiting = false,
): ReadContent {
  const readingFacts: ReadingFacts = {
    ...defined({ of: mimeType, parts, ocr }),
    ...(pictures.length === 0 ? {} : { pictures: pictures.length }),
    ...(isWaiting ? { waiting: true } : {}),
  }
  return {
    ...defined({ path, version, title, immutable }),
    mimeType: form === 'markdown' ? 'text/markdown' : 'text/plain',
    size: Buffer.byteLength(text),
    meta: { ...meta, [readingKey]: readingFacts },
    text,
  }
}

function tooLargeFor(limit: number): (size: number | undefined) => ResourceError {
  return (size) =>
    tooLarge(
      `The document has more than ${limit} bytes, too many to be read as text. Leave out ?as to read its bytes.`,
      {
        limit,
        ...defined({ size }),
      },
    )
}
