import { Parser } from 'htmlparser2'
import { decodeBytes } from '../text/encoding/decode.ts'
import { detectEncoding } from '../text/encoding/detect.ts'
import { type Reading, type ReadingForm, type ReadingLimits, unreadableError } from './formats.ts'
import { collapseWhitespace, createDocumentWriter, type DocumentWriter } from './writer.ts'

const skipped = new Set(['script', 'style', 'template', 'iframe', 'object', 'noembed', 'noframes'])
/** Elements of a drawing (SVG) that are not displayed. */
const skippedInDrawings = new Set(['title', 'desc', 'defs', 'symbol', 'metadata'])
const blocks = new Set(
  (
    'address article aside blockquote body caption center dd details dialog dir div dl dt fieldset figcaption figure footer ' +
    'form frameset header hr html legend main menu nav ol optgroup option p search section summary ul'
  ).split(' '),
)

/** Inline elements, each with the element that it is written as. */
const spanNames: ReadonlyMap<string, 'a' | 'strong' | 'em' | 'code'> = new Map([
  ['a', 'a'],
  ['b', 'strong'],
  ['strong', 'strong'],
  ['i', 'em'],
  ['em', 'em'],
  ['code', 'code'],
  ['kbd', 'code'],
  ['samp', 'code'],
])
/** The end of a line between two characters of a script that has no spaces. */
const brokenLine = /(?<=[\u3000-\u9fff\uff00-\uffef])[ \t]*\r?\n[ \t]*(?=[\u3000-\u9fff\uff00-\uffef])/g

const maxTitle = 200
/** Maximum number of open spans in one line. */
const maxSpans = 100
/** Maximum nesting depth. The parser takes time in proportion to its square. */
const maxDepth = 20_000

/** Reads a page of HTML, without running its scripts. */
export function readHtml(bytes: Uint8Array, form: ReadingForm, limits: ReadingLimits): Reading {
  const page = detectEncoding(bytes) === undefined ? withoutControls(bytes) : bytes
  const encoding = detectEncoding(page)
  if (encoding === undefined)
    throw unreadableError(
      'The page does not declare an encoding that fits its bytes. The operator of the server can name it in "encodings".',
    )
  return readHtmlPage(decodeBytes(page, encoding) ?? '', form, limits)
}

/** A page with at most one control character in this number of bytes is read without its control characters. */
const bytesPerControl = 1000

function withoutControls(bytes: Uint8Array): Uint8Array {
  const rest = bytes.filter((byte) => (byte >= 0x20 ? byte !== 0x7f : byte === 0x1b || (byte >= 0x07 && byte <= 0x0d)))
  return (bytes.length - rest.length) * bytesPerControl <= bytes.length ? rest : bytes
}

export function readHtmlPage(html: string, form: ReadingForm, limits: ReadingLimits): Reading {
  const writer = createDocumentWriter(form, limits.characters)
  const page = createPage(writer)
  let depth = 0
  const parser = new Parser(
    {
      onopentag: (name, attributes) => {
        if (++depth > maxDepth) throw unreadableError(`The page is nested deeper than ${maxDepth} elements.`)
        page.open(localName(name), attributes)
      },
      ontext: page.text,
      onclosetag: (name) => {
        depth--
        page.close(localName(name))
      },
    },
    { decodeEntities: true },
  )
  parser.end(html)
  page.end()
  const title = Array.from(collapseWhitespace(page.title.slice(0, 2000)))
    .slice(0, maxTitle)
    .join('')
  return { text: writer.finish(), ...(title === '' || !title.isWellFormed() ? {} : { title }) }
}

type Attributes = Readonly<Record<string, string>>

/** The name of an element in lower case, without the prefix that MathML and SVG have in XHTML. */
function localName(name: string): string {
  return name.replace(/^(?:m|mml|svg):/, '').toLowerCase()
}

/** Whether an element repeats a formula for browsers without MathML, as KaTeX and MediaWiki add it. */
function isRepeated(name: string, attributes: Attributes): boolean {
  if (attributes['aria-hidden'] !== 'true') return false
  return name === 'img' || /(?:^|\s)katex-html(?:\s|$)/.test(attributes.class ?? '')
}

