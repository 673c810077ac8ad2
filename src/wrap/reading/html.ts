import { Parser } from 'htmlparser2'
import { decodeBytes } from '../encoding/decode.ts'
import { detectEncoding } from '../encoding/detect.ts'
import type { Form } from './formats.ts'
import type { Reading, ReadingLimits } from './job.ts'
import { createWriter, type Writer } from './writer.ts'

/** What no reader sees. */
const skipped = new Set(['script', 'style', 'template', 'svg', 'math', 'iframe', 'object', 'noembed', 'noframes'])
const blocks = new Set(
  (
    'address article aside blockquote body caption center dd details dialog dir div dl dt fieldset figcaption figure footer ' +
    'form frameset header hr html legend main menu nav ol optgroup option p search section summary ul'
  ).split(' '),
)

const emphases = new Set(['b', 'strong', 'i', 'em'])
const codeNames = new Set(['code', 'kbd', 'samp'])
/** The end of a line between two characters of a script that has no spaces. */
const brokenLine = /(?<=[\u3000-\u9fff\uff00-\uffef])[ \t]*\r?\n[ \t]*(?=[\u3000-\u9fff\uff00-\uffef])/g

/** Reads a page of HTML, as people see it and without running it. */
export function readHtml(bytes: Uint8Array, form: Form, limits: ReadingLimits): Reading {
  const html = decodeBytes(bytes, detectEncoding(bytes) ?? 'windows-1252') ?? ''
  const writer = createWriter(form, limits.characters)
  const page = createPage(writer)
  const parser = new Parser(
    { onopentag: page.open, ontext: page.text, onclosetag: page.close },
    { decodeEntities: true },
  )
  parser.end(html)
  page.end()
  const title = page.title.replace(/\s+/g, ' ').trim().slice(0, 200)
  return { text: writer.finish(), ...(title === '' || !title.isWellFormed() ? {} : { title }) }
}

/** A list that is being read: its next number, or none where it has bullets. */
interface List {
  number: number | undefined
}

function createPage(writer: Writer) {
  let inline = ''
  let title = ''
  let inTitle = false
  let hidden = 0
  let preformatted = 0
  let codes = 0
  const lists: List[] = []
  const anchors: { readonly from: number; readonly target: string | undefined }[] = []
  /** Where pieces of the line began that are strong, emphasised or code. */
  const marks: { readonly name: string; readonly from: number }[] = []
  let cells: string[] | undefined
  let tables = 0
  let itemOpen = false

  const forget = () => {
    inline = ''
    anchors.length = 0
    marks.length = 0
  }

  const flush = () => {
    const text = inline
    // A cell goes on over the blocks in it.
    if (cells !== undefined) {
      inline = text === '' || text.endsWith(' ') ? text : `${text} `
      return
    }
    forget()
    if (text.trim() === '') return
    if (lists.length > 0) {
      const list = lists.at(-1)
      const number = itemOpen && list?.number !== undefined ? list.number++ : undefined
      // What follows the first block of an item is still in it.
      writer.item(lists.length - (itemOpen ? 1 : 0), number, text)
      itemOpen = false
    } else writer.paragraph(text)
  }

  const mark = (name: string, write: (text: string) => string) => {
    const at = marks.findLastIndex((started) => started.name === name)
    if (at === -1) return
    const [{ from } = { from: 0 }] = marks.splice(at, 1)
    if (preformatted === 0) inline = inline.slice(0, from) + write(inline.slice(from))
  }

  const endCell = () => {
    // A cell that is in no row is a block like others.
    if (cells === undefined) return flush()
    cells.push(inline)
    inline = ''
  }

  const endRow = () => {
    if (cells?.some((cell) => cell.trim() !== '')) writer.row(cells)
    cells = undefined
    inline = ''
  }

  const open = (name: string, attributes: Readonly<Record<string, string>>) => {
    if (hidden > 0 || skipped.has(name)) {
      hidden++
      return
    }
    if (name === 'title' && title === '') inTitle = true
    else if (name === 'br') inline += preformatted > 0 ? '\n' : cells === undefined && lists.length === 0 ? '\n' : ' '
    else if (name === 'img') inline += writer.image(writer.plain(attributes.alt ?? ''))
    else if (name === 'a') anchors.push({ from: inline.length, target: attributes.href })
    else if (emphases.has(name) || codeNames.has(name)) {
      marks.push({ name, from: inline.length })
      if (codeNames.has(name)) codes++
    } else if (name === 'table') {
      flush()
      if (tables++ === 0) writer.end()
    } else if (name === 'tr' && tables === 1) {
      flush()
      inline = ''
      cells = []
    } else if (name === 'td' || name === 'th') inline = tables === 1 && cells !== undefined ? '' : `${inline} `
    else if (name === 'rt' || name === 'rp') hidden++
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
    else if (name === 'a') {
      const anchor = anchors.pop()
      if (anchor !== undefined)
        inline = inline.slice(0, anchor.from) + writer.link(inline.slice(anchor.from), anchor.target)
    } else if (name === 'b' || name === 'strong') mark(name, writer.strong)
    else if (name === 'i' || name === 'em') mark(name, writer.emphasis)
    else if (codeNames.has(name)) {
      codes = Math.max(0, codes - 1)
      mark(name, writer.code)
    } else if ((name === 'td' || name === 'th') && tables === 1) endCell()
    else if (name === 'tr' && tables === 1) {
      endRow()
    } else if (name === 'table') {
      tables = Math.max(0, tables - 1)
      if (tables > 0) return
      if (cells !== undefined) endRow()
      writer.end()
    } else if (/^h[1-6]$/.test(name) && cells === undefined) {
      writer.heading(Number(name[1]), inline)
      forget()
    } else if (name === 'pre') {
      preformatted = Math.max(0, preformatted - 1)
      if (cells !== undefined || preformatted > 0) return
      writer.block(inline)
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
      else if (preformatted > 0) inline += text
      else {
        const words = text.replace(brokenLine, '').replace(/[ \t\n\r\f]+/g, ' ')
        const rest = /[ \n]/.test(inline.at(-1) ?? ' ') ? words.replace(/^ /, '') : words
        inline += codes > 0 ? rest : writer.plain(rest)
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
