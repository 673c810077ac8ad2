import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { promisify } from 'node:util'
import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { DatabaseSync } from '@photostructure/sqlite'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Entry, type Options, open, type ZipFile } from 'yauzl'
import { bundled } from '../support/bundled.ts'
import { run, writeNotes } from '../support/cli.ts'
import { runHere } from '../support/cli-here.ts'
import { isThorough } from '../support/volume.ts'

let root = ''
let folder = ''
let home = ''
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'hikidashi-hosts-'))
  folder = await writeNotes(root)
  home = join(root, 'home')
  await mkdir(home)
})
afterAll(() => rm(root, { recursive: true, force: true }))

/** A home folder of its own: the one of whoever runs this is never looked at. */
const own = () => ({
  HOME: home,
  USERPROFILE: home,
  APPDATA: join(home, 'AppData'),
  XDG_CONFIG_HOME: join(home, '.config'),
  ...{ CLAUDE_CONFIG_DIR: '', CODEX_HOME: '', GEMINI_CLI_HOME: '' },
})
/** In the process of the test: only what it writes matters. */
const cli = (...args: readonly string[]) => runHere(args, { cwd: folder, env: own() })
const started = (...args: readonly string[]) => run(args, { cwd: folder, env: own() })

async function listed(command: string, args: readonly string[]): Promise<readonly string[]> {
  const client = new Client({ name: 'host', version: '1' })
  // As a host does it: from somewhere else, and with an environment that says little.
  await client.connect(
    new StdioClientTransport({ command, args: [...args], cwd: '/', env: { HOME: home }, stderr: 'pipe' }),
  )
  try {
    return (await client.listResources()).resources.map(({ uri }) => uri)
  } finally {
    await client.close()
  }
}

