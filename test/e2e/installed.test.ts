import { execFile, execFileSync } from 'node:child_process'
import {
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { docx } from '../fixtures/documents/office.ts'
import { japanesePdf } from '../fixtures/documents/pdf.ts'
import { type Bucket, startBucket } from '../support/buckets.ts'
import { type Database, startDatabase } from '../support/database.ts'
import { startDriveMount } from '../support/drive-samples.ts'
import type { GcsStandIn } from '../support/gcs-stand-in.ts'
import { listening } from '../support/listening.ts'
import { hasMariadb, type Mariadb, mariadbReason, startMariadb } from '../support/mariadb.ts'
import { packedPackage } from '../support/packed.ts'
import { type StandIn, standIn } from '../support/prometheus-stand-in.ts'
import { requires } from '../support/require.ts'
import type { S3StandIn } from '../support/s3-stand-in.ts'
import { isThorough } from '../support/volume.ts'

/**
 * The package as people install it: packed, installed into an empty folder, and used from there. The rest of the tests runs beside
 * all the packages that development needs, and would not notice one that is missing.
 */
vi.setConfig({ testTimeout: 240_000, hookTimeout: 240_000 })

const root = resolve(import.meta.dirname, '../..')
/** A server on the official SDK, which the package does not bring along. */
const official = join(root, 'test/fixtures/mcp/official.mjs')

let home: string
let main: string
beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), 'hikidashi-installed-'))
  const tarball = await packedPackage()
  mkdirSync(join(home, 'empty'))
  writeFileSync(join(home, 'empty/package.json'), '{ "private": true }')
  const install = ['install', '--no-audit', '--no-fund', '--prefer-offline', tarball]
  await runFile('npm', install, { cwd: join(home, 'empty') })
  main = join(home, 'empty/node_modules/hikidashi/dist/cli/main.js')
})
afterAll(() => rmSync(home, { recursive: true }))

const runFile = promisify(execFile)

