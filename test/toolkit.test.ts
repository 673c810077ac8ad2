import { execFile } from 'node:child_process'
import { once } from 'node:events'
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { connect as connectTo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import ts from 'typescript'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { writeDeclarations } from '../scripts/declarations.ts'
import { compilerHere, entryPoints, withTables } from '../scripts/toolkit.ts'
import { connect } from '../src/client/index.ts'
import { packedPackage } from './support/packed.ts'
import { freePort } from './support/reverse-proxy.ts'

// The compiler reads the whole source, and packing takes as long.
vi.setConfig({ testTimeout: 180_000, hookTimeout: 240_000 })

const root = join(import.meta.dirname, '..')
const textOf = (page: string) => readFileSync(join(root, page), 'utf8')
/** Below the root, so that packages of development are found as well. */
const folder = mkdtempSync(join(import.meta.dirname, '.snippets-'))
afterAll(() => rmSync(folder, { recursive: true }))

let tarball = ''
beforeAll(async () => {
  tarball = await packedPackage(() => writeDeclarations(compilerHere().host))
})

test('docs/toolkit.md has every export of the package', () => {
  const page = textOf('docs/toolkit.md')
  // Run "npm run toolkit" to write the tables.
  expect(withTables(page)).toBe(page)
  expect(page.match(/^## /gm)?.length).toBe(entryPoints().length)
  expect(page).toContain('| `createCatalog` | function | Mounts providers at addresses. |')
  // A function says what it does.
  expect(page).not.toMatch(/\| function \| {2}\|/)
})

test('every snippet of TypeScript in README and docs compiles under strict', () => {
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

/** A folder with a `package.json` of its own: a program in it finds nothing through one that lies above it. */
function emptyFolder(name: string): string {
  const place = mkdtempSync(join(tmpdir(), `hikidashi-${name}-`))
  writeFileSync(join(place, 'package.json'), '{"private":true}')
  return place
}

test('the program of docs/toolkit.md serves the resources that the page shows', async () => {
  const code = /```ts\n([\s\S]*?)```/.exec(textOf('docs/toolkit.md'))?.[1] ?? ''
  const place = emptyFolder('toolkit')
  try {
    mkdirSync(join(place, 'node_modules'))
    symlinkSync(root, join(place, 'node_modules/hikidashi'))
    // A line that a library prints does not get between the messages. After the end the console is as it was.
    const printing = code.replace('log: () => {}', "$&, onFirstAnswer: () => console.log('while it serves')")
    expect(printing).not.toBe(code)
    writeFileSync(join(place, 'server.mjs'), `${printing}console.log('after the end')\n`)
    writeFileSync(join(place, 'hello.md'), 'hello')
    const child = promisify(execFile)(process.execPath, ['server.mjs'], { cwd: place })
    const read = { jsonrpc: '2.0', id: 1, method: 'resources/read', params: { uri: 'docs://here/hello.md' } }
    child.child.stdin?.write(`${JSON.stringify(read)}\n`)
    child.child.stderr?.once('data', () => child.child.stdin?.end())
    const { stdout, stderr } = await child
    expect(stderr).toContain('while it serves')
    const [line = '', ...others] = stdout.split('\n')
    expect(others).toEqual(['after the end', ''])
    const answer = JSON.parse(line) as { result: unknown }
    expect(answer.result).toMatchObject({ contents: [{ uri: 'docs://here/hello.md', text: 'hello' }] })
  } finally {
    rmSync(place, { recursive: true })
  }
})

test('the programs of docs/attach.md and docs/context.md print what the pages show', async () => {
  const place = emptyFolder('snippets')
  const port = String(await freePort())
  const snippets = (page: string) =>
    [...textOf(page).matchAll(/^```ts\n([\s\S]*?)^```/gm)].map(([, code = '']) => code.replaceAll('8787', port))
  const [handler = '', attached = ''] = snippets('docs/attach.md')
  const [context = ''] = snippets('docs/context.md')
  const start = (name: string, code: string) => {
    writeFileSync(join(place, name), code)
    return promisify(execFile)(process.execPath, [name], { cwd: place })
  }
  let server: ReturnType<typeof start> | undefined
  try {
    mkdirSync(join(place, 'node_modules'))
    symlinkSync(root, join(place, 'node_modules/hikidashi'))
    symlinkSync(join(root, 'node_modules/@modelcontextprotocol'), join(place, 'node_modules/@modelcontextprotocol'))
    writeFileSync(join(place, 'cursors.md'), '# Cursors\n\nA cursor is sealed with a key of its own.\n')

    server = start('handler.mjs', handler)
    const ended = server.then(
      ({ stderr }) => stderr,
      ({ message }: Error) => message,
    )
    await Promise.race([listens(Number(port)), ended])
    const view = await connect({ url: `http://127.0.0.1:${port}/mcp` })
    expect((await view.list()).items.map(({ uri }) => uri)).toContain('docs://manual/cursors.md')
    await view.close?.()
    const packing = start('context.mjs', context)
    expect((await packing).stdout).toContain('A cursor is sealed with a key of its own.')

    const own = start('attached.mjs', attached)
    const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'test', version: '1' } }
    for (const message of [
      { id: 1, method: 'initialize', params },
      { method: 'notifications/initialized' },
      { id: 2, method: 'resources/read', params: { uri: 'docs://manual/cursors.md' } },
    ])
      own.child.stdin?.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
    const said: string[] = []
    for await (const line of createInterface({ input: own.child.stdout ?? process.stdin })) {
      said.push(line)
      if (said.length === 2) break
    }
    own.child.kill()
    await own.catch(() => {})
    expect(said[1]).toContain('A cursor is sealed with a key of its own.')
  } finally {
    server?.child.kill()
    await server?.catch(() => {})
    rmSync(place, { recursive: true })
  }
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

test('the examples run as copies in an empty folder, with the packed package', async () => {
  const run = promisify(execFile)
  const place = emptyFolder('copied')
  const tsx = new URL('../node_modules/tsx/dist/loader.mjs', import.meta.url).href
  try {
    mkdirSync(join(place, 'node_modules'))
    await run('tar', ['xzf', tarball, '-C', 'node_modules'], { cwd: place })
    renameSync(join(place, 'node_modules/package'), join(place, 'node_modules/hikidashi'))
    for (const name of ['provider.ts', 'agent.ts']) {
      expect(textOf(`examples/${name}`)).not.toContain('../')
      copyFileSync(join(root, 'examples', name), join(place, name.replace('.ts', '.mts')))
    }
    const server = run(process.execPath, ['--import', tsx, 'provider.mts'], { cwd: place })
    const read = { jsonrpc: '2.0', id: 1, method: 'resources/read', params: { uri: 'time://now/Asia/Tokyo' } }
    server.child.stdin?.end(`${JSON.stringify(read)}\n`)
    expect(
      (JSON.parse((await server).stdout) as { result: { contents: { text: string }[] } }).result.contents[0]?.text,
    ).toMatch(/\d{4}/)
    const command = `${process.execPath} node_modules/hikidashi/dist/cli/main.js serve . --only files --stdio`
    writeFileSync(join(place, 'anchors.md'), '# Anchors\n\nHow to drop an anchor.\n')
    const { OPENAI_BASE_URL: _, ...env } = process.env
    const agent = await run(
      process.execPath,
      ['--import', tsx, 'agent.mts', '--command', command, 'How to drop an anchor?'],
      {
        cwd: place,
        env,
      },
    )
    expect(agent.stdout).toContain('How to drop an anchor.')
  } finally {
    rmSync(place, { recursive: true })
  }
})