function createDrawings() {
  let [drawings, labels] = [0, 0]
  const isLabel = (name: string) => drawings > 0 && (name === 'text' || name === 'foreignobject')
  return {
    isHidden: (name: string) => drawings > 0 && skippedInDrawings.has(name),
    /** Whether text at this place is outside of the labels of a drawing, such as white space between its shapes. */
    isBetween: () => drawings > 0 && labels === 0,
    open: (name: string): boolean => {
      if (name === 'svg') drawings++
      if (!isLabel(name)) return false
      labels++
      return true
    },
    close: (name: string): boolean => {
      if (name === 'svg') drawings = Math.max(0, drawings - 1)
      if (!isLabel(name)) return false
      labels = Math.max(0, labels - 1)
      return true
    },
  }
}

function createLine(writer: DocumentWriter) {
  let inline = ''
  /** Whether the line is empty or ends in white space. Looking at the end of the line would copy the line. */
  let spaced = true
  let codes = 0
  /** Open inline elements (links, strong, emphasised or code): the text before each, and how each is written once it ends. */
  const spans: { readonly name: string; readonly before: string; readonly write: (text: string) => string }[] = []

  const append = (text: string) => {
    if (text === '') return
    inline += text
    spaced = /[ \n]/.test(text.at(-1) ?? '')
  }

  const begin = (name: string, write: (text: string) => string) => {
    if (spans.length >= maxSpans) return
    spans.push({ name, before: inline, write })
    inline = ''
  }

  return {
    append,
    /** Appends text with its white space collapsed. */
    write: (text: string) => {
      const words = text.replace(brokenLine, '').replace(/[ \t\n\r\f]+/g, ' ')
      const rest = spaced ? words.replace(/^ /, '') : words
      append(codes > 0 ? rest : writer.plain(rest))
    },
    forget: () => {
      inline = ''
      spaced = true
      spans.length = 0
    },
    /** Opens an element if it is inline. Returns whether it is. */
    open: (name: string, { alt = '', href }: Attributes): boolean => {
      const span = spanNames.get(name)
      if (name === 'img') append(writer.image(writer.plain(alt)))
      else if (span === 'a') begin(span, (text) => writer.link(text, href))
      else if (span === 'strong') begin(span, writer.strong)
      else if (span === 'em') begin(span, writer.emphasis)
      else if (span === 'code') {
        codes++
        begin(span, writer.code)
      } else return false
      return true
    },
    /** Closes an element if it is inline, with the inline elements in it: as plain text if `isPlain`. Returns whether it is inline. */
    close: (name: string, isPlain: boolean): boolean => {
      const spanName = spanNames.get(name)
      if (spanName === undefined) return false
      if (spanName === 'code') codes = Math.max(0, codes - 1)
      if (!spans.some((span) => span.name === spanName)) return true
      for (let span = spans.pop(); span !== undefined; span = spans.pop()) {
        inline = span.before + (isPlain ? inline : span.write(inline))
        if (span.name === spanName) break
      }
      return true
    },
    soFar: () => spans.map(({ before }) => before).join('') + inline,
    isSpaced: () => spaced,
  }
}

/** The open lists, the outermost first, each with the number of its next item; undefined for bullets. */
function createLists(writer: DocumentWriter) {
  const lists: { number: number | undefined }[] = []
  let itemOpen = false
  return {
    isOpen: () => lists.length > 0,
    begin: (name: string, { start = '1' }: Attributes) =>
      void lists.push({ number: name === 'ol' ? Number(start) || 1 : undefined }),
    beginItem: () => {
      itemOpen = true
    },
    end: () => {
      lists.pop()
      itemOpen = false
      if (lists.length === 0) writer.end()
    },
    /** Writes a block of the innermost list. Blocks after the first block of an item are one level deeper. */
    write: (text: string) => {
      const list = lists.at(-1)
      const number = itemOpen && list?.number !== undefined ? list.number++ : undefined
      writer.item(lists.length - (itemOpen ? 1 : 0), number, text)
      itemOpen = false
    },
  }
}

/** The formula (MathML) that is being read: its TeX, in an annotation or an attribute, or else the text of its elements. */
function createFormula(writer: DocumentWriter) {
  let depth = 0
  /** Depth of the annotation that is being read. Annotations other than TeX are ignored. */
  let annotation: { readonly depth: number; readonly isTex: boolean } | undefined
  let [tex, alternative, text] = ['', '', '']
  return {
    isOpen: () => depth > 0,
    open: (name: string, { alttext = '', encoding = '' }: Attributes) => {
      if (depth === 0) [tex, alternative, text] = ['', alttext, '']
      depth++
      if (name.startsWith('annotation')) annotation ??= { depth, isTex: /tex/i.test(encoding) }
    },
    add: (words: string) => {
      if (annotation === undefined) text += ` ${words.trim()}`
      else if (annotation.isTex) tex += words
    },
    /** Closes an element. Returns the formula if it ends here. */
    close: (): string | undefined => {
      if (annotation?.depth === depth) annotation = undefined
      if (--depth > 0) return undefined
      const source = [tex, alternative].map(collapseWhitespace).find((one) => one !== '')
      return source === undefined ? writer.plain(collapseWhitespace(text)) : writer.formula(source)
    },
  }
}

