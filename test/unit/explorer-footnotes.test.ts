import { describe, expect, test } from 'vitest'
import { htmlOf } from '../../src/explorer/web/preview/model/markdown-html.ts'

describe('in Markdown with footnotes,', () => {
  test('a mark links to its note, and the note back to the first mark', () => {
    const { html } = htmlOf('Tea[^a] and again[^a], cake[^2].\n\n[^a]: Green *tea*.\n[^2]: Two lines\nof cake.\n')
    expect(html).toContain('Tea<sup><a href="#footnote-1" id="footnote-mark-1">1</a></sup>')
    expect(html).toContain('again<sup><a href="#footnote-1">1</a></sup>')
    expect(html).toContain('cake<sup><a href="#footnote-2" id="footnote-mark-2">2</a></sup>')
    expect(html).toContain(
      '<section id="footnote-1"><ol start="1"><li><p>Green <em>tea</em>. <a href="#footnote-mark-1"',
    )
    expect(html).toContain('<p>Two lines\nof cake. <a href="#footnote-mark-2"')
    expect(html).not.toContain('[^')
  })

  test('a note of several paragraphs stays together, and text after it is not part of it', () => {
    const { html } = htmlOf('Tea[^1].\n\n[^1]: First.\n\n    Second.\n\nAfter.\n')
    expect(html).toMatch(
      /<li><p>First\.<\/p>\s*<p>Second\. <a [^>]*>↩<\/a><\/p><\/li><\/ol><\/section>\s*<p>After\.<\/p>/,
    )
  })

  test('a mark without a note, and one in code, are unchanged', () => {
    const { html } = htmlOf('Tea[^none] `[^1]`.\n\n[^1]: Note.\n')
    expect(html).toContain('Tea[^none]')
    expect(html).toContain('<code>[^1]</code>')
  })

  test('a document shows no notes of the document before it', () => {
    htmlOf('Tea[^1].\n\n[^1]: Note.\n')
    expect(htmlOf('Cake[^1].\n').html).toBe('<p>Cake[^1].</p>\n')
  })

  test('of very many notes only the first 2,000 are laid out, and deeply nested notes do not fail', () => {
    const many = Array.from({ length: 5000 }, (_, at) => `a[^${at}]\n\n[^${at}]: note [^${at}]\n`).join('\n')
    expect(htmlOf(many).html).toContain('footnote-2000')
    expect(htmlOf(many).html).not.toContain('footnote-2001"')
    expect(htmlOf('[^a]: '.repeat(2000)).html.length).toBeGreaterThan(0)
  })
})
