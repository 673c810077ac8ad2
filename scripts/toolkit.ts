/**
 * Writes the tables in `docs/toolkit.md`: every function and value of the package with the first sentence of its documentation, and the names of its types.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import ts from 'typescript'

const root = join(import.meta.dirname, '..')
const page = join(root, 'docs/toolkit.md')

/** An entry of the package, with its source. */
export interface EntryPoint {
  /** The specifier of its import: `hikidashi/server`. */
  readonly name: string
  readonly file: string
}

/** The entries in `exports` of package.json. An entry with a wildcard becomes one entry for each match. */
export function entryPoints(): readonly EntryPoint[] {
  const { name, exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    name: string
    exports: Record<string, string | { types: string }>
  }
  return Object.entries(exports).flatMap(([key, target]) => {
    if (typeof target === 'string') return []
    const file = target.types.replace('./dist/', 'src/').replace('.d.ts', '.ts')
    const plain = { name: key.replace('.', name), file }
    if (!file.includes('*')) return [plain]
    const folder = file.slice(0, file.indexOf('*'))
    return readdirSync(join(root, folder), { withFileTypes: true })
      .filter((one) => one.isDirectory() && readdirSync(join(root, folder, one.name)).includes('index.ts'))
      .map((one) => ({ name: plain.name.replace('*', one.name), file: file.replace('*', one.name) }))
      .sort((a, b) => (a.name < b.name ? -1 : 1))
  })
}

/** One export of an entry. */
export interface Exported {
  readonly name: string
  readonly kind: 'function' | 'value' | 'type'
  readonly about: string
}

/** The compiler options of the project, and a host that reads each file once for all programs. */
export interface Compiler {
  readonly options: ts.CompilerOptions
  readonly host: ts.CompilerHost
}

let compiler: Compiler | undefined

/** Returns the compiler of this process. It is shared, because reading and binding the types of all packages takes long. */
export function compilerHere(): Compiler {
  compiler ??= makeCompiler()
  return compiler
}

function makeCompiler(): Compiler {
  const { config } = ts.readConfigFile(join(root, 'tsconfig.json'), ts.sys.readFile)
  const { options } = ts.parseJsonConfigFileContent({ ...config, include: [], files: [] }, ts.sys, root)
  const host = ts.createCompilerHost(options)
  const files = new Map<string, ts.SourceFile | undefined>()
  const getSourceFile: typeof host.getSourceFile = (name, ...rest) => {
    if (!files.has(name)) files.set(name, host.getSourceFile(name, ...rest))
    return files.get(name)
  }
  return { options, host: { ...host, getSourceFile } }
}

/** Returns the exports of each entry, as the compiler sees them in the sources. */
export function exportsOf(entries: readonly EntryPoint[]): ReadonlyMap<string, readonly Exported[]> {
  const { options, host } = compilerHere()
  const program = ts.createProgram(
    entries.map(({ file }) => join(root, file)),
    options,
    host,
  )
  const checker = program.getTypeChecker()
  return new Map(
    entries.map(({ name, file }) => {
      const source = program.getSourceFile(join(root, file))
      const symbol = source === undefined ? undefined : checker.getSymbolAtLocation(source)
      const found = symbol === undefined ? [] : checker.getExportsOfModule(symbol)
      const described = found.map((one) => describe(one, checker))
      return [name, described.sort((a, b) => rank(a) - rank(b) || (a.name < b.name ? -1 : 1))]
    }),
  )
}

function describe(exported: ts.Symbol, checker: ts.TypeChecker): Exported {
  const symbol = exported.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(exported) : exported
  const isValue = (symbol.flags & ts.SymbolFlags.Value) !== 0
  const declaration = symbol.valueDeclaration
  const type = declaration === undefined ? undefined : checker.getTypeOfSymbolAtLocation(symbol, declaration)
  const isFunction = isValue && (type?.getCallSignatures().length ?? 0) > 0
  const text = ts.displayPartsToString(symbol.getDocumentationComment(checker))
  return { name: exported.name, kind: isFunction ? 'function' : isValue ? 'value' : 'type', about: firstSentence(text) }
}

const kinds: readonly Exported['kind'][] = ['function', 'value', 'type']
const rank = ({ kind }: Exported) => kinds.indexOf(kind)

function firstSentence(text: string): string {
  const line = text
    .split(/\n\s*\n/)[0]
    ?.replace(/\{@link (\w+)(?:\s*\|?[^}]*)?\}/g, '`$1`')
    .replace(/\s+/g, ' ')
    .trim()
  return (/^.*?[.!?](?= |$)/.exec(line ?? '')?.[0] ?? line ?? '').replaceAll('|', '\\|')
}

const marker = '<!-- The tables below are written by `npm run schema`. -->\n'

/** Replaces the tables in the page by those of the current sources. */
export function withTables(text: string): string {
  const head = text.slice(0, text.indexOf(marker) + marker.length)
  const entries = entryPoints()
  const found = exportsOf(entries)
  const tables = entries.map(({ name }) => {
    const exported = found.get(name) ?? []
    const rows = exported
      .filter(({ kind }) => kind !== 'type')
      .map((one) => {
        if (one.about === '') throw new Error(`${one.name}, which ${name} exports, has no description.`)
        return `| \`${one.name}\` | ${one.kind} | ${one.about} |`
      })
    const types = exported.filter(({ kind }) => kind === 'type').map((one) => `\`${one.name}\``)
    const table = rows.length === 0 ? [] : [`| export | kind | what it is |\n|---|---|---|\n${rows.join('\n')}`]
    const list = types.length === 0 ? [] : [`Types: ${types.join(', ')}.`]
    return `## \`${name}\`\n\n${[...table, ...list].join('\n\n')}\n`
  })
  return `${head}\n${tables.join('\n')}`
}

if (import.meta.filename === process.argv[1]) writeFileSync(page, withTables(readFileSync(page, 'utf8')))
