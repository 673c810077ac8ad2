import { describe, expect, test } from 'vitest'
import { type FormulaNode, formulaOf } from '../../src/explorer/web/preview/model/formula.ts'
import { htmlOf } from '../../src/explorer/web/preview/model/markdown-html.ts'

describe('formulas in Markdown', () => {
  const tex = (text: string) =>
    [...htmlOf(text).html.matchAll(/<code class="language-math[\w-]*">([^<]*)/g)].map(([, found]) => found)

  test('are marked by dollar signs as on GitHub, in a line, on lines of their own and in a fence', () => {
    expect(tex('Let $x_1 * y*$ be, and $`a`$.')).toEqual(['x_1 * y*', 'a'])
    expect(tex('値は$x$です。')).toEqual(['x'])
    expect(tex('$$\na < b\n$$\n\ntext\n\n$$ c $$\n')).toEqual(['a &#60; b', 'c'])
    expect(tex('```math\nd\n```')).toEqual(['d\n'])
    expect(htmlOf('$$x$$ in a line').html).toContain('language-math-displayed')
  })

  test('are not prices, variables, code and escaped signs, which are unchanged', () => {
    for (const text of [
      'It costs $5 and $10.',
      '$HOME/$PATH',
      '`$x$`',
      '\\$x\\$',
      '$ x $',
      '$x',
      '$$',
      '5$x$6',
      '$`a$ `b`',
    ])
      expect(tex(text)).toEqual([])
    expect(htmlOf('It costs $5 and $10.').html).toBe('<p>It costs $5 and $10.</p>\n')
  })

  test('are not found among very many dollar signs, which are unchanged', () => {
    for (const text of ['$a '.repeat(10_000).trim(), '$$\n'.repeat(20_000).trim()])
      expect(htmlOf(text).html === `<p>${text}</p>\n`, text.slice(0, 9)).toBe(true)
  })
})

describe('formulas as MathML', () => {
  const namesOf = (node: FormulaNode | undefined): readonly string[] =>
    node === undefined || typeof node === 'string' ? [] : [node.name, ...node.children.flatMap(namesOf)]

  test('consist of MathML elements, also for cases and colors', () => {
    const formula = formulaOf('\\frac{1}{\\sqrt{x}}', true)
    expect(namesOf(formula)).toEqual(expect.arrayContaining(['math', 'mfrac', 'msqrt', 'mi', 'mn']))
    expect(formula?.attributes.display).toBe('block')
    expect(formulaOf('\\begin{cases}1\\\\2\\end{cases}', false)).toBeDefined()
    expect(JSON.stringify(formulaOf('\\textcolor{red}{x}', false))).toContain('"color":"#ff0000"')
  })

  test('are not made from commands that link, load, style or repeat endlessly', () => {
    for (const tex of [
      ...[
        '\\href{javascript:alert(1)}{x}',
        '\\url{http://pwned.invalid}',
        '\\includegraphics{http://pwned.invalid/x.png}',
      ],
      ...['\\style{position:fixed}{x}', '\\class{button}{x}', '\\id{page}{x}', '\\data{a=b}{x}', '\\html{<b>}'],
      ...[
        '\\def\\a{\\a\\a}\\a',
        '\\def\\a#1{#1#1}\\a{\\a{\\a{\\a{\\a{\\a{\\a{\\a{\\a{\\a{\\a{\\a{x}}}}}}}}}}}}',
        'x^{',
        '\\nothing',
      ],
      ...['{'.repeat(2400) + '}'.repeat(2400), 'x'.repeat(5001), 'x+'.repeat(2400)],
    ])
      expect(formulaOf(tex, true), tex.slice(0, 60)).toBeUndefined()
    expect(JSON.stringify(formulaOf('\\rule{9000em}{9000em}', true))).not.toContain('9000')
    expect(JSON.stringify(formulaOf('\\text{<img src=x onerror=alert(1)>}', true))).not.toContain('"name":"img"')
  })
})
