/** Keywords of declarations in most languages, as a part of a regular expression. */
export const declarators =
  'function|class|interface|type|enum|struct|trait|impl|fn|func|def|module|namespace|object|record|protocol|extension|message|' +
  'service|create (?:or replace )?(?:table|view|function)|CREATE (?:OR REPLACE )?(?:TABLE|VIEW|FUNCTION)'

/** Modifiers of declarations in most languages, as a part of a regular expression. */
export const modifiers =
  'export|default|declare|public|private|protected|internal|static|abstract|final|async|unsafe|open|override|sealed|inline'

const most = { lines: 80, line: 160, json: 262_144, depth: 2 }

const declarations = new RegExp(`^\\s{0,4}(?:(?:${modifiers}|pub)\\s+){0,6}(?:${declarators})\\b.{0,400}$`)
const values = /^export (?:const|let|default|\{|\*).{0,400}$/

/** Tests have no declarations: each is a call with its name. */
const tests = /^\s{0,8}(?:test|it|describe|suite|bench)(?:\.\w+)*\(/

/** Returns for each line whether a heading, a declaration or a test begins there. */
export function startsIn(lines: readonly string[], path: string, mimeType: string | undefined): readonly boolean[] {
  if (!isProse(path, mimeType))
    return lines.map((line) => line.length < 500 && (declarations.test(line) || values.test(line) || tests.test(line)))
  const isFenced = createFence()
  return lines.map((line) => !isFenced(line) && /^(?:#{1,6}|={1,5}) +\S/.test(line))
}

/**
 * Returns the outline of a text: the headings of prose, the signatures of code, the columns and number of rows of a table, the
 * keys of JSON; of other texts the beginning. Each line has its number, so that the lines around it can be requested.
 */
export function outlineOf(text: string, path: string, mimeType: string | undefined): string {
  const lines = text.split('\n')
  const summary = `${lines.length} lines, ${Buffer.byteLength(text)} bytes`
  const body = bodyOf(lines, text, path, mimeType)
  const shown = body.slice(0, most.lines)
  return [summary, ...shown, ...(body.length > shown.length ? [`… ${body.length - shown.length} more`] : [])].join('\n')
}

function bodyOf(lines: readonly string[], text: string, path: string, mimeType = ''): readonly string[] {
  if (/\.(?:csv|tsv)$/i.test(path) || /^text\/(?:csv|tab-separated-values)/.test(mimeType)) return tableOf(lines)
  if (/\.json$/i.test(path) || /^application\/(?:.+\+)?json/.test(mimeType)) {
    const keys = keysIn(text)
    if (keys !== undefined) return keys
  }
  const found = isProse(path, mimeType) ? headingsIn(lines) : signaturesIn(lines)
  return found.length > 0 ? found : numbered(lines, (line) => line.trim() !== '').slice(0, 5)
}

function numbered(lines: readonly string[], isShown: (line: string) => boolean): readonly string[] {
  return lines.flatMap((line, index) => (isShown(line) ? [`${index + 1}: ${shorten(line.trimEnd())}`] : []))
}

function headingsIn(lines: readonly string[]): readonly string[] {
  const isFenced = createFence()
  return numbered(lines, (line) => !isFenced(line) && /^(?:#{1,6}|={1,5}) +\S/.test(line))
}

function signaturesIn(lines: readonly string[]): readonly string[] {
  return numbered(lines, (line) => line.length < 500 && (declarations.test(line) || values.test(line))).map((line) =>
    line.replace(/\s*[{(=:]+\s*$/, ''),
  )
}

function tableOf(lines: readonly string[]): readonly string[] {
  const full = lines.filter((line) => line.trim() !== '')
  return [
    `columns: ${shorten(full[0] ?? '')}`,
    `rows: ${Math.max(0, full.length - 1)}`,
    ...numbered(full.slice(0, 3), () => true).slice(1),
  ]
}

/** The keys of the outer levels, with the kinds of their values. `undefined`: the text is not JSON that is worth parsing. */
function keysIn(text: string): readonly string[] | undefined {
  if (text.length > most.json) return undefined
  try {
    return [...described('', JSON.parse(text), 0)]
  } catch {
    return undefined
  }
}

function* described(path: string, value: unknown, depth: number): Generator<string> {
  const name = path === '' ? 'value' : path
  if (Array.isArray(value)) {
    yield shorten(`${name}: array of ${value.length}`)
    if (depth < most.depth && value.length > 0) yield* described(`${path}[0]`, value[0], depth + 1)
  } else if (typeof value === 'object' && value !== null) {
    const entries = Object.entries(value)
    yield shorten(`${name}: object of ${entries.length}`)
    if (depth < most.depth)
      for (const [key, inner] of entries) yield* described(path === '' ? key : `${path}.${key}`, inner, depth + 1)
  } else yield shorten(`${name}: ${value === null ? 'null' : typeof value}`)
}

function shorten(line: string): string {
  return line.length <= most.line ? line : `${line.slice(0, most.line - 1).replace(/[\ud800-\udbff]$/, '')}…`
}

/** Files of prose, whose parts begin with headings. */
const proseNames = /\.(?:md|mdx|markdown|adoc|rst|org)$/i

export function isProse(path: string, mimeType: string | undefined): boolean {
  return mimeType === 'text/markdown' || proseNames.test(path)
}

/** Returns a function that reads Markdown line by line, and returns whether the line is inside a code fence. The closing line is not. */
export function createFence(): (line: string) => boolean {
  let fence: string | undefined
  return (line) => {
    const mark = /^ {0,3}(`{3,}|~{3,})/.exec(line)?.[1]
    if (mark !== undefined) {
      if (fence === undefined) fence = mark
      else if (mark.startsWith(fence)) fence = undefined
    }
    return fence !== undefined
  }
}
