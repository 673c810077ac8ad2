import { Parser } from 'htmlparser2'
import { decodeBytes } from '../text/encoding/decode.ts'
import { detectEncoding } from '../text/encoding/detect.ts'
import { type Form, type Reading, type ReadingLimits, unreadable } from './formats.ts'
import { createWriter, type Writer } from './writer.ts'

/** Elements that are not displayed as text. */
const skipped = new Set(['script', 'style', 'template', 'svg', 'math', 'iframe', 'object', 'noembed', 'noframes'])
const blocks = new Set(
  (
    'address article aside blockquote body caption center dd details dialog dir div dl dt fieldset figcaption figure footer ' +
    'form frameset header hr html legend main menu nav ol optgroup option p search section summary ul'
  ).split(' '),
)

const codeNames = new Set(['code', 'kbd', 'samp'])
/** The end of a line between two characters of a script that has no spaces. */
const brokenLine = /(?<=[\u3000-\u9fff\uff00-\uffef])[ \t]*\r?\n[ \t]*(?=[\u3000-\u9fff\uff00-\uffef])/g

/** The longest title, in characters. */
const maxTitle = 200
/** Spans that are open within one line. */
const maxSpans = 100
/** The parser takes time in proportion to the square of this. */
const maxDepth = 20_000

/** Reads a page of HTML, as people see it and without running it. */
export function readHtml(bytes: Uint8Array, form: Form, limits: ReadingLimits): Reading {
  const html = decodeBytes(bytes, detectEncoding(bytes) ?? 'windows-1252') ?? ''
  const writer = createWriter(form, limits.characters)
  const page = createPage(writer)
  let depth = 0
  const parser = new Parser(
    {
      onopentag: (name, attributes) => {
        if (++depth > maxDepth) throw unreadable(`The page is nested deeper than ${maxDepth} elements.`, 'damaged')
        page.open(name, attributes)
      },
      ontext: page.text,
      onclosetag: (name) => {
        depth--
        page.close(name)
      },
    },
    { decodeEntities: true },
  )
  parser.end(html)
  page.end()
  const title = Array.from(page.title.slice(0, 2000).replace(/\s+/g, ' ').trim()).slice(0, maxTitle).join('')
  return { text: writer.finish(), ...(title === '' || !title.isWellFormed() ? {} : { title }) }
}

/** A piece of a line that is a link, strong, emphasised or code. */
interface Span {
  readonly name: string
  readonly before: string
  readonly write: (text: string) => string
}

/** A list that is being read: its next number, or none where it has bullets. */
interface List {
  number: number | undefined
}

