import { createHash } from 'node:crypto'
import { unavailable } from '../core/errors.ts'
import { defined } from '../core/kit/object.ts'
import type { Log } from '../core/log.ts'
import type { Provider } from '../core/provider.ts'
import type { Scrubber } from '../core/scrub.ts'
import type { LazyStore } from '../providers/source.ts'
import { findTesseract, type InstalledOcr, missingLanguages, readPicture } from '../providers/tesseract.ts'
import { redactedKey } from '../wrap/redacted/cleaner.ts'
import { createScanQueue, type KeptScans, type PictureReader, type ScanQueue, type ScanReading } from '../wrap/scans.ts'

interface OcrConfig {
  readonly languages: readonly string[]
  readonly maxPages?: number | undefined
  readonly timeout?: number | undefined
}

interface ScanSettings {
  readonly log: Log
  /** The mode of redaction. Results that were stored with another mode are not used. */
  readonly redact: string
  readonly through?: (provider: Provider) => Provider
  readonly scrubber?: Scrubber
  readonly store?: LazyStore
}

const collection = 'ocr'
const bounds = { rows: 100_000, bytes: 256 * 1024 * 1024 }

/** OCR is done by `tesseract`. Its results are kept in the store, if there is one. */
export function openScanQueue({ languages, maxPages, timeout }: OcrConfig, settings: ScanSettings): ScanQueue {
  const { log, store } = settings
  return createScanQueue({
    reader: createPictureReader(languages),
    log,
    ...defined({ maxPages, timeoutMs: timeout }),
    ...(store === undefined ? {} : { kept: createKept(store, JSON.stringify([languages, maxPages]), settings) }),
  })
}

function createPictureReader(languages: readonly string[]): PictureReader {
  let installed: InstalledOcr | undefined
  return {
    missing: async (signal) => {
      installed = await findTesseract(signal)
      if (installed === undefined) return 'tesseract is not on the PATH of this process, or does not run.'
      const missing = missingLanguages(installed, languages)
      return missing.length === 0 ? undefined : `tesseract lacks the languages ${missing.join(', ')}.`
    },
    read: (picture, signal) => {
      if (installed === undefined) throw unavailable('tesseract is not on the PATH of this process, or does not run.')
      return readPicture(installed.program, languages, picture, signal)
    },
  }
}

function createKept({ open }: LazyStore, way: string, { redact, through, scrubber }: ScanSettings): KeptScans {
  const rowOf = (key: string) =>
    createHash('sha256')
      .update(JSON.stringify([key, way, redact]))
      .digest('hex')
  return {
    get: async (key) => {
      const row = await (await open()).collection(collection).get(rowOf(key))
      return row === undefined ? undefined : (JSON.parse(Buffer.from(row.value).toString()) as ScanReading)
    },
    put: async (key, path, { text, ...facts }) => {
      const clean = await withoutSecrets(text, path, through)
      if (clean === undefined) return
      const reading: ScanReading = { text: scrubber?.scrub(clean) ?? clean, ...facts }
      const rows = (await open()).collection(collection)
      await rows.put({ key: rowOf(key), value: Buffer.from(JSON.stringify(reading)) })
      await rows.evict(bounds)
    },
  }
}

/** Returns a text as redaction shows it; `undefined` if redaction withholds the text, which is then not stored. */
async function withoutSecrets(
  text: string,
  path: string,
  through: ScanSettings['through'],
): Promise<string | undefined> {
  if (through === undefined) return text
  const source: Provider = {
    list: async function* () {},
    read: async () => [{ text, mimeType: 'text/plain' }],
  }
  const context = { principal: { id: 'hikidashi-ocr', roles: [] }, signal: new AbortController().signal }
  const [content] = await through(source).read({ path, params: new Map([['as', 'text']]) }, context)
  if (content === undefined || !('text' in content) || content.meta?.[redactedKey] === 'withheld') return undefined
  return content.text
}
