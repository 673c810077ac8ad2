import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative, resolve } from 'node:path'
import { PassThrough } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, describe, expect, it } from 'vitest'
import { createCatalog } from '../src/core/catalog.ts'
import { serveStdio } from '../src/server/stdio/serve-stdio.ts'
import { main } from './support/cli.ts'
import { bytesSoFar } from './support/stream-bytes.ts'

/**
 * A host waits for the first answer: what is loaded until then is a list, in `test/data/start`. A module that is added to one is a
 * decision. After one that is meant: `npx vitest run test/start.test.ts --update`.
 */
const root = resolve(import.meta.dirname, '..')
// A short name: the path of a socket has a limit.
const folder = mkdtempSync(join(tmpdir(), 'start-'))
writeFileSync(join(folder, 'a.md'), '# A\n')
afterAll(() => rmSync(folder, { recursive: true }))

const sources = ['--import', import.meta.resolve('tsx'), join(root, 'src/cli/main.ts')]
const built = [main]
/** The packages that load sources in TypeScript. */
const loaders = new Set(['tsx', 'esbuild'])

const initialize = {
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'test', version: '1' } },
}

/** What a recorder in `test/support` writes down while a program is asked for its first answer. */
async function recordedBy(recorder: string, program: readonly string[], args: readonly string[]) {
  const home = mkdtempSync(join(folder, 'home-'))
  const log = join(home, 'loaded.txt')
  const child = spawn(process.execPath, ['--import', join(root, 'test/support', recorder), ...program, ...args], {
    cwd: folder,
    env: { ...process.env, HIKIDASHI_LOADED: log, XDG_STATE_HOME: home, XDG_CACHE_HOME: home },
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const ended = once(child, 'exit')
  child.stdin.end(`${JSON.stringify(initialize)}\n`)
  child.stdout.resume()
  await ended
  return readFileSync(log, 'utf8').split('\n')
}

const namesOfNode = (...names: readonly string[]) => names.map((name) => `node:${name}`)
/** Node's own modules that a start needs beyond those of any program: no HTTP, no threads. */
const ofNode = namesOfNode('fs/promises', 'module', 'os', 'process', 'timers/promises')
/** Node loads three of these itself, to listen at the socket at which other processes join. */
const ofShared = [...namesOfNode('child_process', 'cluster', 'crypto', 'dgram'), ...ofNode]

/** The URLs of what a command loads until it has written something to its standard output. */
async function loadedBy(program: readonly string[], args: readonly string[]): Promise<readonly string[]> {
  const lines = await recordedBy('loaded.mjs', program, args)
  expect(lines, 'it answered').toContain('answered')
  return lines.slice(0, lines.indexOf('answered'))
}

let bare: Promise<readonly string[]> | undefined

/** Node's own modules that a command has loaded by its first answer, beyond those of a program that does nothing but answer. */
async function builtinsBeyondBare(args: readonly string[]): Promise<readonly string[]> {
  bare ??= recordedBy('builtins.mjs', [join(root, 'bench/servers/first-bare.mjs')], [])
  const ofBare = await bare
  expect(ofBare).toContain('node:net')
  return (await recordedBy('builtins.mjs', built, args)).filter((name) => !ofBare.includes(name)).sort()
}

/** Modules of ours by their path, packages by their name, each once. Node's own modules are left out: the loader uses some too. */
function modulesIn(urls: readonly string[]): readonly string[] {
  const names = urls
    .filter((url) => url.startsWith('file:'))
    .map((url) => relative(root, fileURLToPath(url)))
    .map((path) => /.*node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1] ?? path)
    .filter((name) => !name.startsWith('test/support/') && !loaders.has(name))
  return [...new Set(names)].sort()
}

/** Files of the bundle, without the hash in their names, and Node's own modules that are imported. */
function filesIn(urls: readonly string[]): readonly string[] {
  const files = urls
    .filter((url) => !url.includes('/test/support/'))
    .map((url) => (url.startsWith('file:') ? relative(join(root, 'dist'), fileURLToPath(url)) : url))
    .map((path) => path.replace(/-[\w-]{8}\.js$/, '.js'))
  return [...new Set(files)].sort()
}

/** Writes a configuration of ten mounts, none of which needs a network. */
function tenMounts(): string {
  const file = join(folder, 'ten.json')
  const files = Array.from({ length: 4 }, (_, i) => [`file:///a${i}`, { provider: 'files', root: '.' }])
  const others = {
    'config://a': { provider: 'settings', root: '.' },
    'env://a': { provider: 'env', allow: ['LANG'] },
    'inline://a': { provider: 'inline', resources: { 'one.md': { text: 'One.' } } },
    'prompts://a': { provider: 'prompts', root: '.' },
    'results://a': { provider: 'results' },
    'search://a': { provider: 'search', over: ['file:///a1'] },
  }
  // The store must lie in no folder that is served.
  const store = { sqlite: join(tmpdir(), 'hikidashi-start-store.sqlite') }
  writeFileSync(file, JSON.stringify({ store, mounts: { ...Object.fromEntries(files), ...others } }))
  return file
}

const asText = (lines: readonly string[]) => `${lines.join('\n')}\n`

describe('the start of hikidashi', () => {
  it('with serve DIR loads exactly the modules that test/data/start lists, until the first answer', async () => {
    const modules = modulesIn(await loadedBy(sources, ['serve', folder, '--stdio']))
    await expect(asText(modules)).toMatchFileSnapshot('data/start/serve-folder.txt')
    expect(modules.filter((name) => !name.startsWith('src/'))).toEqual(['commander'])
  })

  it('with serve DIR --only files loads exactly the modules that test/data/start lists, until the first answer', async () => {
    const modules = modulesIn(await loadedBy(sources, ['serve', folder, '--only', 'files', '--stdio']))
    await expect(asText(modules)).toMatchFileSnapshot('data/start/serve-only-files.txt')
    expect(modules.filter((name) => !name.startsWith('src/'))).toEqual(['commander'])
  })

  it('with a configuration of ten mounts loads exactly the modules that test/data/start lists, until the first answer', async () => {
    const modules = modulesIn(await loadedBy(sources, ['serve', '--config', tenMounts(), '--stdio']))
    await expect(asText(modules)).toMatchFileSnapshot('data/start/serve-config.txt')
    expect(modules.filter((name) => !name.startsWith('src/'))).toEqual(['commander', 'jsonc-parser'])
  })

  it('with ls loads exactly the modules that test/data/start lists, and none of the server', async () => {
    // A list of several mounts begins to open them beside the answer, so what is loaded by then varies. One mount is opened when it is read.
    const modules = modulesIn(await loadedBy(sources, ['ls', '--only', 'files']))
    await expect(asText(modules)).toMatchFileSnapshot('data/start/ls.txt')
    expect(modules.filter((name) => name.startsWith('src/server/'))).toEqual([])
  })

  it('with serve DIR of the built package loads exactly the files that test/data/start lists, until the first answer', async () => {
    const files = filesIn(await loadedBy(built, ['serve', folder, '--stdio']))
    await expect(asText(files)).toMatchFileSnapshot('data/start/serve-folder-built.txt')
  })

  it('loads only the built-in modules of Node that the test names, beyond those that any program loads', async () => {
    // A newer Node has loaded some of them by itself.
    const others = async (args: readonly string[], known: readonly string[]) =>
      (await builtinsBeyondBare(args)).filter((name) => !known.includes(name))
    expect(await others(['serve', folder, '--stdio'], ofShared)).toEqual([])
    expect(await others(['serve', folder, '--stdio', '--no-share'], ofNode)).toEqual([])
    const configured = ['serve', '--config', tenMounts(), '--stdio']
    expect(await others(configured, [...namesOfNode('crypto'), ...ofNode])).toEqual([])
  })

  it('with a configuration of ten mounts and the built package loads exactly the files that test/data/start lists, until the first answer', async () => {
    const files = filesIn(await loadedBy(built, ['serve', '--config', tenMounts(), '--stdio']))
    await expect(asText(files)).toMatchFileSnapshot('data/start/serve-config-built.txt')
  })
})

it.each(['2025-06-18', '2026-07-28'])(
  'the first answer over stdio in protocol revision %s is written without a search for secrets in it',
  async (revision) => {
    const searched: string[] = []
    const scrub = (text: string) => {
      if (text.length >= 6) searched.push(text)
      return text
    }
    const input = new PassThrough()
    const output = new PassThrough()
    const catalog = createCatalog({ mounts: [], log: () => {} })
    const meta = {
      'io.modelcontextprotocol/protocolVersion': revision,
      'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
      'io.modelcontextprotocol/clientCapabilities': {},
    }
    const discover = { jsonrpc: '2.0', id: 1, method: 'server/discover', params: { _meta: meta } }
    input.end(`${JSON.stringify(revision === '2026-07-28' ? discover : initialize)}\n`)
    await serveStdio({
      view: catalog.view,
      log: () => {},
      name: 'hikidashi',
      version: '1.0.0',
      scrubber: {
        scrub,
        scrubBytes: (bytes) => bytes,
        stream: () => ({ push: (bytes) => [bytes], end: () => new Uint8Array() }),
      },
      input,
      output,
    })
    expect(JSON.parse(bytesSoFar(output).toString()).result).toMatchObject({ capabilities: { resources: {} } })
    await catalog.close()
    expect(searched).toEqual([])
  },
)

describe('the compile cache of Node 22.8 and later', () => {
  // Stands in for the Node that has it: it prints the folder that it is given.
  const standIn = `data:text/javascript,${encodeURIComponent(
    "import m from 'node:module'; m.enableCompileCache = (folder) => process.stdout.write('cache ' + folder + '\\n')",
  )}`
  const run = promisify(execFile)
  const started = (env: Readonly<Record<string, string>>) =>
    run(process.execPath, ['--import', standIn, main, '--version'], { env: { PATH: process.env.PATH ?? '', ...env } })

  const home = mkdtempSync(join(tmpdir(), 'hikidashi-cache-'))
  afterAll(() => rmSync(home, { recursive: true }))

  it('is in a folder of the user, which is created', async () => {
    const { stdout } = await started({ HOME: home, XDG_CACHE_HOME: '' })
    const folder = join(home, '.cache/hikidashi/compiled')
    expect(stdout.split('\n')[0]).toBe(`cache ${folder}`)
    expect(existsSync(folder)).toBe(true)
    const cacheHome = join(home, 'xdg')
    expect((await started({ XDG_CACHE_HOME: cacheHome })).stdout).toContain(`cache ${cacheHome}/hikidashi/compiled\n`)
  })

  it('is in the folder that NODE_COMPILE_CACHE names', async () => {
    const named = join(home, 'named')
    expect((await started({ NODE_COMPILE_CACHE: named, XDG_CACHE_HOME: home })).stdout).toContain(`cache ${named}\n`)
  })

  it.each([
    { XDG_CACHE_HOME: '/proc/none' },
    { XDG_CACHE_HOME: join(main, 'below') },
    { NODE_COMPILE_CACHE: join(main, 'below/a/b') },
  ])('is not used if its folder cannot be created: %o', async (folder) => {
    expect((await started(folder)).stdout).toMatch(/^\d+\.\d+\.\d+\n$/)
  })
})

describe('hikidashi on Node', () => {
  // The first lines of the program see another version.
  const startedAs = (version: string) => {
    const code = `Object.defineProperty(process.versions, 'node', { value: '${version}' })`
    const old = /^(?:1|21|22\.[0-2]\.)/.test(version) ? '; process.getBuiltinModule = undefined' : ''
    const url = `data:text/javascript,${encodeURIComponent(code + old)}`
    return promisify(execFile)(process.execPath, ['--import', url, main, '--version']).then(
      ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
      (error: { code: number; stdout: string; stderr: string }) => error,
    )
  }

  it.each(['12.22.0', '18.20.0', '20.18.3', '21.7.3', '22.0.0', '22.2.0'])(
    '%s, which is not supported, exits with 1 and one sentence that names the supported versions',
    async (version) => {
      const { code, stdout, stderr } = await startedAs(version)
      expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
      expect(stderr).toMatch(/^hikidashi needs Node 20\.19 or a later 20, or Node 22\.3 or later\. This is Node .*\n$/)
      expect(stderr).toContain(version)
    },
  )

  it.each(['20.19.0', '22.3.0', '24.0.0', '26.1.0'])('%s, which is supported, runs the command', async (version) => {
    expect((await startedAs(version)).code).toBe(0)
  })
})
