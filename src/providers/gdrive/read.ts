import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { invalid, notFound, ResourceError, tooLarge } from '../../core/errors.ts'
import { createLruCache } from '../../core/kit/lru.ts'
import { defined } from '../../core/kit/object.ts'
import { isText } from '../../core/kit/utf8.ts'
import { createTaskWorker, workerLimits } from '../../core/kit/workers.ts'
import { metaKeys } from '../../core/meta.ts'
import type { ByteRange, Content, ContentMetadata, Context, Params, ReadRequest } from '../../core/provider.ts'
import type { ReadingAnswer, ReadingJob, SheetText } from '../../readings/formats.ts'
import { createObjectReader } from '../objects/read.ts'
import { ObjectFault, type ObjectStore } from '../objects/store.ts'
import type { DriveClient } from './client.ts'
import {
  type DriveFile,
  type ExportFormats,
  exportFormatNames,
  exportFormatsOf,
  type RawFile,
  revisionOf,
  spreadsheetType,
  storedTypeOf,
} from './model.ts'
import { maxExportBytes } from './transport.ts'

export interface DescribedFile {
  readonly file: DriveFile
  readonly raw: RawFile
}

type ReadCall = Pick<Context, 'signal' | 'most'>

/** Maximum size of the cache of exports, in bytes, and of the cache of sheets, in characters. */
const keptBytes = 32 * 2 ** 20
/** Maximum size of an export that is read, in bytes: well above {@link maxExportBytes}, so that Google decides what is too large. */
const maxReadExportBytes = 4 * maxExportBytes

export function createFileReader(client: DriveClient, maxBytes: number) {
  const exports = createLruCache<Buffer>(keptBytes, ({ length }) => length)
  const workbooks = createLruCache<readonly SheetText[]>(keptBytes, (sheets) =>
    sheets.reduce((sum, { text }) => sum + text.length, 0),
  )
  const sheets = createSheets()
  /** The latest descriptions of the files being read. */
  const described = createLruCache<DriveFile>(1000)
  const readObject = createObjectReader(storeOf(client, described), maxBytes)

  const exported = async ({ id, version }: DriveFile, mimeType: string, signal: AbortSignal): Promise<Buffer> => {
    const key = [id, version, mimeType].join(' ')
    const bytes = exports.get(key) ?? (await client.export(id, mimeType, maxReadExportBytes, signal))
    exports.set(key, bytes)
    return bytes
  }

  const sheetsOf = async (file: DriveFile, mimeType: string, signal: AbortSignal): Promise<readonly SheetText[]> => {
    const key = `${file.id} ${file.version}`
    const texts = workbooks.get(key) ?? (await sheets.read(await exported(file, mimeType, signal), signal))
    workbooks.set(key, texts)
    return texts
  }

  const readSheets = async (
    { file, raw }: DescribedFile,
    mimeType: string,
    form: string | undefined,
    signal: AbortSignal,
  ): Promise<Content> => {
    const all = await sheetsOf(file, mimeType, signal)
    const names = all.map(({ name }) => name)
    const facts = { version: file.version, meta: metaOf(raw, { sheets: names }) }
    if (form === undefined) return { ...facts, mimeType: 'text/markdown', text: markdownOf(all) }
    const sheet = all.find(({ name }) => name === form)
    if (sheet === undefined) throw notFound('there is no such sheet')
    return { ...facts, title: sheet.name, mimeType: 'text/csv', text: sheet.text }
  }

  const readExport = async (
    one: DescribedFile,
    kind: ExportFormats,
    params: Params,
    signal: AbortSignal,
  ): Promise<Content> => {
    const { file, raw } = one
    const sheet = params.get('sheet')
    const form = params.get('form') ?? Object.keys(kind.forms)[0] ?? ''
    const mimeType = Object.hasOwn(kind.forms, form) ? kind.forms[form] : undefined
    if (mimeType === undefined)
      throw invalid(`The parameter "form" must be one of ${Object.keys(kind.forms).join(', ')}.`, 'parameter', {
        parameter: 'form',
      })
    if (sheet !== undefined && file.type !== spreadsheetType)
      throw invalid('The document is not a spreadsheet, so it has no sheets. Leave out "sheet".', 'parameter', {
        parameter: 'sheet',
      })
    if (file.type === spreadsheetType && form === 'csv') return readSheets(one, mimeType, sheet, signal)
    if (sheet !== undefined)
      throw invalid('A single sheet can be read only as CSV. Leave out "form".', 'parameter', { parameter: 'sheet' })
    const bytes = await exported(file, mimeType, signal)
    const facts: ContentMetadata = { mimeType, version: file.version, meta: metaOf(raw, {}) }
    const isTextual = /^text\/|svg/.test(mimeType) && isText(bytes)
    return isTextual ? { ...facts, text: bytes.toString().replace(/^\ufeff/, '') } : { ...facts, bytes }
  }

  const readStored = async ({ file, raw }: DescribedFile, range: ByteRange | undefined, context: ReadCall) => {
    described.set(file.id, file)
    const content = await readObject(file.id, file.name, range, context)
    const storedType = storedTypeOf(file)
    // A type that Drive knows is used, unless it is a text type and the bytes are binary.
    const isBelieved =
      storedType !== 'application/octet-stream' && ('text' in content || !storedType.startsWith('text/'))
    return { ...content, ...(isBelieved ? { mimeType: storedType } : {}), meta: metaOf(raw, {}) }
  }

  return {
    read: async (one: DescribedFile, { params, range }: ReadRequest, context: ReadCall): Promise<Content> => {
      const kind = exportFormatsOf(one.file.type)
      if (kind !== undefined) return readExport(one, kind, params, context.signal)
      if (params.has('form') || params.has('sheet'))
        throw invalid(
          'The file is not a Google document, so it has only its stored form. Leave out "form" and "sheet".',
          'parameter',
          { parameter: 'form' },
        )
      return readStored(one, range, context)
    },
    sheetNames: async (file: DriveFile, signal: AbortSignal): Promise<readonly string[]> => {
      const mimeType = exportFormatsOf(file.type)?.forms.csv
      if (mimeType === undefined) return []
      return (await sheetsOf(file, mimeType, signal)).map(({ name }) => name)
    },
    formNames: (file: DriveFile | undefined): readonly string[] =>
      file === undefined ? exportFormatNames : Object.keys(exportFormatsOf(file.type)?.forms ?? {}),
    close: () => sheets.close(),
  }
}