/** Runs the installed command. Rejects, with what it printed, where it fails. */
async function hikidashi(args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<string> {
  const state = { XDG_STATE_HOME: join(home, 'state'), HOME: home, PATH: process.env.PATH ?? '' }
  try {
    return (await runFile(process.execPath, [main, ...args], { cwd: home, env: { ...state, ...env } })).stdout
  } catch (error) {
    const { stdout = '', stderr = '' } = error as { readonly stdout?: string; readonly stderr?: string }
    throw new Error(`hikidashi ${args.join(' ')} failed: ${stdout}${stderr}`)
  }
}

function writeConfig(name: string, mounts: Readonly<Record<string, unknown>>, more: object = {}): string {
  const file = join(home, `${name}.json`)
  writeFileSync(file, JSON.stringify({ mounts, ...more }))
  return file
}

/** Runs the contract suite against every mount, and lists all that they have. */
async function tryOut(file: string, env: Readonly<Record<string, string>> = {}): Promise<void> {
  const addresses = Object.keys((JSON.parse(readFileSync(file, 'utf8')) as { readonly mounts: object }).mounts)
  const checked = await hikidashi(['check', '--config', file], env)
  for (const address of addresses) expect(checked).toMatch(new RegExp(`^ok +${address.replace(/[.?+]/g, '\\$&')}`, 'm'))
}

test('with the installed package, a source of another author works in a folder of its own, as in examples/own-source', async () => {
  const own = join(home, 'own')
  cpSync(join(root, 'examples/own-source'), own, { recursive: true })
  // The folder of the example has its own package.json, into which the packed package is installed.
  const install = ['install', '--no-audit', '--no-fund', '--prefer-offline', await packedPackage()]
  await runFile('npm', install, { cwd: own })
  const command = join(own, 'node_modules/hikidashi/dist/cli/main.js')
  const run = async (...args: readonly string[]) => {
    const env = { XDG_STATE_HOME: join(home, 'own-state'), HOME: home, PATH: process.env.PATH ?? '' }
    const { stdout, stderr } = await runFile(process.execPath, [command, ...args], { cwd: own, env })
    return stdout + stderr
  }
  // The configuration is found in the current folder, and nobody has trusted it yet.
  expect(await run('ls')).toContain('notes://me (runs the code of ./notebook.js)')
  await run('trust', 'hikidashi.json')
  expect(await run('ls', '--recursive', 'notes://me')).toContain('notes://me/Shopping-list.md')
  expect(await run('read', 'notes://me/Cursors.md?lines=3')).toContain('A cursor is opaque to the client.')
  expect(await run('search', 'plums')).toContain('notes://me/Shopping-list.md')
  expect(await run('check')).toMatch(/^ok +notes:\/\/me {2}notebook/m)
  expect(await run('doctor')).toContain('notes://me (notebook): 3 entries listed and read')
  expect(await run('check', '--contract', 'notes://me')).toContain('every promise is kept')
  const serve = `"${process.execPath}" "${command}" serve --stdio`
  expect(await run('read', 'hikidashi://overview', '--command', serve)).toContain('My notes (notes)')
  writeFileSync(join(own, 'wrong.json'), '{ "mounts": { "notes://me": { "provider": "./notebook.js", "tag": "#a" } } }')
  const wrong = await run('check', '--config', 'wrong.json').catch(({ stdout }: { readonly stdout: string }) => stdout)
  expect(wrong).toContain('.file: The key is missing. Add it; its value is a text.')
  expect(wrong).toContain('.tag: A tag is written without its #. Remove the "#".')
})

test('the installed package consists of at most twelve packages', () => {
  const folder = join(home, 'empty/node_modules')
  const names = readdirSync(folder).flatMap((name) =>
    name.startsWith('@') ? readdirSync(join(folder, name)).map((inner) => `${name}/${inner}`) : [name],
  )
  const packages = names.filter((name) => existsSync(join(folder, name, 'package.json')))
  expect(packages).toContain('hikidashi')
  expect(packages.length, packages.join(', ')).toBeLessThanOrEqual(12)
})

/** The bytes of all files below a folder. */
function sizeOf(path: string): number {
  const stats = lstatSync(path)
  if (!stats.isDirectory()) return stats.size
  return readdirSync(path).reduce((sum, name) => sum + sizeOf(join(path, name)), 0)
}

test('the installed package has at most 40 MB', () => {
  const size = sizeOf(join(home, 'empty/node_modules'))
  // A package without SQLite and PDFium would be smaller than this.
  expect(size).toBeGreaterThan(20e6)
  expect(size).toBeLessThanOrEqual(40e6)
})

test('the installed package names each bundled package with its licence', () => {
  const own = join(main, '../../')
  const { components } = JSON.parse(readFileSync(join(own, 'sbom.cdx.json'), 'utf8')) as {
    readonly components: readonly {
      readonly name: string
      readonly version: string
      readonly components?: readonly { readonly name: string }[]
    }[]
  }
  const notices = readFileSync(join(own, 'THIRD_PARTY_NOTICES'), 'utf8')
  expect(components.map(({ name }) => name)).toEqual(
    expect.arrayContaining(['zod', 'pg', '@aws-sdk/client-s3', 'jose', 'pdfjs-dist', 'preact', 'highlight.js']),
  )
  // What is compiled is told as well: SQLite and PDFium.
  const compiled = components.flatMap(({ components: inner = [] }) => inner.map(({ name }) => name))
  expect(compiled).toEqual(expect.arrayContaining(['sqlite', 'pdfium']))
  for (const { name, version } of components) expect(notices).toContain(`${name} ${version} (`)
})

/** What `package.json` exports, by the names that are imported. */
function exported(): readonly string[] {
  const names = ['hikidashi', ...['server', 'client', 'context', 'testing'].map((name) => `hikidashi/${name}`)]
  const table = readFileSync(join(root, 'src/providers/table.ts'), 'utf8')
  const providers = [...table.matchAll(/from '\.\/([\w-]+)\/declaration\.ts'/g)].map(
    ([, name]) => `hikidashi/providers/${name}`,
  )
  expect(providers.length).toBeGreaterThan(15)
  return [...names, ...providers]
}

describe('a TypeScript program that checks the declarations of libraries', () => {
  // The types of Node are what every program for Node has.
  const tsc = join(root, 'node_modules/typescript/bin/tsc')
  const compile = async (name: string, sources: Readonly<Record<string, string>>, compilerOptions: object) => {
    const folder = join(home, 'empty', name)
    mkdirSync(folder)
    const shared = {
      target: 'es2023',
      strict: true,
      skipLibCheck: false,
      // Only the libraries of TypeScript itself are taken as they are.
      skipDefaultLibCheck: true,
      noEmit: true,
      exactOptionalPropertyTypes: true,
    }
    const types = { types: ['node'], typeRoots: [join(root, 'node_modules/@types')] }
    writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
    for (const [file, source] of Object.entries(sources)) writeFileSync(join(folder, file), source)
    const options = { compilerOptions: { ...shared, ...types, ...compilerOptions }, files: Object.keys(sources) }
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(options))
    const failed = await runFile(process.execPath, [tsc, '-p', folder]).then(
      () => '',
      (error: { readonly stdout?: string }) => error.stdout ?? 'It did not start.',
    )
    return failed
  }

  /** A program that imports everything. */
  const everything = () => {
    const imports = exported().map((specifier, index) => `import * as m${index} from '${specifier}'`)
    const used = `export const all = [${imports.map((_, index) => `m${index}`).join(', ')}]`
    return [...imports, used].join('\n')
  }

  // The other way to resolve is stricter, and takes the processor as long.
  test.runIf(isThorough)('compiles with each export, resolved as bundler', async () => {
    const options = { module: 'esnext', moduleResolution: 'bundler' }
    expect(await compile('bundler', { 'main.ts': everything() }, options)).toBe('')
  })

  test('compiles with each export, resolved as nodenext, and reports only the wrong use', async () => {
    const wrong = "import { files } from 'hikidashi/providers/files'\nvoid files({ root: 7 })\n"
    const options = { module: 'nodenext', moduleResolution: 'nodenext' }
    const told = await compile('nodenext', { 'main.ts': everything(), 'wrong.ts': wrong }, options)
    expect(told.match(/\berror TS\d+/g)).toHaveLength(1)
    expect(told).toMatch(/wrong\.ts\(2,\d+\): error TS2322: Type 'number' is not assignable to type 'string'/)
  })
})

