/** Reads the code below `src/`: its files, with their imports, functions, comments and types. */
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import ts from 'typescript'

export const root = join(import.meta.dirname, '../..')
const source = join(root, 'src')

/** One import of another file below `src/`. */
export interface Import {
  /** Path of the imported file, relative to `src/`. */
  readonly file: string
  /** Whether only types are imported, so that no import is left at run time. */
  readonly typeOnly: boolean
}

/** A function with a body, and its number of lines. */
export interface CodeFunction {
  readonly file: string
  readonly name: string
  /** Line of the function's first character, from 1. */
  readonly line: number
  readonly lines: number
}

export interface SourceFile {
  /** Path relative to `src/`, with slashes. */
  readonly file: string
  readonly lines: number
  readonly imports: readonly Import[]
  /** Paths of the files that it imports dynamically, relative to `src/`. */
  readonly loads: readonly string[]
  readonly functions: readonly CodeFunction[]
  readonly comments: readonly Comment[]
  /** String literals and the pieces of templates. A piece after a placeholder begins with `…`. */
  readonly texts: readonly Comment[]
  /** Names of the types and functions that the file declares at its top level. */
  readonly declarations: readonly string[]
  /** Variables and parameters whose name is a participle, such as `found`, in place of a noun. Members of an object that are taken by their own name do not count. */
  readonly participles: readonly Comment[]
  /** Names of constants that do not end with the unit in their comment. */
  readonly withoutUnit: readonly string[]
}

/** A comment or a string, with the line of its first character, counted from 1. */
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

/** Returns the text of one file as a {@link SourceFile}. The text is parsed when its declarations, functions, comments or texts are first used. */
export function parse(file: string, text: string): SourceFile {
  let tree: ts.SourceFile | undefined
  let declarations: readonly string[] | undefined
  let functions: readonly CodeFunction[] | undefined
  let comments: readonly Comment[] | undefined
  let texts: readonly Comment[] | undefined
  let participles: readonly Comment[] | undefined
  const parsed = () => {
    tree ??= ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true)
    return tree
  }
  return {
    file,
    lines: text.split('\n').length - 1,
    imports: importsOf(file, text),
    loads: [...text.matchAll(/\bimport\(\s*'(\.[^'\n]+\.tsx?)'/g)].map(([, name = '']) => join(dirname(file), name)),
    withoutUnit: [...text.matchAll(measuredConstant)].flatMap(([, unit = '', name = '']) =>
      name.endsWith(nameEnds.get(unit) ?? '') ? [] : [name],
    ),
    get declarations() {
      declarations ??= declarationsOf(parsed())
      return declarations
    },
    get functions() {
      functions ??= functionsOf(file, parsed())
      return functions
    },
    get comments() {
      comments ??= commentsOf(file, text, parsed())
      return comments
    },
    get participles() {
      participles ??= participlesOf(file, parsed())
      return participles
    },
    get texts() {
      texts ??= textsOf(file, parsed())
      return texts
    },
  }
}

/** Endings of names, by the unit in the comment of a constant. */
const nameEnds: ReadonlyMap<string, string> = new Map([
  ['milliseconds', 'Ms'],
  ['seconds', 'Seconds'],
  ['bytes', 'Bytes'],
])
/** A number constant at the top level of a file, whose one-line comment names a unit. */
const measuredConstant =
  /^\/\*\* (?!Maximum number)(?:(?! in )[^\n])* in (milliseconds|seconds|bytes)\b(?:(?!maximum|\*\/)[^\n])*\*\/\n(?:export )?const (\w+) = [\d_*. ]+$/gm

