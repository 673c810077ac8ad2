/** The code below `src/`, read once: its files, what they import, and their functions. */
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import ts from 'typescript'

export const root = join(import.meta.dirname, '../..')
const source = join(root, 'src')

/** One import of another file below `src/`. */
export interface Import {
  /** Path of the imported file, relative to `src/`. */
  readonly file: string
  /** Types alone: nothing of it is left at run time. */
  readonly typeOnly: boolean
}

/** A function with a body, and the lines that it takes. */
export interface CodeFunction {
  readonly file: string
  readonly name: string
  /** Line of its first character, counted from 1. */
  readonly line: number
  readonly lines: number
}

export interface SourceFile {
  /** Path relative to `src/`, with slashes. */
  readonly file: string
  readonly lines: number
  readonly imports: readonly Import[]
  readonly functions: readonly CodeFunction[]
  readonly comments: readonly Comment[]
}

export interface Comment {
  readonly file: string
  readonly line: number
  readonly text: string
}

/** Reads every `.ts` and `.tsx` file below `src/`, in the order of their paths. */
export function readSource(): readonly SourceFile[] {
  const files = readdirSync(source, { recursive: true, encoding: 'utf8' })
    .map((file) => file.replaceAll('\\', '/'))
    .filter((file) => /\.tsx?$/.test(file))
    .sort()
  return files.map((file) => parse(file, readFileSync(join(source, file), 'utf8')))
}

/** Parses the text of one file. */
export function parse(file: string, text: string): SourceFile {
  const tree = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true)
  const functions: CodeFunction[] = []
  const imports: Import[] = []
  const lineOf = (position: number) => tree.getLineAndCharacterOfPosition(position).line + 1
  const visit = (node: ts.Node): void => {
    if (ts.isFunctionLike(node) && 'body' in node && node.body !== undefined) {
      const line = lineOf(node.getStart(tree))
      functions.push({ file, name: nameOf(node), line, lines: lineOf(node.end) - line + 1 })
    }
    const target = importOf(node)
    if (target !== undefined) imports.push({ file: join(dirname(file), target.name), typeOnly: target.typeOnly })
    ts.forEachChild(node, visit)
  }
  visit(tree)
  return { file, lines: text.split('\n').length - 1, imports, functions, comments: commentsOf(file, text, tree) }
}

/** A static import or re-export of a file of ours. Dynamic imports load a module later, so they make no circle. */
function importOf(node: ts.Node): { name: string; typeOnly: boolean } | undefined {
  if (!ts.isImportDeclaration(node) && !ts.isExportDeclaration(node)) return undefined
  const specifier = node.moduleSpecifier
  if (specifier === undefined || !ts.isStringLiteral(specifier) || !specifier.text.startsWith('.')) return undefined
  if (!/\.tsx?$/.test(specifier.text)) return undefined
  if (ts.isExportDeclaration(node)) return { name: specifier.text, typeOnly: node.isTypeOnly }
  const clause = node.importClause
  const named = clause?.namedBindings
  const onlyTypes =
    named !== undefined && ts.isNamedImports(named) && named.elements.every((element) => element.isTypeOnly)
  const typeOnly = clause !== undefined && (clause.isTypeOnly || (clause.name === undefined && onlyTypes))
  return { name: specifier.text, typeOnly }
}

function nameOf(node: ts.SignatureDeclaration): string {
  if (node.name !== undefined) return node.name.getText()
  if (ts.isConstructorDeclaration(node)) return 'constructor'
  const { parent } = node
  if (ts.isVariableDeclaration(parent) || ts.isPropertyAssignment(parent)) return parent.name.getText()
  return '(unnamed)'
}

/** The comments of a file. Lines of `//` that follow each other are one comment. */
function commentsOf(file: string, text: string, tree: ts.SourceFile): readonly Comment[] {
  const ranges = new Map<number, number>()
  const visit = (node: ts.Node): void => {
    for (const range of ts.getLeadingCommentRanges(text, node.pos) ?? []) ranges.set(range.pos, range.end)
    for (const range of ts.getTrailingCommentRanges(text, node.end) ?? []) ranges.set(range.pos, range.end)
    ts.forEachChild(node, visit)
  }
  visit(tree)
  const comments: Comment[] = []
  let last = { end: -1, isLine: false }
  for (const [pos, end] of [...ranges].sort((a, b) => a[0] - b[0])) {
    const raw = text.slice(pos, end)
    const isLine = raw.startsWith('//')
    const words = raw
      .replace(/^\/\*\*?|\*\/$|^\/\/ ?/g, '')
      .replace(/\n\s*\* ?/g, ' ')
      .trim()
    const previous = comments.at(-1)
    if (isLine && last.isLine && previous !== undefined && /^\n[ \t]*$/.test(text.slice(last.end, pos)))
      comments[comments.length - 1] = { ...previous, text: `${previous.text} ${words}` }
    else comments.push({ file, line: tree.getLineAndCharacterOfPosition(pos).line + 1, text: words })
    last = { end, isLine }
  }
  return comments.filter((comment) => !/^(?:biome-ignore|@jsx|c8 |v8 )/.test(comment.text))
}