test('every entry of package.json can be imported', async () => {
  const script = `for (const name of ${JSON.stringify(exported())})
    if (Object.keys(await import(name)).length === 0) throw new Error(name)`
  await runFile(process.execPath, ['--input-type=module', '-e', script], { cwd: join(home, 'empty') })
})

describe('from the installed package', () => {
  test('the local sources are mounted: files, documents, git, settings, a database, the index', async () => {
    const project = join(home, 'project')
    mkdirSync(join(project, 'prompts'), { recursive: true })
    writeFileSync(join(project, 'README.md'), '# Project\n\nThe drawer holds cedar boxes.\n')
    writeFileSync(join(project, 'app.yaml'), 'port: 8080\npassword: hunter2hunter2\n')
    writeFileSync(join(project, 'prompts/greet.md'), '---\ndescription: Greets\n---\nHello.\n')
    writeFileSync(join(project, 'sample.pdf'), japanesePdf([['引き出し']]))
    writeFileSync(join(project, 'sample.docx'), docx())
    const git = (...args: readonly string[]) =>
      execFileSync('git', ['-c', 'user.name=t', '-c', 'user.email=t@example.org', ...args], { cwd: project })
    git('init', '-q')
    git('add', '.')
    git('commit', '-q', '-m', 'first')
    const { DatabaseSync } = await import('@photostructure/sqlite')
    const database = new DatabaseSync(join(project, 'shop.db'))
    database.exec("CREATE TABLE customer (id INTEGER PRIMARY KEY, name TEXT); INSERT INTO customer VALUES (1, 'Ada')")
    database.close()
    const file = writeConfig('local', {
      'file:///project': { provider: 'files', root: project, redact: 'mask' },
      'git://project': { provider: 'git', repository: project },
      'config://project': { provider: 'settings', root: project },
      'env://process': { provider: 'env', allow: ['PATH'] },
      'memo://greeting': { provider: 'inline', text: 'Be kind.' },
      'prompts://project': { provider: 'prompts', root: join(project, 'prompts') },
      'sqlite://shop': { provider: 'sqlite', file: join(project, 'shop.db') },
      'metrics://self': { provider: 'metrics', source: 'self' },
      'results://project': { provider: 'results' },
      'search://project': { provider: 'search', over: ['file:///project'] },
    })
    await tryOut(file)
    expect(await hikidashi(['read', 'file:///project/app.yaml', '--config', file])).not.toContain('hunter2hunter2')
    for (const name of ['sample.pdf', 'sample.docx'])
      expect((await hikidashi(['read', `file:///project/${name}?as=text`, '--config', file])).trim()).not.toBe('')
    expect(await hikidashi(['search', 'cedar', '--config', file])).toContain('README.md')
    expect(await hikidashi(['pack', 'cedar boxes', '--config', file, '--budget', '2000'])).toContain('cedar boxes')
  })

  describe('the sources behind HTTP are mounted: S3, GCS, Drive, Prometheus, web, api, another MCP server', () => {
    let s3: Bucket<S3StandIn>
    let gcs: Bucket<GcsStandIn>
    let drive: Awaited<ReturnType<typeof startDriveMount>>
    let prometheus: StandIn
    let site: Awaited<ReturnType<typeof listening>>
    beforeAll(async () => {
      ;[s3, gcs, drive, prometheus] = await Promise.all([
        startBucket('s3'),
        startBucket('gcs'),
        startDriveMount(),
        standIn(),
      ])
      for (const { store } of [s3, gcs]) store.table.put('notes/日本語.md', '# 梅雨\n')
      site = await listening(
        createServer((request, response) => {
          const isPage = request.url?.startsWith('/intro') === true
          response.writeHead(200, { 'content-type': isPage ? 'text/html' : 'application/json' })
          response.end(isPage ? '<h1>Intro</h1>' : '[{"id":7}]')
        }),
      )
    })
    afterAll(async () => {
      for (const { close } of [s3, gcs, drive, prometheus, site]) await close()
    })

    test('and pass the contract suite', async () => {
      const allowAddresses = ['127.0.0.1']
      const file = writeConfig('remote', {
        's3://drawer': s3.mount,
        'gcs://drawer': gcs.mount,
        'gdrive://account': drive.mount,
        'metrics://prod': { provider: 'metrics', url: prometheus.url },
        'web://site': { provider: 'web', url: site.url, pages: ['intro'], allowAddresses },
        'api://crm': { provider: 'api', url: `${site.url}/v1`, routes: [{ template: 'users/{id}' }], allowAddresses },
        'mcp://official': { provider: 'remote', command: process.execPath, args: [official] },
      })
      await tryOut(file)
      for (const address of ['s3://drawer', 'gcs://drawer'])
        expect(await hikidashi(['read', `${address}/notes/日本語.md`, '--config', file])).toBe('# 梅雨\n')
      expect(await hikidashi(['read', 'gdrive://account/docs/plan', '--config', file])).toContain('Hello, 世界.')
      expect(await hikidashi(['read', 'web://site/intro', '--config', file])).toContain('Intro')
      expect(await hikidashi(['read', 'api://crm/users/7', '--config', file])).toContain('7')
    })
  })

  describe('PostgreSQL is mounted', () => {
    let database: Database
    beforeAll(async () => {
      database = await startDatabase(
        "CREATE TABLE customer (id int PRIMARY KEY, name text); INSERT INTO customer VALUES (1, 'Ada')",
      )
    })
    afterAll(() => database.remove())

    test('and passes the contract suite', async () => {
      const file = writeConfig('postgres', {
        'postgres://localhost/shop': { provider: 'postgres', url: { env: 'SHOP_URL' } },
      })
      await tryOut(file, { SHOP_URL: database.readerUrl })
    })
  })

  requires(
    'mariadb',
    hasMariadb,
    mariadbReason,
  )('MySQL is mounted', () => {
    let database: Mariadb
    beforeAll(async () => {
      database = await startMariadb(
        "CREATE TABLE customer (id int PRIMARY KEY, name text); INSERT INTO customer VALUES (1, 'Ada')",
      )
    })
    afterAll(() => database.remove())

    test('and pass the contract suite', async () => {
      const file = writeConfig('mysql', { 'mysql://localhost/shop': { provider: 'mysql', url: { env: 'SHOP_URL' } } })
      await tryOut(file, { SHOP_URL: database.readerUrl })
    })
  })
})
