import { existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import ts from 'typescript'

const root = resolve(import.meta.dirname, '..')
const target = join(root, 'dist')
/** An import of one of our own modules. Groups: the text before the path, the path without its extension, and the closing quote. */
const relativeImport = /(\b(?:from|import)\s*\(?\s*['"])(\.[^'"]+)\.[jt]s(['"])/g
/** An import of a package or of a module of Node. */
const packageImport = /^(?:import|export)\b[^;]*?\bfrom\s*['"]([^.'"][^'"]*)['"]|\bimport\(['"]([^.'"][^'"]*)['"]\)/gm

/**
 * Writes the type declarations that the exports of package.json need into `dist/`, and no others. Run it after the bundle, and before
 * the package is packed. It throws if a declaration imports a package, because an installation does not have the bundled packages.
 * A type that the public API needs must be in a module whose declarations import no package.
 *
 * @param host A host that has read the sources already, if there is one.
 */
export function writeDeclarations(host?: ts.CompilerHost): void {
  const made = mkdtempSync(join(tmpdir(), 'hikidashi-types-'))
  try {
    const sources = entries().map((file) => join(root, 'src', file.replace(/\.d\.ts$/, '.ts')))
    emit(sources, made, host)
    for (const file of reachable(entries(), made)) {
      mkdirSync(dirname(join(target, file)), { recursive: true })
      // The compiler keeps imports of `.ts` files in declarations, but the package contains only built files.
      const text = readFileSync(join(made, file), 'utf8').replace(relativeImport, '$1$2.js$3')
      writeFileSync(join(target, file), text)
    }
  } finally {
    rmSync(made, { recursive: true, force: true })
  }
}

/**
 * Writes the declarations of modules, and of all modules that they import. It does not check the sources, which takes twice as long
 * as writing the declarations: `npm run types` does.
 */
function emit(files: readonly string[], outDir: string, host?: ts.CompilerHost): void {
  const { config } = ts.readConfigFile(join(root, 'tsconfig.build.json'), ts.sys.readFile)
  const { options, errors } = ts.parseJsonConfigFileContent(config, ts.sys, root)
  const program = ts.createProgram(files, { ...options, emitDeclarationOnly: true, noCheck: true, outDir }, host)
  const faults = [...errors, ...program.emit().diagnostics]
  if (faults.length > 0) throw new Error(ts.formatDiagnostics(faults, ts.createCompilerHost(options)))
}

/** Returns the declaration files that package.json exports. A path with `*` becomes one path for each provider. */
function entries(): readonly string[] {
  const { exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    readonly exports: Readonly<Record<string, { readonly types?: string } | string>>
  }
  return Object.values(exports).flatMap((target) => {
    if (typeof target === 'string' || target.types === undefined) return []
    const file = target.types.replace(/^\.\/dist\//, '')
    if (!file.includes('*')) return [file]
    const table = readFileSync(join(root, 'src/providers/table.ts'), 'utf8')
    return [...table.matchAll(/from '\.\/([\w-]+)\/declaration\.ts'/g)].map(([, name = '']) => file.replace('*', name))
  })
}

/** Returns declaration files, and all declaration files that they import, directly or not. */
function reachable(from: readonly string[], made: string): ReadonlySet<string> {
  const found = new Set(from)
  for (const file of found) {
    if (!existsSync(join(made, file))) throw new Error(`There is no declaration ${file}.`)
    const text = readFileSync(join(made, file), 'utf8')
    const named = [...text.matchAll(packageImport)]
      .map(([, from, inline]) => from ?? inline ?? '')
      .filter((name) => !isBuiltin(name))
    if (named.length > 0) throw new Error(`${file} names ${named.join(', ')}, which an installation does not have.`)
    for (const [, , path = ''] of text.matchAll(relativeImport)) found.add(join(dirname(file), `${path}.d.ts`))
  }
  return found
}

if (realpathSync(process.argv[1] ?? '.') === import.meta.filename) writeDeclarations()
