import { execFile } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import { dirname, join, relative } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'
import { guarantees, paths } from '../bench/special-paths.ts'
import { circlesOf } from '../scripts/code/circles.ts'
import { parse, readSource } from '../scripts/code/source.ts'
import * as table from '../src/providers/table.ts'
import { repeatedNames, riddleIn } from './support/words.ts'

const root = join(import.meta.dirname, '..')
const source = join(root, 'src')

interface Rule {
  readonly folders: ReadonlySet<string>
  readonly packages: ReadonlySet<string>
}

/** The table under "Who may import whom" in docs/architecture.md. */
function readRules(): ReadonlyMap<string, Rule> {
  const page = readFileSync(join(root, 'docs/architecture.md'), 'utf8')
  const table = /## Who may import whom[\s\S]*?```\n([\s\S]*?)```/.exec(page)?.[1] ?? ''
  const words = (text = '') =>
    new Set(
      text
        .split(',')
        .map((word) => word.trim())
        .filter((word) => word !== ''),
    )
  return new Map(
    table
      .trim()
      .split('\n')
      .map((line) => {
        const [name = '', rest = ''] = line.split('→')
        const [folders, packages] = rest.split(' : ')
        return [name.trim(), { folders: words(folders), packages: words(packages) }]
      }),
  )
}

