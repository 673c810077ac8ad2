import { describe, expect, test } from 'vitest'
import { type FormulaNode, formulaOf } from '../../src/explorer/web/preview/model/formula.ts'
import { htmlOf } from '../../src/explorer/web/preview/model/markdown-html.ts'
import { drawnMermaid, plainFlowchart } from '../../src/explorer/web/preview/model/mermaid.ts'

describe('formulas in Markdown', () => {
  const tex = (text: string) =>
    [...htmlOf(text).html.matchAll(/<code class="language-math[\w-]*">([^<]*)/g)].map(([, found]) => found)

  test('dollar signs mark formulas as on GitHub, in a line, on lines of their own and in a fence', () => {
    expect(tex('Let $x_1 * y*$ be, and $`a`$.')).toEqual(['x_1 * y*', 'a'])
    expect(tex('値は$x$です。')).toEqual(['x'])
    expect(tex('$$\na < b\n$$\n\ntext\n\n$$ c $$\n')).toEqual(['a &#60; b', 'c'])
    expect(tex('```math\nd\n```')).toEqual(['d\n'])
    expect(htmlOf('$$x$$ in a line').html).toContain('language-math-displayed')
  })

  test('prices, variables, code and escaped signs stay as they are written', () => {
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

  test('very many signs are read in a bounded time', () => {
    expect(htmlOf('$a '.repeat(10_000)).html.length).toBeGreaterThan(0)
    expect(htmlOf('$$\n'.repeat(20_000)).html.length).toBeGreaterThan(0)
  })
})

describe('formulas as MathML', () => {
  const namesOf = (node: FormulaNode | undefined): readonly string[] =>
    node === undefined || typeof node === 'string' ? [] : [node.name, ...node.children.flatMap(namesOf)]

  test('a formula becomes elements of MathML', () => {
    const formula = formulaOf('\\frac{1}{\\sqrt{x}}', true)
    expect(namesOf(formula)).toEqual(expect.arrayContaining(['math', 'mfrac', 'msqrt', 'mi', 'mn']))
    expect(formula?.attributes.display).toBe('block')
    expect(formulaOf('\\begin{cases}1\\\\2\\end{cases}', false)).toBeDefined()
    expect(JSON.stringify(formulaOf('\\textcolor{red}{x}', false))).toContain('"color":"#ff0000"')
  })

  test('commands that would lead, load, style or repeat without an end make no formula', () => {
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

describe('diagrams of Mermaid', () => {
  const drawing = (text: string) => {
    const drawn = drawnMermaid(text)
    return 'light' in drawn ? drawn.light : drawn
  }

  test('each kind is drawn in both themes, without an address', () => {
    for (const text of [
      'flowchart LR\nA-->B',
      '---\ntitle: Tea\n---\n%% about tea\nsequenceDiagram\nparticipant C as Customer\nC->>T: Pays\nNote over C,T: Tea\nT-->>C: Receipt',
      'stateDiagram-v2\n[*] --> Open\nOpen --> Closed : evening\nstate Open {\n[*] --> Busy\n}',
      'classDiagram\nAnimal <|-- Duck\nclass Duck {\n+swim()\n}',
      'erDiagram\nCUSTOMER ||--o{ ORDER : places\nORDER {\nint id PK\n}',
    ]) {
      const drawn = drawnMermaid(text)
      if (!('light' in drawn)) throw new Error(`${text}: ${drawn.reason}`)
      expect(drawn.light).toMatch(/^<svg[\s\S]*<\/svg>\s*$/)
      expect(drawn.light).toContain('--bg:#ffffff')
      expect(drawn.dark).toContain('--bg:#16181d')
      expect(drawn.light.replace('http://www.w3.org/2000/svg', '')).not.toMatch(/https?:|@import|<script|foreignObject/)
    }
  })

  test('a kind that is not drawn is named, and too large a diagram is not tried', () => {
    expect(drawnMermaid('pie title Teas\n"Green" : 3')).toEqual({ reason: 'kind', kind: 'pie' })
    expect(drawnMermaid('')).toEqual({ reason: 'kind', kind: '' })
    expect(drawnMermaid(`flowchart TD\n${'A --> B\n'.repeat(600)}`)).toEqual({ reason: 'large' })
  })

  test('a line that the library would leave out makes the diagram show its source', () => {
    for (const text of [
      ...['flowchart TD\nA --x B', 'flowchart TD\nA@{ shape: circle }', 'flowchart TD\nA -->', 'flowchart TD\nA ~~~ B'],
      ...['flowchart TD\nsubgraph S\nA\nend\nB --> S', 'flowchart TD\nsubgraph S\nA', 'flowchart TD\nend'],
      ...['sequenceDiagram\nA-xB: no', 'sequenceDiagram\nautonumber', 'stateDiagram-v2\nstate fork <<fork>>'],
      ...['classDiagram\nnote "tea"\nnamespace T {\n}', 'erDiagram\nA is B', 'erDiagram\nA {'],
    ])
      expect(drawing(text), text).toEqual({ reason: 'broken' })
  })

  test('a flowchart is written as the library reads it', () => {
    expect(plainFlowchart('graph\nA--text-->B')).toBe('graph TD\nA -->|text| B')
    expect(plainFlowchart('flowchart LR\nA-.->B & C==>|x|D; A---->D')).toBe(
      'flowchart LR\nA -.-> B & C ==>|x| D\nA --> D',
    )
    expect(plainFlowchart('flowchart TD\n注文-->B["a --> b; c"]')).toBe(
      'flowchart TD\nnode0_["注文"] --> B["a --> b; c"]',
    )
    // The name of a node is given at its first mention, and a subgraph holds what stands in it.
    expect(
      plainFlowchart(
        'flowchart TD\nA --> C(Pay)\nsubgraph till [The till]\nC --> E\nend\nclick A "javascript:alert(1)"',
      ),
    ).toBe('flowchart TD\nsubgraph group1 [The till]\nC(Pay) --> E\nend\nA --> C')
    expect(drawing('flowchart TD\n注文-->B')).toContain('注文')
  })

  test('what is text in a diagram stays text', () => {
    const svg = drawing(
      'flowchart TD\nA["<img src=x onerror=alert(1)>"] --> B["</text><script>alert(1)</script>"]\nstyle A fill:url(http://pwned.invalid/x),stroke:"/><script>',
    )
    expect(typeof svg === 'string' ? svg : '').not.toMatch(/<(?:img|script)|url\(http/)
  })
})
