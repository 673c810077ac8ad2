import { describe, expect, test } from 'vitest'
import type { ReadingForm } from '../../src/readings/formats.ts'
import { readDocument } from '../../src/readings/worker.ts'
import { zip } from '../fixtures/documents/zip.ts'

const limits = { characters: 200_000, unpacked: 20_000_000 }
const read = (bytes: Uint8Array, form: ReadingForm = 'text') => readDocument({ format: 'epub', form, bytes, limits })

const page = (body: string) =>
  `<?xml version="1.0" encoding="utf-8"?><!DOCTYPE html><html xmlns="http://www.w3.org/1999/xhtml"><head><title/><script src="x.js"/></head><body>${body}</body></html>`

interface BookOptions {
  readonly chapters?: readonly string[]
  readonly manifest?: string
  readonly spine?: string
  readonly more?: Readonly<Record<string, string>>
}

/** A book whose chapters are `text/1.xhtml` and so on, with an NCX that names them. */
function epub({ chapters = [], manifest = '', spine = '', more = {} }: BookOptions): Buffer {
  const numbers = chapters.map((_, index) => index + 1)
  const parts = {
    mimetype: 'application/epub+zip',
    'META-INF/container.xml':
      '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles><rootfile full-path="OEBPS/book.opf"/></rootfiles></container>',
    'OEBPS/book.opf':
      '<package xmlns="http://www.idpf.org/2007/opf"><metadata xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>引き出し &amp; 梅雨</dc:title></metadata>' +
      `<manifest>${numbers.map((n) => `<item id="c${n}" href="text/%30${n}.xhtml" media-type="application/xhtml+xml"/>`).join('')}<item id="ncx" href="toc.ncx" media-type="application/x-dtbncx+xml"/>${manifest}</manifest>` +
      `<spine toc="ncx">${numbers.map((n) => `<itemref idref="c${n}"/>`).join('')}${spine}</spine></package>`,
    'OEBPS/toc.ncx': `<!DOCTYPE ncx PUBLIC "-//NISO//DTD ncx 2005-1//EN" "http://www.daisy.org/z3986/2005/ncx-2005-1.dtd"><ncx xmlns="http://www.daisy.org/z3986/2005/ncx/"><navMap>${numbers.map((n) => `<navPoint><navLabel><text>第${n}章</text></navLabel><content src="text/0${n}.xhtml#a"/></navPoint>`).join('')}</navMap></ncx>`,
    ...Object.fromEntries(chapters.map((body, index) => [`OEBPS/text/0${index + 1}.xhtml`, page(body)])),
    ...more,
  }
  return zip(Object.entries(parts).map(([name, data]) => ({ name, data })))
}

describe('a book in EPUB', () => {
  test('is read chapter by chapter, with the names of its table of contents for chapters without a heading', async () => {
    const bytes = epub({
      chapters: ['<p>一<a id="x"/>つ目&nbsp;の文。</p>', '<h2>はじめに</h2><p>二つ目<i/>の文。</p>'],
    })
    expect(await read(bytes)).toEqual({
      title: '引き出し & 梅雨',
      parts: 2,
      text: '第1章\n\n一つ目\u00a0の文。\n\nはじめに\n\n二つ目の文。\n',
    })
    expect((await read(bytes, 'markdown')).text).toBe('# 第1章\n\n一つ目\u00a0の文。\n\n## はじめに\n\n二つ目の文。\n')
  })

  test('of version 3 has the titles of its navigation, and chapters in the order of the spine', async () => {
    const bytes = epub({
      manifest:
        '<item id="b" href="b.xhtml" media-type="application/xhtml+xml"/><item id="a" href="a.xhtml" media-type="application/xhtml+xml"/><item id="nav" href="nav.xhtml" media-type="application/xhtml+xml" properties="nav"/>',
      spine: '<itemref idref="b"/><itemref idref="a" linear="no"/>',
      more: {
        'OEBPS/a.xhtml': page('<p>A</p>'),
        'OEBPS/b.xhtml': page('<p>B</p>'),
        'OEBPS/nav.xhtml': page('<nav><ol><li><a href="b.xhtml">First <b>one</b></a></li></ol></nav>'),
      },
    })
    expect((await read(bytes)).text).toBe('First one\n\nB\n\nA\n')
  })

  test('has the text of chapters that are drawings', async () => {
    const bytes = epub({
      manifest: '<item id="d" href="d.svg" media-type="image/svg+xml"/>',
      spine: '<itemref idref="d"/>',
      more: { 'OEBPS/d.svg': '<svg xmlns="http://www.w3.org/2000/svg"><text>drawn words</text></svg>' },
    })
    expect((await read(bytes)).text).toBe('drawn words\n')
  })

  test('that is encrypted, damaged or without text is refused with its reason', async () => {
    const encryption = (uri: string) => ({
      'META-INF/encryption.xml': `<encryption><EncryptedData><CipherData><CipherReference URI="${uri}"/></CipherData></EncryptedData></encryption>`,
    })
    const chapters = ['<p>text</p>']
    expect((await read(epub({ chapters, more: encryption('OEBPS/font.otf') }))).text).toContain('text')
    for (const [bytes, message] of [
      [epub({ chapters, more: encryption('OEBPS/text/01.xhtml') }), 'encrypted'],
      [epub({ chapters, spine: '<itemref idref="gone"/>' }), 'damaged'],
      [epub({ chapters, more: { 'META-INF/container.xml': '<container/>' } }), 'damaged'],
      [epub({ chapters: ['<img src="x.png"/>'], more: { 'OEBPS/toc.ncx': '<ncx/>' } }), 'contains no text'],
    ] as const)
      await expect(read(bytes)).rejects.toMatchObject({ kind: 'invalid', message: expect.stringContaining(message) })
  })

  test('with a chapter that cannot be read is read without it, and says so', async () => {
    const spine = '<itemref idref="gone"/>'
    const manifest = '<item id="gone" href="gone.xhtml" media-type="application/xhtml+xml"/>'
    const { text } = await read(epub({ chapters: ['<p>one</p>'], manifest, spine }))
    expect(text).toMatch(/^第1章\n\none\n\n\[.*damaged.*\]\n$/)
  })

  test('that lists one chapter thousands of times is refused', async () => {
    const many = '<itemref idref="c1"/>'.repeat(6000)
    await expect(read(epub({ chapters: ['x'], spine: many }))).rejects.toMatchObject({ kind: 'too-large' })
    const large = `<p>${'x'.repeat(30_000)}</p>`
    const often = '<itemref idref="c1"/>'.repeat(4000)
    await expect(read(epub({ chapters: [large], spine: often }))).rejects.toMatchObject({ kind: 'too-large' })
  })
})
