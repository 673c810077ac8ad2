import { createHash } from 'node:crypto'
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join, sep } from 'node:path'
import { pathToFileURL } from 'node:url'
import { build } from 'rolldown'
import type { Plugin } from 'vitest/config'
import { bundleVariable, home } from './bundle-folder.ts'

// Test files import `src/` as JavaScript that is compiled at once, before the run, a file for each module. Node loads it by itself:
// vitest would compile each module, and hand it to each process, one by one.

const source = join(home, 'src')
/** Modules of the page, which only Vite compiles. */
const page = join(source, 'explorer/web')

/** The modules that start threads and child processes from files beside them. */
const starters = new Map(
  [
    'providers/files/watch',
    'providers/gdrive/read',
    'providers/settings/desk',
    'providers/sqlite/process',
    'store/sqlite',
    'wrap/readable',
    'secrets/redactor',
  ].map((name) => [join(source, `${name}.ts`), `${name}.js`]),
)

/**
 * Lets a module start its threads and processes from the bundle: from their source each would load a compiler first. The bundle of a run
 * is named by the environment, so that what is compiled holds for other runs.
 */
function startFromBundle(code: string, id: string): string | null {
  const name = starters.get(id)
  if (name === undefined) return null
  const path = `process.getBuiltinModule('node:path').join(process.env.${bundleVariable}, ${JSON.stringify(name)})`
  return code
    .replaceAll('import.meta.url', `process.getBuiltinModule('node:url').pathToFileURL(${path}).href`)
    .replaceAll('import.meta.filename', path)
    .replaceAll('import.meta.dirname', `process.getBuiltinModule('node:path').dirname(${path})`)
}

/** The same for the modules that Vite compiles: those of a file that is watched, or that replaces modules. */
export const threadsFromBundle: Plugin = { name: 'threads-from-bundle', enforce: 'pre', transform: startFromBundle }

/** Makes a module find its neighbours in `src/`, wherever it was compiled to. */
function stayInSource(code: string, id: string): string | null {
  if (!code.includes('import.meta')) return null
  return (
    startFromBundle(code, id) ??
    code
      .replaceAll('import.meta.url', JSON.stringify(pathToFileURL(id).href))
      .replaceAll('import.meta.filename', JSON.stringify(id))
      .replaceAll('import.meta.dirname', JSON.stringify(dirname(id)))
  )
}

/** The modules of `src/` without those of the page, by their paths from there, without an extension. */
function modules(): readonly string[] {
  return readdirSync(source, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts') && !join(source, path).startsWith(page + sep))
    .map((path) => path.slice(0, -'.ts'.length))
    .sort()
}

const compiledFolder = join(home, 'node_modules/.hikidashi-compiled')

/** The folder of what is compiled. Its name follows from the code: other runs use it until the code is another. */
const target = join(compiledFolder, digest())

function digest(): string {
  const sum = createHash('sha1').update(home)
  const files = [
    import.meta.filename,
    join(home, 'package-lock.json'),
    ...modules().map((path) => join(source, `${path}.ts`)),
  ]
  for (const file of files) sum.update(`\0${file}\0`).update(readFileSync(file))
  return sum.digest('hex').slice(0, 16)
}

/** Compiles `src/`, unless it is compiled already. */
export async function compileSource(): Promise<void> {
  mkdirSync(compiledFolder, { recursive: true })
  if (existsSync(target)) return utimesSync(target, new Date(), new Date())
  removeOld()
  const made = `${target}-${process.pid}`
  await build({
    input: Object.fromEntries(modules().map((path) => [path, join(source, `${path}.ts`)])),
    platform: 'node',
    external: (id) => !/^[./]/.test(id) && !/^[a-z]:/i.test(id),
    treeshake: false,
    plugins: [{ name: 'stay-in-source', transform: stayInSource }],
    // What the plugin replaces stays on its line, so the source maps are right.
    checks: { bundlerTimings: false, ineffectiveDynamicImport: false, sourcemapBroken: false },
    output: {
      dir: made,
      format: 'esm',
      preserveModules: true,
      preserveModulesRoot: source,
      entryFileNames: '[name].js',
      minify: 'dce-only',
      sourcemap: 'inline',
    },
  })
  writeFileSync(join(made, 'package.json'), '{ "type": "module" }')
  try {
    renameSync(made, target)
  } catch (error) {
    // Another run was first.
    if (!existsSync(target)) throw error
    rmSync(made, { recursive: true })
  }
}

const dayMs = 24 * 60 * 60 * 1000

/** Removes what no run has used for a day. */
function removeOld(): void {
  for (const name of readdirSync(compiledFolder)) {
    const folder = join(compiledFolder, name)
    if (statSync(folder).mtimeMs < Date.now() - dayMs) rmSync(folder, { recursive: true, force: true })
  }
}

/**
 * Leads imports of `src/` in tests to what is compiled. Its name is part of the key under which vitest keeps the tests that it compiled.
 */
export const compiledSource: Plugin = {
  name: `compiled-source ${target}`,
  enforce: 'pre',
  resolveId(specifier, importer) {
    if (importer === undefined || !specifier.startsWith('.') || !specifier.endsWith('.ts')) return null
    const inSource = (path: string) => path.startsWith(source + sep) && !path.startsWith(page + sep)
    const path = join(dirname(importer), specifier)
    if (!inSource(path) || inSource(importer)) return null
    return `${join(target, path.slice(source.length + 1, -'.ts'.length))}.js`
  },
}