function createPage(writer: Writer) {
  let inline = ''
  /** Whether the line is empty or ends in white space. To look at it would copy it, each time. */
  let spaced = true
  let title = ''
  let inTitle = false
  let hidden = 0
  let preformatted = 0
  let codes = 0
  const lists: List[] = []
  /** Open inline elements: the text before each, and how each is written once it ends. */
  const spans: Span[] = []
  let cells: string[] | undefined
  let tables = 0
  let itemOpen = false

  const append = (text: string) => {
    if (text === '') return
    inline += text
    spaced = /[ \n]/.test(text.at(-1) ?? '')
  }

  const forget = () => {
    inline = ''
    spaced = true
    spans.length = 0
  }

  const begin = (name: string, write: (text: string) => string) => {
    if (spans.length >= maxSpans) return
    spans.push({ name, before: inline, write })
    inline = ''
  }

  /** Ends a span, and with it those that were begun in it. */
  const end = (name: string) => {
    if (!spans.some((span) => span.name === name)) return
    for (let span = spans.pop(); span !== undefined; span = spans.pop()) {
      inline = span.before + (preformatted > 0 ? inline : span.write(inline))
      if (span.name === name) return
    }
  }

  const lineSoFar = () => spans.map(({ before }) => before).join('') + inline

  const flush = () => {
    // A cell goes on over the blocks in it.
    if (cells !== undefined) return spaced ? undefined : append(' ')
    const text = lineSoFar()
    forget()
    if (text.trim() === '') return
    if (lists.length > 0) {
      const list = lists.at(-1)
      const number = itemOpen && list?.number !== undefined ? list.number++ : undefined
      // Blocks after the first block of an item still belong to the item.
      writer.item(lists.length - (itemOpen ? 1 : 0), number, text)
      itemOpen = false
    } else writer.paragraph(text)
  }

  const endCell = () => {
    // A cell that is in no row is a block like others.
    if (cells === undefined) return flush()
    cells.push(lineSoFar())
    forget()
  }

  const endRow = () => {
    if (cells?.some((cell) => cell.trim() !== '')) writer.row(cells)
    cells = undefined
    forget()
  }

  const open = (name: string, attributes: Readonly<Record<string, string>>) => {
    if (hidden > 0 || skipped.has(name)) {
      hidden++
      return
    }
    if (name === 'title' && title === '') inTitle = true
    else if (name === 'br') append(preformatted > 0 || (cells === undefined && lists.length === 0) ? '\n' : ' ')
    else if (name === 'img') append(writer.image(writer.plain(attributes.alt ?? '')))
    else if (name === 'a') begin(name, (text) => writer.link(text, attributes.href))
    else if (name === 'b' || name === 'strong') begin('strong', writer.strong)
    else if (name === 'i' || name === 'em') begin('em', writer.emphasis)
    else if (codeNames.has(name)) {
      codes++
      begin('code', writer.code)
    } else if (name === 'table') {
      flush()
      if (tables++ === 0) writer.end()
    } else if (name === 'tr' && tables === 1) {
      flush()
      forget()
      cells = []
    } else if (name === 'td' || name === 'th') {
      if (cells === undefined) flush()
      else if (tables === 1) forget()
      else append(' ')
    } else if (name === 'rt' || name === 'rp') hidden++
    else if (/^h[1-6]$/.test(name) || name === 'li' || name === 'pre' || blocks.has(name)) {
      flush()
      if (name === 'ul' || name === 'ol' || name === 'menu')
        lists.push({ number: name === 'ol' ? Number(attributes.start ?? 1) || 1 : undefined })
      else if (name === 'li') itemOpen = true
      else if (name === 'pre') preformatted++
      else if (name === 'blockquote') writer.quote(1)
    }
  }

  const close = (name: string) => {
    if (hidden > 0) {
      hidden--
      return
    }
    if (name === 'title') inTitle = false
    else if (name === 'a') end(name)
    else if (name === 'b' || name === 'strong') end('strong')
    else if (name === 'i' || name === 'em') end('em')
    else if (codeNames.has(name)) {
      codes = Math.max(0, codes - 1)
      end('code')
    } else if ((name === 'td' || name === 'th') && tables === 1) endCell()
    else if (name === 'tr' && tables === 1) {
      endRow()
    } else if (name === 'table') {
      tables = Math.max(0, tables - 1)
      if (tables > 0) return
      if (cells !== undefined) endRow()
      writer.end()
    } else if (/^h[1-6]$/.test(name) && cells === undefined) {
      writer.heading(Number(name[1]), lineSoFar())
      forget()
    } else if (name === 'pre') {
      preformatted = Math.max(0, preformatted - 1)
      if (cells !== undefined || preformatted > 0) return
      writer.block(lineSoFar())
      forget()
    } else if (name === 'li' || blocks.has(name)) {
      flush()
      if (name === 'ul' || name === 'ol' || name === 'menu') {
        lists.pop()
        itemOpen = false
        if (lists.length === 0) writer.end()
      } else if (name === 'blockquote') writer.quote(-1)
    }
  }

  return {
    open,
    close,
    text: (text: string) => {
      if (inTitle) title += text
      else if (hidden > 0) return
      else if (preformatted > 0) append(text)
      else {
        const words = text.replace(brokenLine, '').replace(/[ \t\n\r\f]+/g, ' ')
        const rest = spaced ? words.replace(/^ /, '') : words
        append(codes > 0 ? rest : writer.plain(rest))
      }
    },
    end: () => {
      if (cells !== undefined) {
        endCell()
        endRow()
      }
      flush()
    },
    get title() {
      return title
    },
  }
}
