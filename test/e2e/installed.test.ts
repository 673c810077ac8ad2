import { execFile, execFileSync } from 'node:child_process'
import { once } from 'node:events'
import {
  copyFileSync,
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:http'
import { connect as connectTo } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import ts from 'typescript'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { writeDeclarations } from '../../scripts/declarations.ts'
import { compilerHere, entryPoints, withTables } from '../../scripts/toolkit.ts'
import { connect } from '../../src/client/index.ts'
import { docx } from '../fixtures/documents/office.ts'
import { japanesePdf } from '../fixtures/documents/pdf.ts'
import { type Bucket, startBucket } from '../support/buckets.ts'
import { type Database, startDatabase } from '../support/database.ts'
import { startDriveMount } from '../support/drive-samples.ts'
import type { GcsStandIn } from '../support/gcs-stand-in.ts'
import { listening } from '../support/listening.ts'
import { hasMariadb, type Mariadb, mariadbReason, startMariadb } from '../support/mariadb.ts'
import { type StandIn, standIn } from '../support/prometheus-stand-in.ts'
import { requires } from '../support/require.ts'
import { freePort } from '../support/reverse-proxy.ts'
import type { S3StandIn } from '../support/s3-stand-in.ts'
import { isThorough } from '../support/volume.ts'

/**
 * The package as people install it: packed, installed into an empty folder, and used from there. The rest of the tests runs beside
 * all the packages that development needs, and would not notice one that is missing.
 */
vi.setConfig({ testTimeout: 240_000, hookTimeout: 600_000 })

const root = resolve(import.meta.dirname, '../..')
/** A server on the official SDK, which the package does not bring along. */
const official = join(root, 'test/fixtures/mcp/official.mjs')

let home: string
/** A copy of `examples/own-source`, into which the packed package is installed. */
let own: string
let main: string
beforeAll(async () => {
  home = realpathSync(mkdtempSync(join(tmpdir(), 'hikidashi-installed-')))
  own = join(home, 'own')
  cpSync(join(root, 'examples/own-source'), own, { recursive: true })
  // The compiler of this process has to read the sources for other tests as well.
  writeDeclarations(compilerHere().host)
  await runFile('npm', ['pack', '--ignore-scripts', '--pack-destination', home], { cwd: root })
  const [tarball = ''] = readdirSync(home).filter((name) => name.endsWith('.tgz'))
  const install = ['install', '--no-audit', '--no-fund', '--prefer-offline', join(home, tarball)]
  await runFile('npm', install, { cwd: own })
  main = join(own, 'node_modules/hikidashi/dist/cli/main.js')
})
afterAll(() => rmSync(home, { recursive: true }))

const runFile = promisify(execFile)
const textOf = (page: string) => readFileSync(join(root, page), 'utf8')

/** Runs the installed command. Rejects, with what it printed, where it fails. */
async function runInstalled(args: readonly string[], cwd: string, env: Readonly<Record<string, string>> = {}) {
  const state = { XDG_STATE_HOME: join(home, 'state'), HOME: home, PATH: process.env.PATH ?? '' }
  try {
    return await runFile(process.execPath, [main, ...args], { cwd, env: { ...state, ...env } })
  } catch (error) {
    const { stdout = '', stderr = '' } = error as { readonly stdout?: string; readonly stderr?: string }
    throw new Error(`hikidashi ${args.join(' ')} failed: ${stdout}${stderr}`)
  }
}

const hikidashi = async (args: readonly string[], env: Readonly<Record<string, string>> = {}) =>
  (await runInstalled(args, home, env)).stdout

/** Reads resources from one installed server. Returns the text of each. */
async function readInstalled(file: string, uris: readonly string[]): Promise<readonly string[]> {
  const env = { XDG_STATE_HOME: join(home, 'state'), HOME: home }
  const view = await connect({
    command: process.execPath,
    args: [main, 'serve', '--config', file, '--stdio'],
    ...{ cwd: home, env },
  })
  try {
    const results = await Promise.all(uris.map((uri) => view.read(uri)))
    return results.map(({ contents: [content] }) => (content !== undefined && 'text' in content ? content.text : ''))
  } finally {
    await view.close()
  }
}

function writeConfig(name: string, mounts: Readonly<Record<string, unknown>>): string {
  const file = join(home, `${name}.json`)
  writeFileSync(file, JSON.stringify({ mounts }))
  return file
}

/** Runs the contract suite against every mount, and lists all that they have. */
async function tryOut(file: string, env: Readonly<Record<string, string>> = {}): Promise<void> {
  const addresses = Object.keys((JSON.parse(readFileSync(file, 'utf8')) as { readonly mounts: object }).mounts)
  const checked = await hikidashi(['check', '--config', file], env)
  for (const address of addresses) expect(checked).toMatch(new RegExp(`^ok +${address.replace(/[.?+]/g, '\\$&')}`, 'm'))
}

test('the installed package lists, searches and checks a source of another author in a folder of its own, as in examples/own-source', async () => {
  const run = async (...args: readonly string[]) => {
    const { stdout, stderr } = await runInstalled(args, own)
    return stdout + stderr
  }
  // The configuration is found in the current folder, and nobody has trusted it yet.
  expect(await run('ls')).toContain('notes://me (runs the code of ./notebook.js)')
  await run('trust', 'hikidashi.json')
  expect(await run('ls', '--recursive', 'notes://me')).toContain('notes://me/Shopping-list.md')
  expect(await run('search', 'plums')).toContain('notes://me/Shopping-list.md')
  expect(await run('check')).toMatch(/^ok +notes:\/\/me {2}notebook/m)
  expect(await run('doctor')).toContain('notes://me (notebook): 3 entries checked')
  expect(await run('check', '--contract', 'notes://me')).toContain('every promise is kept')
  const [lines, overview] = await readInstalled(join(own, 'hikidashi.json'), [
    'notes://me/Cursors.md?lines=3',
    'hikidashi://overview',
  ])
  expect(lines).toContain('A cursor is opaque to the client.')
  expect(overview).toContain('My notes (notes)')
  writeFileSync(join(own, 'wrong.json'), '{ "mounts": { "notes://me": { "provider": "./notebook.js", "tag": "#a" } } }')
  const { message: wrong } = await run('check', '--config', 'wrong.json').then(expect.fail, (error: Error) => error)
  expect(wrong).toContain('.file: The key is missing. Add it; its value is a string.')
  expect(wrong).toContain('.tag: A tag is written without its #. Remove the "#".')
})

test('the installed package consists of at most twelve packages', () => {
  const folder = join(own, 'node_modules')
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
  const size = sizeOf(join(own, 'node_modules'))
  // A package without SQLite and PDFium would be smaller than this.
  expect(size).toBeGreaterThan(20e6)
  expect(size).toBeLessThanOrEqual(40e6)
})

test('the installed package lists what is bundled, also SQLite and PDFium, and has a notice about each bundled package', () => {
  const built = join(main, '../../')
  const { components } = JSON.parse(readFileSync(join(built, 'sbom.cdx.json'), 'utf8')) as {
    readonly components: readonly {
      readonly name: string
      readonly version: string
      readonly components?: readonly { readonly name: string }[]
    }[]
  }
  const notices = readFileSync(join(built, 'THIRD_PARTY_NOTICES'), 'utf8')
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
  const names = entryPoints().map(({ name }) => name)
  expect(names.length).toBeGreaterThan(20)
  return names
}

describe('a TypeScript program that checks the declarations of libraries', () => {
  /** Returns the complaints of the compiler. */
  const compile = (name: string, sources: Readonly<Record<string, string>>, given: ts.CompilerOptions) => {
    const folder = join(own, name)
    mkdirSync(folder)
    writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
    for (const [file, source] of Object.entries(sources)) writeFileSync(join(folder, file), source)
    const options: ts.CompilerOptions = {
      target: ts.ScriptTarget.ES2023,
      strict: true,
      skipLibCheck: false,
      // Only the libraries of TypeScript itself are taken as they are.
      skipDefaultLibCheck: true,
      noEmit: true,
      exactOptionalPropertyTypes: true,
      // The types of Node are what every program for Node has.
      ...{ types: ['node'], typeRoots: [join(root, 'node_modules/@types')] },
      ...given,
    }
    const files = Object.keys(sources).map((file) => join(folder, file))
    const faults = ts.getPreEmitDiagnostics(ts.createProgram(files, options))
    const host = {
      getCurrentDirectory: () => folder,
      getCanonicalFileName: (file: string) => file,
      getNewLine: () => '\n',
    }
    return ts.formatDiagnostics(faults, host)
  }

  /** A program that imports everything. */
  const everything = () => {
    const imports = exported().map((specifier, index) => `import * as m${index} from '${specifier}'`)
    const used = `export const all = [${imports.map((_, index) => `m${index}`).join(', ')}]`
    return [...imports, used].join('\n')
  }

  // The other way to resolve is stricter, and takes the processor as long.
  test.runIf(isThorough)('compiles with each export, resolved as bundler', () => {
    const options = { module: ts.ModuleKind.ESNext, moduleResolution: ts.ModuleResolutionKind.Bundler }
    expect(compile('bundler', { 'main.ts': everything() }, options)).toBe('')
  })

  test('compiles with each export, resolved as nodenext, and reports only the wrong use', () => {
    const wrong = "import { files } from 'hikidashi/providers/files'\nvoid files({ root: 7 })\n"
    const options = { module: ts.ModuleKind.NodeNext, moduleResolution: ts.ModuleResolutionKind.NodeNext }
    const told = compile('nodenext', { 'main.ts': everything(), 'wrong.ts': wrong }, options)
    expect(told.match(/\berror TS\d+/g)).toHaveLength(1)
    expect(told).toMatch(/wrong\.ts\(2,\d+\): error TS2322: Type 'number' is not assignable to type 'string'/)
  })
})

test('every export of package.json can be imported from the installed package', async () => {
  const script = `for (const name of ${JSON.stringify(exported())})
    if (Object.keys(await import(name)).length === 0) throw new Error(name)`
  await runFile(process.execPath, ['--input-type=module', '-e', script], { cwd: own })
})

describe('from the installed package', () => {
  test('the local sources are checked (files, git, settings, a database and others), documents are read, and files are searched', async () => {
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
    const names = ['app.yaml', 'sample.pdf?as=text', 'sample.docx?as=text']
    const [settings, ...documents] = await readInstalled(
      file,
      names.map((name) => `file:///project/${name}`),
    )
    expect(settings).toContain('port')
    expect(settings).not.toContain('hunter2hunter2')
    for (const text of documents) expect(text.trim()).not.toBe('')
    expect(await hikidashi(['search', 'cedar', '--config', file])).toContain('README.md')
    expect(await hikidashi(['pack', 'cedar boxes', '--config', file, '--budget', '2000'])).toContain('cedar boxes')
  })

  describe('mounts of S3, GCS, Drive, Prometheus, a website, an HTTP API and another MCP server', () => {
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

    test('pass hikidashi check, and those of stores, the website and the HTTP API are read', async () => {
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
      const expected = {
        's3://drawer/notes/日本語.md': '# 梅雨\n',
        'gcs://drawer/notes/日本語.md': '# 梅雨\n',
        'gdrive://account/docs/plan': expect.stringContaining('Hello, 世界.'),
        'web://site/intro': expect.stringContaining('Intro'),
        'api://crm/users/7': expect.stringContaining('7'),
      }
      expect(await readInstalled(file, Object.keys(expected))).toEqual(Object.values(expected))
    })
  })

  describe('a mount of PostgreSQL', () => {
    let database: Database
    beforeAll(async () => {
      database = await startDatabase(
        "CREATE TABLE customer (id int PRIMARY KEY, name text); INSERT INTO customer VALUES (1, 'Ada')",
      )
    })
    afterAll(() => database.remove())

    test('passes hikidashi check', async () => {
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
  )('a mount of MySQL', () => {
    let database: Mariadb
    beforeAll(async () => {
      database = await startMariadb(
        "CREATE TABLE customer (id int PRIMARY KEY, name text); INSERT INTO customer VALUES (1, 'Ada')",
      )
    })
    afterAll(() => database.remove())

    test('passes hikidashi check', async () => {
      const file = writeConfig('mysql', { 'mysql://localhost/shop': { provider: 'mysql', url: { env: 'SHOP_URL' } } })
      await tryOut(file, { SHOP_URL: database.readerUrl })
    })
  })
})

test('docs/toolkit.md has every export of the package', () => {
  const page = textOf('docs/toolkit.md')
  // Run "npm run schema" to write the tables.
  expect(withTables(page)).toBe(page)
  expect(page.match(/^## /gm)?.length).toBe(entryPoints().length)
  expect(page).toContain('| `createCatalog` | function | Mounts providers at addresses. |')
  // A function says what it does.
  expect(page).not.toMatch(/\| function \| {2}\|/)
})

test('every snippet of TypeScript in README and docs compiles with the option "strict"', () => {
  // Below the root, so that packages of development are found as well.
  const folder = mkdtempSync(join(root, 'test/.snippets-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const docs = readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' }).map((name) => `docs/${name}`)
  const pages = ['README.md', ...docs.filter((name) => name.endsWith('.md'))]
  const snippets = pages.flatMap((page) =>
    [...textOf(page).matchAll(/^```ts\n([\s\S]*?)^```/gm)].map(([, code = ''], index) => {
      const file = join(folder, `${page.replace(/\W/g, '-')}-${index}.ts`)
      writeFileSync(file, `${code}\nexport {}\n`)
      return file
    }),
  )
  expect(snippets.length).toBeGreaterThan(3)
  // What one snippet of a page imports is an example.
  writeFileSync(
    join(folder, 'memory-provider.ts'),
    textOf('examples/memory-provider.ts').replaceAll('../src', '../../src'),
  )
  const { options, host } = compilerHere()
  const paths = Object.fromEntries(entryPoints().map(({ name, file }) => [name, [join(root, file)]]))
  const program = ts.createProgram(snippets, { ...options, paths, allowImportingTsExtensions: true }, host)
  const faults = snippets.flatMap((file) => {
    const source = program.getSourceFile(file)
    return [...program.getSyntacticDiagnostics(source), ...program.getSemanticDiagnostics(source)].map(
      ({ messageText }) => `${file.slice(folder.length + 1)}: ${ts.flattenDiagnosticMessageText(messageText, ' ')}`,
    )
  })
  expect(faults).toEqual([])
})

/** Creates a folder for programs that use the installed package. */
function programFolder(name: string): string {
  const place = join(own, name)
  mkdirSync(place)
  return place
}

const runNode = (args: readonly string[], cwd: string, env = process.env) =>
  runFile(process.execPath, args, { cwd, env })

test('the program of docs/toolkit.md serves the resources that the page shows', async () => {
  const code = /```ts\n([\s\S]*?)```/.exec(textOf('docs/toolkit.md'))?.[1] ?? ''
  const place = programFolder('toolkit')
  // A line that a library prints does not get between the messages. After the end the console is as it was.
  const printing = code.replace('log: () => {}', "$&, onFirstAnswer: () => console.log('while it serves')")
  expect(printing).not.toBe(code)
  writeFileSync(join(place, 'server.mjs'), `${printing}console.log('after the end')\n`)
  writeFileSync(join(place, 'hello.md'), 'hello')
  const server = runNode(['server.mjs'], place)
  const read = { jsonrpc: '2.0', id: 1, method: 'resources/read', params: { uri: 'docs://here/hello.md' } }
  server.child.stdin?.write(`${JSON.stringify(read)}\n`)
  server.child.stderr?.once('data', () => server.child.stdin?.end())
  const { stdout, stderr } = await server
  expect(stderr).toContain('while it serves')
  const [line = '', ...others] = stdout.split('\n')
  expect(others).toEqual(['after the end', ''])
  const answer = JSON.parse(line) as { result: unknown }
  expect(answer.result).toMatchObject({ contents: [{ uri: 'docs://here/hello.md', text: 'hello' }] })
})

test('the programs of docs/attach.md serve a document of their folder, and the program of docs/context.md prints it', async () => {
  const place = programFolder('snippets')
  const port = String(await freePort())
  const snippets = (page: string) =>
    [...textOf(page).matchAll(/^```ts\n([\s\S]*?)^```/gm)].map(([, code = '']) => code.replaceAll('8787', port))
  const [handler = '', attached = ''] = snippets('docs/attach.md')
  const [context = ''] = snippets('docs/context.md')
  const start = (name: string, code: string) => {
    writeFileSync(join(place, name), code)
    return runNode([name], place)
  }
  // The official SDK is no part of the package.
  mkdirSync(join(place, 'node_modules'))
  symlinkSync(join(root, 'node_modules/@modelcontextprotocol'), join(place, 'node_modules/@modelcontextprotocol'))
  writeFileSync(join(place, 'cursors.md'), '# Cursors\n\nA cursor is sealed with a key of its own.\n')

  const server = start('handler.mjs', handler)
  const ended = server.then(
    ({ stderr }) => stderr,
    ({ message }: Error) => message,
  )
  onTestFinished(async () => {
    server.child.kill()
    await ended
  })
  await Promise.race([listens(Number(port)), ended])
  const view = await connect({ url: `http://127.0.0.1:${port}/mcp` })
  expect((await view.list()).items.map(({ uri }) => uri)).toContain('docs://manual/cursors.md')
  await view.close()
  const packing = start('context.mjs', context)
  expect((await packing).stdout).toContain('A cursor is sealed with a key of its own.')

  const attaching = start('attached.mjs', attached)
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'test', version: '1' } }
  for (const message of [
    { id: 1, method: 'initialize', params },
    { method: 'notifications/initialized' },
    { id: 2, method: 'resources/read', params: { uri: 'docs://manual/cursors.md' } },
  ])
    attaching.child.stdin?.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
  const said: string[] = []
  for await (const line of createInterface({ input: attaching.child.stdout ?? process.stdin })) {
    said.push(line)
    if (said.length === 2) break
  }
  attaching.child.kill()
  await attaching.catch(() => {})
  expect(said[1]).toContain('A cursor is sealed with a key of its own.')
})

/** Resolves when a server accepts connections. */
async function listens(port: number): Promise<void> {
  for (;;) {
    const socket = connectTo(port, '127.0.0.1')
    const isOpen = await once(socket, 'connect').then(
      () => true,
      () => false,
    )
    socket.destroy()
    if (isOpen) return
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

test('examples/provider.ts and examples/agent.ts run as copies beside the installed package', async () => {
  const place = programFolder('copied')
  const tsx = new URL('../../node_modules/tsx/dist/loader.mjs', import.meta.url).href
  for (const name of ['provider.ts', 'agent.ts']) {
    expect(textOf(`examples/${name}`)).not.toContain('../')
    copyFileSync(join(root, 'examples', name), join(place, name.replace('.ts', '.mts')))
  }
  const server = runNode(['--import', tsx, 'provider.mts'], place)
  const read = { jsonrpc: '2.0', id: 1, method: 'resources/read', params: { uri: 'time://now/Asia/Tokyo' } }
  server.child.stdin?.end(`${JSON.stringify(read)}\n`)
  expect(
    (JSON.parse((await server).stdout) as { result: { contents: { text: string }[] } }).result.contents[0]?.text,
  ).toMatch(/\d{4}/)
  const command = `${process.execPath} ${main} serve . --only files --stdio`
  writeFileSync(join(place, 'anchors.md'), '# Anchors\n\nHow to drop an anchor.\n')
  const { OPENAI_BASE_URL: _, ...env } = process.env
  const words = ['--command', command, 'How to drop an anchor?']
  const agent = await runNode(['--import', tsx, 'agent.mts', ...words], place, env)
  expect(agent.stdout).toContain('How to drop an anchor.')
})