describe('hikidashi in the configuration of a host', () => {
  test('is not added with --npx, because it is not in the registry of npm', async () => {
    const file = join(home, '.config/zed/settings.json')
    const refused = await cli('add', 'zed', '--npx')
    expect(refused).toMatchObject({ code: 2, out: '' })
    expect(refused.err).toMatch(/not in the registry of npm yet/)
    await expect(readFile(file, 'utf8')).rejects.toThrow(/ENOENT/)
  })

  test('is added, started by the command in the file, listed, and removed', async () => {
    const file = join(home, '.config/zed/settings.json')
    const before = '// Zed\n{\n  "theme": "One Dark", // dark\n}\n'
    await mkdir(dirname(file), { recursive: true })
    await writeFile(file, before)
    const dry = await cli('add', 'zed', '--dry-run')
    expect(dry).toMatchObject({ code: 0, err: '' })
    expect(dry.out).toMatch(/^--- .*settings\.json\n\+\+\+ .*\n@@ -1,4 \+1,16 @@\n/)
    expect(await readFile(file, 'utf8')).toBe(before)
    const added = await started('add', 'zed', '--json')
    expect(JSON.parse(added.out)).toMatchObject({
      host: 'zed',
      scope: 'user',
      file,
      status: 'added',
      name: 'hikidashi',
    })
    const text = await readFile(file, 'utf8')
    const { command, args } = JSON.parse(text.replace(/\/\/.*$/gm, '').replace(/,(\s*\})/g, '$1')).context_servers
      .hikidashi
    expect(await listed(command, args)).toContain(`file://${folder}/README.md`)
    expect(JSON.parse((await started('add', 'zed', '--json')).out)).toMatchObject({ status: 'unchanged' })
    const taken = await cli('add', 'zed', 'docs')
    expect(taken).toMatchObject({ code: 1, out: '' })
    expect(taken.err).toContain('another entry named hikidashi')
    const told = JSON.parse((await cli('hosts', '--json')).out) as { host: string; found: boolean; files: object[] }[]
    expect(told.find(({ host }) => host === 'zed')).toMatchObject({
      found: true,
      files: [{ scope: 'user', file, exists: true, servers: [{ name: 'hikidashi', transport: 'stdio' }] }, {}],
    })
    expect((await cli('hosts')).out).toMatch(/^HOST +FOUND +SCOPE +HIKIDASHI +FILE\n/)
    expect(await started('remove', 'zed')).toMatchObject({ code: 0, out: '' })
    expect(await readFile(file, 'utf8')).toBe(before.replace('{\n', '{\n  "context_servers": {},\n'))
    expect(await cli('remove', 'zed')).toMatchObject({ code: 4 })
  })

  test('is removed with its hook; a dry run shows both changes of the file, and the backup has the file before them', async () => {
    const file = join(home, '.gemini/settings.json')
    await mkdir(dirname(file), { recursive: true })
    await writeFile(file, '{}\n')
    expect(await cli('add', 'gemini-cli', '--hook')).toMatchObject({ code: 0 })
    const text = await readFile(file, 'utf8')
    expect(await readFile(`${file}.hikidashi.bak`, 'utf8')).toBe('{}\n')
    const dry = await cli('remove', 'gemini-cli', '--dry-run')
    expect(dry).toMatchObject({ code: 0, err: '' })
    expect(dry.out).toMatch(/^-.*"mcpServers"|^-.*"hikidashi": \{/m)
    expect(dry.out).toMatch(/^-.*pack.*--hook/m)
    expect(await readFile(file, 'utf8')).toBe(text)
    expect(await cli('remove', 'gemini-cli')).toMatchObject({ code: 0 })
    expect(await readFile(file, 'utf8')).not.toMatch(/--hook|"hikidashi"/)
    expect(await readFile(`${file}.hikidashi.bak`, 'utf8')).toBe(text)
  })

  test('is added for a project, by its URL, without the token', async () => {
    const options = ['--scope', 'project', '--url', 'https://context.example.org/mcp']
    const refused = await cli('add', 'vscode', ...options, '--header', 'Authorization: Bearer s3cret-t0ken-1234')
    expect(refused).toMatchObject({ code: 2, out: '' })
    expect(refused.err).not.toContain('s3cret')
    expect(await cli('add', 'vscode', ...options, '--token-prompt')).toMatchObject({ code: 0, out: '' })
    expect(JSON.parse(await readFile(join(folder, '.vscode/mcp.json'), 'utf8'))).toMatchObject({
      servers: { hikidashi: { headers: { Authorization: 'Bearer ${input:hikidashi-token}' } } },
      inputs: [{ id: 'hikidashi-token', password: true }],
    })
    expect(await cli('remove', 'vscode', '--scope', 'project')).toMatchObject({ code: 0 })
    expect(JSON.parse(await readFile(join(folder, '.vscode/mcp.json'), 'utf8'))).toEqual({ servers: {}, inputs: [] })
    expect((await cli('add', 'codex', '--print', ...options, '--token-env', 'CONTEXT_TOKEN')).out).toBe(
      '[mcp_servers.hikidashi]\nurl = "https://context.example.org/mcp"\nbearer_token_env_var = "CONTEXT_TOKEN"\n',
    )
  })

  test('is not written to a file with invalid JSON, and the error names the file and the position', async () => {
    const file = join(home, '.cursor/mcp.json')
    await mkdir(dirname(file))
    await writeFile(file, '{\n  "mcpServers": {,}\n}\n')
    const { code, err } = await cli('add', 'cursor')
    expect({ code, err }).toMatchObject({ code: 1, err: expect.stringContaining(`${file}:2:18: this is not JSON`) })
    expect(await readFile(file, 'utf8')).toBe('{\n  "mcpServers": {,}\n}\n')
    expect(await cli('add', 'cursor', '--print')).toMatchObject({ code: 0 })
  })

  test.each([
    [['add', 'claude'], /Did you mean claude-code or claude-desktop\?/],
    [['remove', 'vscod'], /Did you mean vscode\?/],
    [['add', 'codex', '--name', 'a b'], /letters, digits/],
    [['add', 'codex', 'nowhere'], /no folder/],
    [['add', 'codex', '--header', 'A: b'], /needs --url/],
    [['add', 'codex', 'docs', '--url', 'http://x'], /Give folders or --url/],
    [['add', 'goose', '--scope', 'project'], /no settings for a project/],
    [['registry', 'server-json'], /--name io\.github/],
  ])('is refused with advice for the wrong command line %j', async (args, message) => {
    const { code, out, err } = await cli(...args)
    expect({ refused: code === 1 || code === 2, out }).toEqual({ refused: true, out: '' })
    expect(err).toMatch(message)
  })
})