const code = readSource()
const withoutComments = (text: string) => text.replace(/\/\*[\s\S]*?\*\//g, '').replace(/^\s*\/\/.*$/gm, '')

/** Everything that a file imports, statically or not, type or value. */
function importsOf(text: string): readonly string[] {
  const code = withoutComments(text)
  const found = code.matchAll(
    /(?:^(?:import|export)\b[^'"`;]*?\bfrom\s*|\bimport\s*\(\s*|^import\s+)(['"])([^'"\n]+)\1/gm,
  )
  return [...found].map((match) => match[2] ?? '')
}

const files = readdirSync(source, { recursive: true, encoding: 'utf8' }).filter((file) => /\.tsx?$/.test(file))
const folderOf = (file: string) => file.split(/[\\/]/)[0]?.replace(/\.ts$/, '') ?? ''
const packageOf = (name: string) =>
  name
    .split('/')
    .slice(0, name.startsWith('@') ? 2 : 1)
    .join('/')

function faultsOf(file: string, text: string, rules: ReadonlyMap<string, Rule>): readonly string[] {
  const folder = folderOf(file)
  const rule = rules.get(folder)
  if (rule === undefined) return [`${file}: the folder ${folder} is not in the table`]
  return importsOf(text).flatMap((name) => {
    if (isBuiltin(name)) return []
    if (!name.startsWith('.'))
      return rule.packages.has(packageOf(name))
        ? []
        : [`${file}: ${folder} may not import the package ${packageOf(name)}`]
    const target = folderOf(relative(source, join(source, dirname(file), name)))
    return target === folder || rule.folders.has(target) ? [] : [`${file}: ${folder} may not import ${target}`]
  })
}

describe('the import table of docs/architecture.md', () => {
  const rules = readRules()

  test('is kept by every file in src', () => {
    expect(files.length).toBeGreaterThan(40)
    expect(files.flatMap((file) => faultsOf(file, readFileSync(join(source, file), 'utf8'), rules))).toEqual([])
  })

  test('has a row for each folder of src, and no other row', () => {
    expect([...rules.keys()].sort()).toEqual([...new Set(files.map(folderOf))].sort())
  })

  test('forbids an import that it does not list', () => {
    const wrong = [
      "import { a } from '../server/http.ts'",
      "import zod from 'zod'",
      "const x = await import('../cli/main.ts')",
    ]
    for (const line of wrong) expect(faultsOf('core/x.ts', line, rules)).toHaveLength(1)
    expect(faultsOf('core/x.ts', "import { a } from './uri.ts'\nimport 'node:crypto'", rules)).toEqual([])
  })
})

describe('the source code', () => {
  const texts = files.map((file) => ({ file, text: withoutComments(readFileSync(join(source, file), 'utf8')) }))

  test('uses the URL class only in src/client and src/cli, except for addresses relative to a module or a page', () => {
    // Where a module or the page itself lies is no URI of a resource.
    const faults = texts.filter(
      ({ file, text }) =>
        /new URL\((?!.*(?:import\.meta\.url|document\.baseURI))/.test(text) &&
        !file.startsWith('client/') &&
        !file.startsWith('cli/'),
    )
    expect(faults.map(({ file }) => file)).toEqual([])
  })

  test('uses no type any, no default export and no directive that silences the compiler, except in vite.config.ts', () => {
    const faults = texts.filter(
      ({ file, text }) =>
        /\bas any\b|: any\b|<any>|^export default|@ts-(?:ignore|expect-error|nocheck)/m.test(text) &&
        !file.endsWith('vite.config.ts'),
    )
    expect(faults.map(({ file }) => file)).toEqual([])
  })

  test('has a source file for each module that "exports" in package.json names without a wildcard', () => {
    const { exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
      exports: Record<string, string | { default: string }>
    }
    for (const [name, target] of Object.entries(exports)) {
      if (typeof target === 'string' || name.includes('*')) continue
      expect(files.map((file) => `./dist/${file.replace(/\.ts$/, '.js')}`)).toContain(target.default)
    }
  })

  test('compares the provider of a mount with a name such as "git" only in the folders below src/providers', () => {
    const names = readdirSync(join(source, 'providers'), { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => name)
    const word = `['"](?:${names.join('|')})['"]`
    const comparison = new RegExp(
      [
        `\\bprovider(?:'\\))?\\s*[!=]==?\\s*${word}`,
        `${word}\\s*[!=]==?\\s*[\\w.]*\\bprovider\\b`,
        `\\bswitch \\([\\w.]*provider\\)`,
        `${word}[^\\n]*\\]\\)?\\.(?:includes|has|indexOf)\\([\\w.]*provider\\b`,
        `\\b(?:mountSource|sourceNamed)\\([^\\n]*\\.name\\s*[!=]==?`,
      ].join('|'),
    )
    const samples = [
      "config.provider === 'git'",
      "if (provider !== 'web') return",
      "memberOf(mount, 'provider') === 'search'",
      "'files' === mount.provider",
      'switch (config.provider) {',
      "['inline', 'env'].includes(config.provider)",
      "mountSource(config).name === 'git'",
    ]
    for (const sample of samples) expect(sample).toMatch(comparison)
    const faults = texts.filter(({ file, text }) => {
      const folder = /^providers[\\/]([\w-]+)[\\/]/.exec(file)?.[1]
      return folder === undefined && comparison.test(text)
    })
    expect(faults.map(({ file }) => file)).toEqual([])
  })

  test('depends on no name of a provider, such as "s3", in src/explorer/web and scripts/abilities.ts', () => {
    const sources = Object.keys(table)
    const word = `['"](?:${sources.join('|')})['"]`
    const kind = '(?:kind|scheme|source|provider|name)\\w*(?:\\([^)]*\\))?'
    // These words are nothing else than names of sources.
    const plain = sources.filter((name) => /^(?:s3|gcs|gdrive|git|mysql|postgres|sqlite)$/.test(name))
    const known = new RegExp(
      [
        `\\b${kind}\\s*[!=]==?\\s*${word}`,
        `${word}\\s*[!=]==?\\s*\\w*\\b${kind}`,
        `/\\^(?:${sources.join('|')}):`,
        `['"](?:${sources.join('|')}):(?://)?['"]`,
        `['"](?:${plain.join('|')})['"]`,
      ].join('|'),
    )
    for (const sample of [
      "kindOf(uri) === 'files'",
      "kind === 'search' ? 2 : 1",
      '/^search:/i.test(address)',
      "uri.startsWith('metrics://')",
      "storage: ['database', 's3', 'gs']",
      "name === 'gdrive' ? await startDriveMount() : undefined",
    ])
      expect(sample).toMatch(known)
    const page = texts.filter(({ file }) => /^explorer[\\/]web[\\/]/.test(file))
    expect(page.length).toBeGreaterThan(50)
    const script = 'scripts/abilities.ts'
    const faults = [...page, { file: script, text: withoutComments(readFileSync(join(root, script), 'utf8')) }]
      .flatMap(({ file, text }) => text.split('\n').map((line) => ({ file, line })))
      // The program of the repository that the samples lie in.
      .filter(({ file, line }) => known.test(line) && !(file === script && line.trim() === "'git',"))
    expect(faults).toEqual([])
  })

  test('has no import cycle, also with type imports and lazy imports', () => {
    const file = (name: string, ...targets: string[]) => ({
      file: name,
      imports: targets.map((target) => ({ file: target, typeOnly: false })),
    })
    const [sample] = circlesOf([file('a', 'b'), file('b', 'c'), file('c', 'b'), file('d', 'a')])
    expect(sample).toEqual(['b', 'c'])
    const later = code.map(({ file, imports, loads }) => ({
      file,
      imports: [...imports, ...loads.map((target) => ({ file: target, typeOnly: false }))],
    }))
    expect(circlesOf(later)).toEqual([])
  })

  test.each(['cli', 'explorer/web', 'server'])('has no import cycle between the folders in %s', (parent) => {
    const folderOf = (file: string) => new RegExp(`^(${parent}/[\\w-]+)/`).exec(file)?.[1] ?? []
    const folders = new Map<string, string[]>()
    for (const { file, imports, loads } of code) {
      const targets = [...imports.map((target) => target.file), ...loads].flatMap(folderOf)
      for (const folder of [folderOf(file)].flat()) folders.set(folder, [...(folders.get(folder) ?? []), ...targets])
    }
    expect(folders.size).toBeGreaterThan(3)
    const graph = [...folders].map(([file, targets]) => {
      const others = targets.filter((target) => target !== file)
      return { file, imports: others.map((target) => ({ file: target, typeOnly: false })) }
    })
    expect(circlesOf(graph)).toEqual([])
  })

  test.each([
    ['providers/git', 12],
    ['providers/files', 14],
  ])('has in src/%s at most %i files', (folder, most) => {
    const names = files.map((file) => file.replaceAll('\\', '/')).filter((file) => file.startsWith(`${folder}/`))
    expect(names.length).toBeGreaterThan(5)
    expect(names.length).toBeLessThanOrEqual(most)
  })

  test('declares each name of a type or function, except Props, define and open, in at most three files', () => {
    expect(repeatedNames(code)).toEqual([])
  })

  test('ends the name of a constant with its unit if the comment of the constant names one', () => {
    expect(code.flatMap(({ file, withoutUnit }) => withoutUnit.map((name) => `${file} ${name}`))).toEqual([])
  })

  test('names no variable or parameter by a participle that says nothing of its value, such as "found"', () => {
    const [example] = parse('x.ts', 'const { found, a: known } = f((told) => told)').participles
    expect(example).toEqual({ file: 'x.ts', line: 1, text: 'known' })
    expect(code.flatMap(({ participles }) => participles)).toEqual([])
  })

  test('has no function over 120 lines', () => {
    // Only a file of more lines can hold one: the others need not be parsed.
    const long = code
      .filter(({ lines }) => lines > 120)
      .flatMap(({ functions }) => functions.filter(({ lines }) => lines > 120))
      .map(({ file, name }) => `${file} ${name}`)
    expect(long).toEqual([])
  })

  test('has no comment or text with a sentence that begins with "what", "whoever" or "where" and is no question', () => {
    const comments = code.flatMap((file) => file.comments)
    const texts = code.flatMap((file) => file.texts)
    expect(comments.length).toBeGreaterThan(5000)
    expect(texts.length).toBeGreaterThan(30_000)
    const riddles = [...comments, ...texts].filter(({ text }) => riddleIn(text) !== undefined)
    expect(riddles.map(({ file, line, text }) => `${file}:${line}: ${riddleIn(text)}`)).toEqual([])
  })

  test('mentions in its comments only kinds and reasons of errors that exist', () => {
    const errors = readFileSync(join(root, 'src/core/errors.ts'), 'utf8')
    const comments = code.flatMap((file) => file.comments)
    for (const [type, name] of [
      ['ErrorKind', /ResourceError `([a-z-]+)`/g],
      ['ErrorReason', /\breasons? `([a-z-]+)`/g],
    ] as const) {
      const [, union = ''] = new RegExp(`export type ${type} =([\\s\\S]*?)\n\n`).exec(errors) ?? []
      const known = [...union.matchAll(/'([a-z-]+)'/g)].map(([, word]) => word)
      const named = comments.flatMap(({ file, line, text }) =>
        [...text.matchAll(name)].map(([, word = '']) => ({ file, line, word })),
      )
      expect(named.length).toBeGreaterThan(30)
      expect(named.filter(({ word }) => !known.includes(word))).toEqual([])
    }
  })
})

test('each piece of code that bench/paths.ts replaces occurs exactly once in its source file', () => {
  const replaced = [...paths, ...guarantees].flatMap(({ file, replaced }) => replaced.map(([code]) => ({ file, code })))
  expect(replaced.length).toBeGreaterThan(10)
  const isOnce = ({ file, code }: (typeof replaced)[number]) =>
    readFileSync(join(source, file), 'utf8').split(code).length === 2
  expect(replaced.filter((one) => !isOnce(one))).toEqual([])
})

test('a read runs exactly the files that docs/architecture.md lists, at most 33 files and 119 functions', async () => {
  const page = readFileSync(join(root, 'docs/architecture.md'), 'utf8')
  const section = /### The stations of a read\n([\s\S]*?)\n## /.exec(page)?.[1] ?? ''
  const listed = section.split('\n').flatMap((line) => {
    const [, cell = ''] = line.split('|')
    return [...cell.matchAll(/`([^`]+\.ts)`/g)].map((match) => match[1])
  })
  const args = ['--import', import.meta.resolve('tsx'), join(root, 'scripts/code/read-path.ts')]
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: root })
  const { files: passed, functions } = JSON.parse(stdout) as {
    readonly files: readonly string[]
    readonly functions: number
  }
  expect(passed.length).toBeGreaterThan(20)
  expect(listed.sort()).toEqual(passed)
  // The way stays short. Node 24 counts three functions more than Node 20.
  expect(passed.length).toBeLessThanOrEqual(33)
  expect(functions).toBeLessThanOrEqual(119)
})
