/** Token of an SQL statement. Definitions are tokenized because SQLite keeps them as they were written. */
export interface Token {
  readonly text: string
  /** How many parentheses it lies in; of a parenthesis, how many its pair lies in. */
  readonly depth: number
  readonly start: number
  readonly end: number
}

const pattern =
  /'(?:[^']|'')*'|"(?:[^"]|"")*"|`(?:[^`]|``)*`|\[[^\]]*\]|--[^\n]*|\/\*[\s\S]*?(?:\*\/|$)|[\p{L}\p{N}_$]+|\s+|[\s\S]/gu

/** The tokens of a statement, without white space and comments. */
export function tokensOf(sql: string): readonly Token[] {
  const tokens: Token[] = []
  let depth = 0
  for (const { 0: text, index } of sql.matchAll(pattern)) {
    if (/^(?:\s|--|\/\*)/.test(text)) continue
    if (text === ')') depth--
    tokens.push({ text, depth, start: index, end: index + text.length })
    if (text === '(') depth++
  }
  return tokens
}

/** The items between the first parentheses of a statement, at its commas: the columns of a table or an index, and constraints. */
export function itemsOf(sql: string): readonly (readonly Token[])[] {
  const tokens = tokensOf(sql)
  const from = tokens.findIndex(({ text, depth }) => text === '(' && depth === 0)
  if (from === -1) return []
  const items: Token[][] = [[]]
  for (const token of tokens.slice(from + 1)) {
    if (token.text === ')' && token.depth === 0) break
    if (token.text === ',' && token.depth === 1) items.push([])
    else items.at(-1)?.push(token)
  }
  return items
}

/** The text of some tokens that follow each other. */
export function textOf(sql: string, tokens: readonly Token[]): string {
  const [first, last] = [tokens[0], tokens.at(-1)]
  return first === undefined || last === undefined ? '' : sql.slice(first.start, last.end)
}

/** A name without its quotes. */
export function unquoted(text: string): string {
  const mark = text[0]
  if (mark === '[') return text.slice(1, -1)
  if (mark !== undefined && '"`\''.includes(mark)) return text.slice(1, -1).replaceAll(mark + mark, mark)
  return text
}

/** The tokens between the parentheses that open at an index, which are in it. */
function group(tokens: readonly Token[], at: number): readonly Token[] {
  const opening = tokens[at]
  if (opening?.text !== '(') return []
  const end = tokens.findIndex(({ text, depth }, i) => i > at && text === ')' && depth === opening.depth)
  return end === -1 ? [] : tokens.slice(at, end + 1)
}

/** The checks of a table, in their order. */
export function checksOf(sql: string): readonly { readonly name: string; readonly definition: string }[] {
  return itemsOf(sql).flatMap((item) =>
    item.flatMap(({ text, depth }, i) => {
      if (depth !== 1 || !/^check$/i.test(text)) return []
      const condition = group(item, i + 1)
      if (condition.length === 0) return []
      const isNamed = /^constraint$/i.test(item[i - 2]?.text ?? '')
      return [{ name: isNamed ? unquoted(item[i - 1]?.text ?? '') : '', definition: `CHECK ${textOf(sql, condition)}` }]
    }),
  )
}

/** The expressions that columns are generated from, by column. */
export function generatedOf(sql: string): ReadonlyMap<string, string> {
  const found = itemsOf(sql).flatMap((item): readonly (readonly [string, string])[] => {
    const at = item.findIndex(({ text, depth }, i) => i > 0 && depth === 1 && /^as$/i.test(text))
    const expression = at === -1 ? [] : group(item, at + 1).slice(1, -1)
    return expression.length === 0 ? [] : [[unquoted(item[0]?.text ?? ''), textOf(sql, expression)]]
  })
  return new Map(found)
}