function createRow(writer: DocumentWriter, line: ReturnType<typeof createLine>) {
  let cells: string[] | undefined
  const endCell = () => {
    cells?.push(line.soFar())
    line.forget()
  }
  return {
    isOpen: () => cells !== undefined,
    begin: () => {
      line.forget()
      cells = []
    },
    endCell,
    end: () => {
      if (cells?.some((cell) => cell.trim() !== '')) writer.row(cells)
      cells = undefined
      line.forget()
    },
  }
}

function createPage(writer: DocumentWriter) {
  const line = createLine(writer)
  const formula = createFormula(writer)
  const lists = createLists(writer)
  const drawings = createDrawings()
  const row = createRow(writer, line)
  const { append, forget, soFar: lineSoFar } = line
  let title = ''
  let inTitle = false
  let hiddenDepth = 0
  let preformatted = 0
  let tables = 0

  const flush = () => {
    if (row.isOpen()) return line.isSpaced() ? undefined : append(' ')
    const text = lineSoFar()
    forget()
    if (text.trim() === '') return
    if (lists.isOpen()) lists.write(text)
    else writer.paragraph(text)
  }

  const open = (name: string, attributes: Attributes) => {
    if (hiddenDepth > 0 || skipped.has(name) || drawings.isHidden(name) || isRepeated(name, attributes)) {
      hiddenDepth++
      return
    }
    if (formula.isOpen() || name === 'math') return formula.open(name, attributes)
    if (drawings.open(name)) flush()
    if (name === 'title' && title === '') inTitle = true
    else if (name === 'br') append(preformatted > 0 || (!row.isOpen() && !lists.isOpen()) ? '\n' : ' ')
    else if (line.open(name, attributes)) return
    else if (name === 'table') {
      flush()
      if (tables++ === 0) writer.end()
    } else if (name === 'tr' && tables === 1) {
      flush()
      row.begin()
    } else if (name === 'td' || name === 'th') {
      if (!row.isOpen()) flush()
      else if (tables === 1) forget()
      else append(' ')
    } else if (name === 'rt' || name === 'rp') hiddenDepth++
    else if (/^h[1-6]$/.test(name) || name === 'li' || name === 'pre' || blocks.has(name)) {
      flush()
      if (name === 'ul' || name === 'ol' || name === 'menu') lists.begin(name, attributes)
      else if (name === 'li') lists.beginItem()
      else if (name === 'pre') preformatted++
      else if (name === 'blockquote') writer.quote(1)
    }
  }

  const close = (name: string) => {
    if (hiddenDepth > 0) {
      hiddenDepth--
      return
    }
    if (formula.isOpen()) return append(formula.close() ?? '')
    if (drawings.close(name)) flush()
    if (name === 'title') inTitle = false
    else if (line.close(name, preformatted > 0)) return
    else if ((name === 'td' || name === 'th') && tables === 1) {
      // A cell outside of a row is a block like any other.
      if (row.isOpen()) row.endCell()
      else flush()
    } else if (name === 'tr' && tables === 1) row.end()
    else if (name === 'table') {
      tables = Math.max(0, tables - 1)
      if (tables > 0) return
      if (row.isOpen()) row.end()
      writer.end()
    } else if (/^h[1-6]$/.test(name)) {
      if (row.isOpen()) return flush()
      writer.heading(Number(name[1]), lineSoFar())
      forget()
    } else if (name === 'pre') {
      preformatted = Math.max(0, preformatted - 1)
      if (row.isOpen()) return flush()
      if (preformatted > 0) return
      writer.block(lineSoFar())
      forget()
    } else if (name === 'li' || blocks.has(name)) {
      flush()
      if (name === 'ul' || name === 'ol' || name === 'menu') lists.end()
      else if (name === 'blockquote') writer.quote(-1)
    }
  }

  return {
    open,
    close,
    text: (text: string) => {
      if (inTitle) title += text
      else if (hiddenDepth > 0 || drawings.isBetween()) return
      else if (formula.isOpen()) formula.add(text)
      else if (preformatted > 0) append(text)
      else line.write(text)
    },
    end: () => {
      if (row.isOpen()) {
        row.endCell()
        row.end()
      }
      flush()
    },
    get title() {
      return title
    },
  }
}