test('a settings file of a host has its old or its new content, whenever the writer is killed', async () => {
  const file = join(root, 'killed.json')
  for (let i = 0; i < 5; i++) {
    const child: ChildProcess = spawn(process.execPath, [bundled('tests/host-file-writer'), file], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const closed = once(child, 'close')
    if (child.stdout !== null) await once(child.stdout, 'data')
    setTimeout(() => child.kill('SIGKILL'), i * 5)
    await closed
    expect(await readFile(file, 'utf8')).toMatch(/^(?:a{300000}|b{300000})$/)
  }
})

/** Unpacks a zip file, as a host does. */
async function unpack(file: string, target: string): Promise<void> {
  const zip = await promisify<string, Options, ZipFile>(open)(file, { lazyEntries: true })
  const read = promisify(zip.openReadStream.bind(zip) as (entry: Entry, done: Done) => void)
  const ended = once(zip, 'end')
  zip.on('entry', (entry: Entry) => {
    const path = join(target, entry.fileName)
    mkdir(dirname(path), { recursive: true })
      .then(async () => pipeline(await read(entry), createWriteStream(path)))
      .then(() => zip.readEntry())
      .catch((error: unknown) => zip.emit('error', error))
  })
  zip.readEntry()
  await ended
}

type Done = (error: Error | null, stream: Readable) => void

test('an MCP bundle has all files that a host needs to start it', { timeout: 120_000 }, async () => {
  const file = join(root, 'hikidashi.mcpb')
  const made = await started('bundle', 'mcpb', '--output', file, '--json')
  expect(made).toMatchObject({ code: 0, err: '' })
  expect(JSON.parse(made.out)).toMatchObject({ file, sha256: expect.stringMatching(/^[0-9a-f]{64}$/) })
  expect(await cli('bundle', 'mcpb', '--output', file)).toMatchObject({ code: 1 })
  const [target, more] = [join(root, 'unpacked'), join(root, 'more')]
  await mkdir(more)
  await unpack(file, target)
  const { server, compatibility } = JSON.parse(await readFile(join(target, 'manifest.json'), 'utf8'))
  const words = server.mcp_config.args.flatMap((word: string) =>
    word === '${user_config.folders}' ? [folder, more] : [word.replace('${__dirname}', target)],
  )
  expect(words[0]).toBe(join(target, server.entry_point))
  expect(await listed(process.execPath, words)).toContain(`file://${folder}/README.md`)
  expect(JSON.parse(await readFile(join(target, 'mcpb-resources/ja.json'), 'utf8'))).toHaveProperty('description')
  // Of SQLite it has what the systems that the manifest names need, and it works.
  const vendor = join(dirname(dirname(join(target, server.entry_point))), 'vendor')
  const builds = async (of: string) => (await readdir(of)).filter((name) => name.endsWith('.node'))
  expect(compatibility.platforms).toEqual([process.platform])
  expect((await builds(vendor)).length).toBeGreaterThan(1)
  for (const name of await builds(vendor)) expect(name).toMatch(new RegExp(`^sqlite-${process.platform}-(arm64|x64)`))
  const database = new DatabaseSync(join(root, 'shop.db'))
  database.exec('CREATE TABLE customer (id INTEGER PRIMARY KEY)')
  database.close()
  const config = join(root, 'bundled.json')
  await writeFile(
    config,
    JSON.stringify({ mounts: { 'sqlite://shop': { provider: 'sqlite', file: join(root, 'shop.db') } } }),
  )
  const sqliteWords = [join(target, server.entry_point), 'serve', '--config', config, '--stdio']
  expect(await listed(process.execPath, sqliteWords)).toContain('sqlite://shop/customer/schema')
})

test('an MCP bundle with a configuration serves its mounts with the secrets that the host asks for', {
  timeout: 120_000,
}, async () => {
  const service = createServer((request, response) => {
    const isAllowed = request.headers.authorization === 'Bearer the-key-of-this-user'
    response.writeHead(isAllowed ? 200 : 401, { 'Content-Type': 'text/plain' }).end(isAllowed ? 'in stock' : 'who?')
  })
  await new Promise<void>((resolve) => service.listen(0, '127.0.0.1', resolve))
  const { port } = service.address() as AddressInfo
  const stock = {
    ...{ provider: 'api', url: `http://127.0.0.1:${port}`, allowAddresses: ['127.0.0.1'] },
    ...{ bearer: { env: 'STOCK_KEY' }, routes: [{ template: 'stock' }] },
    types: ['text/plain'],
  }
  await writeFile(join(root, 'stock.json'), JSON.stringify({ name: 'Shop stock', mounts: { 'stock://shop': stock } }))
  const file = join(root, 'stock.mcpb')
  const made = await started('bundle', 'mcpb', '--config', join(root, 'stock.json'), '--output', file)
  expect(made).toMatchObject({ code: 0 })
  const target = join(root, 'stock')
  await unpack(file, target)
  const { name, server, user_config: asked } = JSON.parse(await readFile(join(target, 'manifest.json'), 'utf8'))
  expect(name).toBe('shop-stock')
  const { command, args, env } = server.mcp_config
  expect(asked[/^\$\{user_config\.(\w+)\}$/.exec(env.STOCK_KEY)?.[1] ?? '']).toMatchObject({ sensitive: true })
  const client = new Client({ name: 'host', version: '1' })
  await client.connect(
    new StdioClientTransport({
      command,
      args: args.map((word: string) => word.replace('${__dirname}', target)),
      env: { HOME: home, PATH: process.env.PATH ?? '', STOCK_KEY: 'the-key-of-this-user' },
      ...{ cwd: '/', stderr: 'pipe' },
    }),
  )
  const { contents } = await client.readResource({ uri: 'stock://shop/stock' }).finally(() => client.close())
  expect(contents).toMatchObject([{ text: 'in stock' }])
  service.close()
})

// Most of it is compressing what the last one has as well.
test.runIf(isThorough)(
  'an MCP bundle for all systems has the builds of SQLite for each of them',
  { timeout: 120_000 },
  async () => {
    const [everywhere, one] = [join(root, 'everywhere'), join(root, 'one.mcpb')]
    const made = await started('bundle', 'mcpb', '--output', one, '--json')
    const all = await started('bundle', 'mcpb', '--output', `${everywhere}.mcpb`, '--all-platforms', '--json')
    expect(all).toMatchObject({ code: 0, err: '' })
    expect(JSON.parse(all.out).bytes).toBeGreaterThan(JSON.parse(made.out).bytes)
    await unpack(`${everywhere}.mcpb`, everywhere)
    const manifest = JSON.parse(await readFile(join(everywhere, 'manifest.json'), 'utf8'))
    expect(manifest.compatibility.platforms.toSorted()).toEqual(['darwin', 'linux', 'win32'])
    const vendor = join(dirname(dirname(join(everywhere, manifest.server.entry_point))), 'vendor')
    expect((await readdir(vendor)).filter((name) => name.endsWith('.node'))).toHaveLength(8)
  },
)