/** Returns Drive's stored files as an object store, whose keys are the ids of the files. */
function storeOf(client: DriveClient, described: ReturnType<typeof createLruCache<DriveFile>>): ObjectStore {
  const detailsOf = ({ id, size = 0, modified, version, type }: DriveFile) => ({
    key: id,
    size,
    version,
    mimeType: type,
    ...defined({ modified }),
  })
  const fileById = (id: string): DriveFile => {
    const file = described.get(id)
    if (file === undefined) throw new ResourceError('internal', 'a file is read whose metadata were not read before')
    return file
  }
  const unused = () => {
    throw new ResourceError('internal', 'this store of Drive neither lists nor gives links')
  }
  return {
    page: unused,
    link: unused,
    close: () => {},
    head: async (id) => detailsOf(fileById(id)),
    get: async ({ key, range }, signal) => {
      const file = fileById(key)
      const details = detailsOf(file)
      const start = range?.start ?? 0
      const end = Math.min(range?.end ?? details.size, details.size)
      return {
        details,
        start,
        end: Math.max(start, end),
        bytes: async () => {
          if (end <= start) return Buffer.alloc(0)
          const isWhole = start === 0 && end === details.size
          const bytes = await client.media(key, isWhole ? undefined : { start, end }, end - start, signal)
          const isIntact = bytes.length === end - start && (!isWhole || isSum(bytes, file.version))
          if (!isIntact) throw new ObjectFault('torn')
          return bytes
        },
        discard: () => {},
      }
    },
  }
}

function isSum(bytes: Buffer, version: string): boolean {
  return !/^[0-9a-f]{32}$/.test(version) || createHash('md5').update(bytes).digest('hex') === version
}

function metaOf(raw: RawFile, rest: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const { id, name, mimeType, driveId, webViewLink, owners, lastModifyingUser, modifiedTime, createdTime } = raw
  const person = (user: { displayName?: string | null; emailAddress?: string | null }) => ({
    ...(user.displayName ? { name: user.displayName } : {}),
    ...(user.emailAddress ? { email: user.emailAddress } : {}),
  })
  const facts = {
    id,
    name,
    type: mimeType,
    link: webViewLink,
    revision: revisionOf(raw),
    modified: modifiedTime,
    created: createdTime,
    owners: owners?.map(person),
    lastModifiedBy: lastModifyingUser ? person(lastModifyingUser) : undefined,
    drive: driveId,
    ...rest,
  }
  const entries = Object.entries(facts).filter(([, value]) => value !== undefined && value !== null)
  return { [metaKeys.drive]: Object.fromEntries(entries) }
}

/** Limits of one workbook: characters of its text, and bytes of its unpacked content. */
const limits = { characters: 8_000_000, unpacked: 256 * 2 ** 20 }

function createSheets() {
  const file = join(import.meta.dirname, '../../../dist/readings/worker.js')
  const host = createTaskWorker<ReadingJob, ReadingAnswer>(file, workerLimits.documents)
  return {
    read: async (bytes: Uint8Array, signal: AbortSignal): Promise<readonly SheetText[]> => {
      const outcome = await host.run({ format: 'xlsx', form: 'csv', bytes, limits }, signal)
      if ('failure' in outcome)
        throw tooLarge(
          'Reading the sheets exceeds the limit of time or memory, or the workbook is damaged. Read it with form=xlsx.',
          {
            reason: 'too-much',
          },
        )
      const { result } = outcome
      if ('reading' in result) return result.reading.sheets ?? []
      throw new ResourceError(result.kind, result.message, { reason: result.reason })
    },
    close: () => host.close(),
  }
}

function markdownOf(sheets: readonly SheetText[]): string {
  return sheets
    .map(({ name, text }) => {
      // The fence is longer than any row of backticks in the cells, which would end the code block.
      const longest = Math.max(2, ...(text.match(/`+/g) ?? []).map((run) => run.length))
      const fence = '`'.repeat(longest + 1)
      return `# ${name.replace(/\s+/g, ' ')}\n\n${fence}csv\n${text}${fence}\n`
    })
    .join('\n')
}
