import { Marked } from 'marked'
import { describe, expect, test } from 'vitest'
import {
  maxColumns,
  maxNodes,
  truncateNesting,
  truncateTokens,
  truncateValue,
} from '../../src/explorer/web/preview/model/bounds.ts'

const marked = new Marked({ gfm: true, async: false })
const render = (text: string) => {
  const { tokens, isCut } = truncateTokens(marked.lexer(text))
  return { html: marked.parser(tokens), isCut }
}
const elements = (html: string) => html.split(/<(?!\/)/).length - 1

describe('the drawn part of a Markdown document', () => {
  test('is the whole of an ordinary document', () => {
    const text = `# A\n\n> b *c* \`d\`\n\n- e\n  - [f](g.md)\n\n|h|i|\n|-|-|\n|j|k|\n\n<b>l</b>\n`
    expect(render(text)).toEqual({ html: marked.parse(text), isCut: false })
  })

  test.each([
    ['columns', `${'|a'.repeat(5000)}|\n${'|-'.repeat(5000)}|\n${'|b'.repeat(5000)}|\n`],
    ['rows', `|a|b|\n|-|-|\n${'|x|y|\n'.repeat(50_000)}`],
    ['paragraphs', 'a\n\n'.repeat(50_000)],
    ['marks', '*a* '.repeat(50_000)],
    ['items', '- a\n'.repeat(50_000)],
    ['tags in one line', `<b>${'<i>x</i>'.repeat(50_000)}</b>`],
  ])('is limited for a document with many %s', (_, text) => {
    const { html, isCut } = render(text)
    expect(isCut).toBe(true)
    expect(elements(html)).toBeLessThan(maxNodes * 1.1)
  })

  test('leaves out the columns of a wide table beyond a maximum number', () => {
    const { html } = render(`${'|a'.repeat(5000)}|\n${'|-'.repeat(5000)}|\n${'|b'.repeat(5000)}|\n`)
    expect(html.match(/<th>/g)).toHaveLength(maxColumns)
    expect(html.match(/<td>/g)).toHaveLength(maxColumns)
  })
})

test('an HTML document is truncated where 1,000 elements are nested, and never because it is long', () => {
  const long = `<!doctype html><p>a<br>${'<div class="x"><img src="y">b</div><p>c'.repeat(20_000)}`
  expect(truncateNesting(long)).toBe(long)
  const deep = `<p>a</p>${'<div>'.repeat(50_000)}`
  expect(truncateNesting(deep)).toBe(`<p>a</p>${'<div>'.repeat(1000)}`)
})

test('the long arrays of a JSON value are shortened, and a small value is unchanged', () => {
  const small = { a: [1, { b: null }], c: 'x' }
  expect(truncateValue(small)).toEqual({ value: small, isCut: false })
  const { value, isCut } = truncateValue({ a: 'x', votes: Array.from({ length: 100_000 }, () => 1) })
  expect(isCut).toBe(true)
  expect(value).toMatchObject({ a: 'x' })
  expect((value as { votes: unknown[] }).votes.length).toBeLessThanOrEqual(maxNodes)
})