/** A static import or re-export of a file. The formatter begins each on a line of its own. */
const statement = /^(import|export)\s+(type\s+)?(?:([^'"`;()]*?)\s*\bfrom\s*)?'(\.[^'\n]+\.tsx?)'/gm

/** Static imports and re-exports of our files. Dynamic imports load a module later, so they cause no import circle. */
function importsOf(file: string, text: string): readonly Import[] {
  return [...text.matchAll(statement)].map(([, , type, names = '', name = '']) => {
    const members = /^\{([^}]*)\}$/
      .exec(names.trim())?.[1]
      ?.split(',')
      .filter((member) => member.trim() !== '')
    const onlyTypes = members?.every((member) => member.trim().startsWith('type ')) ?? false
    return { file: join(dirname(file), name), typeOnly: type !== undefined || onlyTypes }
  })
}

/** Participles that say nothing of a value but that there is one. */
const participleNames: ReadonlySet<string> = new Set([
  'found',
  'known',
  'told',
  'kept',
  'given',
  'asked',
  'shown',
  'wanted',
  'made',
  'said',
])

function participlesOf(file: string, tree: ts.SourceFile): readonly Comment[] {
  const participles: Comment[] = []
  const visit = (node: ts.Node): void => {
    const isNamed =
      ts.isVariableDeclaration(node) ||
      (ts.isParameter(node) && !ts.isFunctionTypeNode(node.parent) && !ts.isMethodSignature(node.parent)) ||
      (ts.isBindingElement(node) && (node.propertyName !== undefined || ts.isArrayBindingPattern(node.parent)))
    if (isNamed && ts.isIdentifier(node.name) && participleNames.has(node.name.text))
      participles.push({
        file,
        line: tree.getLineAndCharacterOfPosition(node.getStart()).line + 1,
        text: node.name.text,
      })
    ts.forEachChild(node, visit)
  }
  visit(tree)
  return participles
}

function declarationsOf(tree: ts.SourceFile): readonly string[] {
  const isFunction = ({ initializer }: ts.VariableDeclaration) =>
    initializer !== undefined && (ts.isArrowFunction(initializer) || ts.isFunctionExpression(initializer))
  return tree.statements.flatMap((statement) => {
    if (ts.isVariableStatement(statement))
      return statement.declarationList.declarations.flatMap((one) => (isFunction(one) ? [one.name.getText(tree)] : []))
    const isDeclaration =
      ts.isFunctionDeclaration(statement) ||
      ts.isInterfaceDeclaration(statement) ||
      ts.isTypeAliasDeclaration(statement) ||
      ts.isClassDeclaration(statement)
    return isDeclaration && statement.name !== undefined ? [statement.name.text] : []
  })
}

function functionsOf(file: string, tree: ts.SourceFile): readonly CodeFunction[] {
  const functions: CodeFunction[] = []
  const lineOf = (position: number) => tree.getLineAndCharacterOfPosition(position).line + 1
  const visit = (node: ts.Node): void => {
    if (ts.isFunctionLike(node) && 'body' in node && node.body !== undefined) {
      const line = lineOf(node.getStart(tree))
      functions.push({ file, name: nameOf(node), line, lines: lineOf(node.end) - line + 1 })
    }
    ts.forEachChild(node, visit)
  }
  visit(tree)
  return functions
}

function nameOf(node: ts.SignatureDeclaration): string {
  if (node.name !== undefined) return node.name.getText()
  if (ts.isConstructorDeclaration(node)) return 'constructor'
  const { parent } = node
  if (ts.isVariableDeclaration(parent) || ts.isPropertyAssignment(parent)) return parent.name.getText()
  return '(unnamed)'
}

function textsOf(file: string, tree: ts.SourceFile): readonly Comment[] {
  const texts: Comment[] = []
  const visit = (node: ts.Node): void => {
    const isContinued = ts.isTemplateMiddle(node) || ts.isTemplateTail(node)
    if (isContinued || ts.isTemplateHead(node) || ts.isStringLiteralLike(node) || ts.isJsxText(node)) {
      const line = tree.getLineAndCharacterOfPosition(node.getStart(tree)).line + 1
      texts.push({ file, line, text: `${isContinued ? '…' : ''}${node.text}` })
    }
    ts.forEachChild(node, visit)
  }
  visit(tree)
  return texts
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
