import { buffer } from 'node:stream/consumers'
import { isResourceError, tooLarge } from '../core/errors.ts'
import { decodeBytes } from '../text/encoding/decode.ts'
import { detectEncoding } from '../text/encoding/detect.ts'
import { type Reading, type ReadingForm, type ReadingLimits, unreadableError } from './formats.ts'
import { readHtmlPage } from './html.ts'
import { type Attributes, normalizePartName, openZip, resolvePartName, walkXml, type Zip } from './package.ts'
import { collapseWhitespace, createDocumentWriter, type DocumentWriter } from './writer.ts'

const maxChapters = 5000

export async function readEpub(bytes: Uint8Array, form: ReadingForm, limits: ReadingLimits): Promise<Reading> {
  const zip = await openZip(bytes, limits.unpacked)
  const book = await readContents(zip)
  const labels = await readLabels(zip, book.table)
  const encrypted = await readEncrypted(zip)
  const writer = createDocumentWriter(form, limits.characters)
  for (const chapter of book.chapters) {
    if (encrypted.has(chapter))
      throw unreadableError('The book is encrypted by its rights management, so it cannot be read.', 'withheld')
    await writeChapter(zip, chapter, { writer, form, limits, label: labels.get(chapter) })
  }
  const title = Array.from(collapseWhitespace(book.title)).slice(0, 200).join('')
  return { text: writer.finish(), parts: book.chapters.length, ...(title === '' ? {} : { title }) }
}

interface ChapterOptions {
  readonly writer: DocumentWriter
  readonly form: ReadingForm
  readonly limits: ReadingLimits
  /** The name of the chapter in the table of contents. */
  readonly label: string | undefined
}

/** Writes a chapter. If it cannot be read, writes the reason in its place. */
async function writeChapter(zip: Zip, part: string, { writer, form, limits, label }: ChapterOptions): Promise<void> {
  const withHeading = (page: string) => {
    if (label !== undefined && !/<h[1-6][\s>]/i.test(page)) writer.heading(1, writer.plain(label))
    writer.end()
  }
  try {
    const page = await readChapterSource(zip, part)
    const { text } = readHtmlPage(page, form, limits)
    withHeading(page)
    writer.document(text)
  } catch (error) {
    if (!isResourceError(error, 'invalid')) throw error
    withHeading('')
    writer.paragraph(writer.plain(`[${error.message}]`))
  }
}

/** The part that a reference in another part leads to, in the spelling in which parts are compared. */
function partIn(from: string, reference: string): string {
  return normalizePartName(resolvePartName(from, reference))
}

interface BookContents {
  readonly title: string
  /** The parts of the chapters, in the order of reading. */
  readonly chapters: readonly string[]
  /** The part with the table of contents. */
  readonly table: string | undefined
}

async function readContents(zip: Zip): Promise<BookContents> {
  let main: string | undefined
  await walkBook(zip, 'META-INF/container.xml', (name, attributes) => {
    if (name === 'rootfile') main ??= attributes['full-path']
  })
  if (main === undefined || !zip.has(main))
    throw unreadableError(
      'The book is damaged: the package document that META-INF/container.xml should name is missing.',
    )
  const package_ = main
  const items = new Map<string, { readonly part: string; readonly type: string }>()
  const spine: string[] = []
  let [title, table, tableId] = ['', undefined as string | undefined, undefined as string | undefined]
  let inTitle = false
  await walkBook(
    zip,
    package_,
    (name, attributes) => {
      inTitle = name === 'title' && title === ''
      const { id = '', href = '', properties = '' } = attributes
      if (name === 'item') {
        const part = partIn(package_, href)
        items.set(id, { part, type: attributes['media-type'] ?? '' })
        if (properties.split(/\s+/).includes('nav')) table = part
      } else if (name === 'spine') tableId = attributes.toc
      else if (name === 'itemref') spine.push(attributes.idref ?? '')
      if (items.size > 2 * maxChapters || spine.length > maxChapters)
        throw tooLarge(`The book has more than ${maxChapters} chapters, or more than ${2 * maxChapters} files.`)
    },
    (text) => {
      if (inTitle) title += text
    },
  )
  const chapters = spine.flatMap((id) => {
    const item = items.get(id)
    if (item === undefined) throw unreadableError('The book is damaged: a chapter of its reading order is missing.')
    return /html|svg|oeb1-document/.test(item.type) ? [item.part] : []
  })
  return { title, chapters, table: table ?? items.get(tableId ?? '')?.part }
}

/** Reads the names that the table of contents gives to parts: `nav` of EPUB 3, or NCX of EPUB 2. */
async function readLabels(zip: Zip, table: string | undefined): Promise<ReadonlyMap<string, string>> {
  const labels = new Map<string, string>()
  if (table === undefined || !zip.has(table)) return labels
  let label = ''
  let target: string | undefined
  const add = () => {
    const text = collapseWhitespace(label)
    if (target !== undefined && text !== '' && !labels.has(target)) labels.set(target, text)
    ;[label, target] = ['', undefined]
  }
  await walkBook(
    zip,
    table,
    (name, { href, src }) => {
      if (name === 'a') [label, target] = ['', partIn(table, href ?? '')]
      else if (name === 'navPoint') [label, target] = ['', undefined]
      else if (name === 'content') {
        target = partIn(table, src ?? '')
        add()
      }
    },
    (text) => {
      label += text
    },
    (name) => {
      if (name === 'a') add()
    },
  )
  return labels
}

async function readEncrypted(zip: Zip): Promise<ReadonlySet<string>> {
  const parts = new Set<string>()
  await walkBook(zip, 'META-INF/encryption.xml', (name, { URI = '' }) => {
    if (name === 'CipherReference') parts.add(partIn('', URI))
  })
  return parts
}

async function walkBook(
  zip: Zip,
  part: string,
  open: (name: string, attributes: Attributes) => void,
  text: (text: string) => void = () => {},
  close: (name: string) => void = () => {},
): Promise<void> {
  if (!zip.has(part)) return
  const localName = (name: string) => name.slice(name.indexOf(':') + 1)
  await walkXml(zip.read(part), {
    allowsDefinition: true,
    open: (name, attributes) => open(localName(name), attributes),
    text,
    close: (name) => close(localName(name)),
  })
}

const voids = new Set('area base br col embed hr img input link meta source track wbr'.split(' '))

/** The source of a chapter, in which elements that are empty in XML are also empty in HTML. */
async function readChapterSource(zip: Zip, part: string): Promise<string> {
  const bytes = await buffer(zip.read(part))
  const source = decodeBytes(bytes, detectEncoding(bytes) ?? 'utf-8') ?? ''
  return source.replace(/<([a-z][\w:-]*)((?:\s[^<>]*)?)\/>/gi, (all, name: string, attributes: string) =>
    voids.has(name.toLowerCase()) ? all : `<${name}${attributes}></${name}>`,
  )
}
