import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { run } from '../support/cli.ts'
import { addresses, leaks, password, tokens } from '../support/secrets.ts'
import { useArena } from './harness/arena.ts'
import { formsOf } from './harness/canary.ts'
import { send } from './harness/http.ts'
import { writeSettings } from './harness/settings-files.ts'
import { startConfigured } from './harness/target.ts'
import type { Wire } from './harness/wire.ts'
import type { World } from './harness/world.ts'

// The built command line, with secrets in its environment and its configuration, and files that hold them. That no canary
// leaves in any spelling, on stdout, stderr or a socket, the arena looks after (oracle O1).

const mark = '[redacted]'
const formats = {
  'app.json': 'json',
  'app.yaml': 'yaml',
  'app.toml': 'toml',
  'app.ini': 'ini',
  '.env': 'dotenv',
  'app.properties': 'properties',
} as const
const shapes = [...tokens(), ...addresses()]
const plain = password().planted

const beside = (world: World, name: string) => join(dirname(world.root), name)
const planted = new WeakSet<World>()

/** The spellings of a secret that a program would write; nobody writes a key in capitals. */
const spellings = (secret: string) => formsOf(secret).filter(({ form }) => form !== 'upper case')

/** Every secret that the process knows, in every spelling, in files that anybody may read. */
function plant(world: World): void {
  if (planted.has(world)) return
  planted.add(world)
  const known = [
    ...[world.environment.API_TOKEN, world.environment.AWS_SECRET_ACCESS_KEY].map(String),
    /:([^:@]+)@/.exec(String(world.environment.DATABASE_URL))?.[1] ?? '',
    world.canaries.plant('cursor-secret'),
  ]
  writeFileSync(beside(world, 'cursor.key'), `${known[3]}\n`)
  mkdirSync(join(world.root, 'known'))
  for (const [i, secret] of known.entries())
    for (const { form, bytes } of spellings(secret)) {
      const name = `${i}-${form.replace(/\W+/g, '-')}`
      writeFileSync(
        join(world.root, 'known', `${name}.txt`),
        Buffer.concat([Buffer.from('see '), bytes, Buffer.from(' there\n')]),
      )
      writeFileSync(
        join(world.root, 'known', `${name}.bin`),
        Buffer.concat([Buffer.from([0, 1, 255, 0]), bytes, Buffer.from([0, 254])]),
      )
    }
  writeFileSync(join(world.root, 'known', `named-${known[0]}.txt`), 'its name is the secret\n')
  writeFileSync(join(world.root, 'known', 'title.md'), `# About ${known[1]}\n`)
  mkdirSync(beside(world, 'settings'))
  for (const [file, format] of Object.entries(formats)) {
    const [first] = shapes
    const all = JSON.stringify(shapes.map(({ planted: value }) => ({ greeting: value })))
    const text = format === 'json' ? all : writeSettings(format, 'value', String(first?.planted))
    writeFileSync(beside(world, `settings/${file}`), String(text))
  }
  for (const [i, { planted: value }] of shapes.entries())
    writeFileSync(
      beside(world, `settings/${i}.yaml`),
      `${writeSettings('yaml', 'value', value)}db_password: ${plain}\n`,
    )
  mkdirSync(beside(world, 'notes'))
  writeFileSync(beside(world, 'notes/all.md'), shapes.map(({ planted: value }) => `see ${value} there\n`).join('\n'))
}

const config = (world: World) => ({
  mounts: {
    [world.address]: { provider: 'files', root: world.root },
    // A machine that is busy is not what is tested.
    'config://app': { provider: 'settings', root: beside(world, 'settings'), timeout: '25s' },
    'env://process': { provider: 'env', allow: ['LANG'] },
    'notes://all': { provider: 'files', root: beside(world, 'notes'), redact: 'mask' },
  },
  cursorSecret: { file: './cursor.key' },
})

const arena = useArena(
  {},
  (world, { transport }) => {
    plant(world)
    return startConfigured(world, transport, config(world))
  },
  { slack: { descriptors: 64, threads: 24 } },
)

interface Part {
  readonly uri: string
  readonly text?: string
  readonly blob?: string
}

async function partOf(wire: Wire, uri: string): Promise<Part> {
  const { message, raw } = await arena.read(wire, uri)
  const [part] = (message?.result?.contents ?? []) as readonly Part[]
  expect(part, `${uri}: ${raw.subarray(0, 300)}`).toBeDefined()
  return part as Part
}

async function below(wire: Wire, uri: string): Promise<readonly Part[]> {
  const parts: Part[] = []
  let cursor: string | undefined
  do {
    const { message } = await arena.ask(
      wire,
      'resources/directory/read',
      cursor === undefined ? { uri } : { uri, cursor },
    )
    parts.push(...((message?.result?.resources ?? []) as readonly Part[]))
    cursor = message?.result?.nextCursor as string | undefined
  } while (cursor !== undefined)
  return parts
}

describe('a server with secrets', () => {
  test('serves files without the secrets that it knows, in any spelling (SE06)', async () => {
    for (const wire of arena.wires) {
      const listed = await below(wire, `${arena.world.address}/known`)
      const files = listed.filter(({ uri }) => !uri.includes('named-') && !uri.endsWith('.md'))
      expect(files.length).toBeGreaterThan(80)
      // Each of them over one transport, and some over each.
      for (const [i, { uri }] of files.entries()) {
        if (i % arena.wires.length !== arena.wires.indexOf(wire) && i % 16 !== 0) continue
        const { text, blob = '' } = await partOf(wire, uri)
        expect(text ?? Buffer.from(blob, 'base64').toString('latin1'), uri).toContain(mark)
      }
      expect(listed.find(({ uri }) => uri.includes('named-'))?.uri).toMatch(/\/known\/named-%5Bredacted%5D\.txt$/)
    }
  })

  test('redacts settings by value and by name (SE01, SE02, SE04)', async () => {
    const wire = arena.wire('http 2026-07-28')
    for (const { uri } of await below(wire, 'config://app'))
      for (const query of ['', '?as=json']) {
        const { text = '' } = await partOf(wire, uri + query)
        for (const { name, secret } of shapes) expect(leaks(text, secret), `${name} in ${uri}${query}`).toEqual([])
        expect(leaks(text, [plain])).toEqual([])
        expect(text, uri).toContain(mark)
      }
  })

  test('redacts texts of a mount with redaction (SE01, SE16)', async () => {
    for (const wire of arena.wires) {
      const { text = '' } = await partOf(wire, 'notes://all/all.md')
      for (const { name, secret } of shapes) expect(leaks(text, secret), name).toEqual([])
      expect(text.match(/see /g)).toHaveLength(shapes.length)
    }
  })

  test('lists the names of environment variables, and shows only the value of an allowed one (SE09)', async () => {
    for (const wire of arena.wires) {
      const names = (await below(wire, 'env://process')).map(({ uri }) => uri)
      expect(names).toContain('env://process/API_TOKEN')
      for (const uri of names) expect((await partOf(wire, uri)).text).toBe(uri.endsWith('/LANG') ? 'C.UTF-8' : mark)
      for (const path of ['/proc/self/environ', '/proc/1/cmdline', '/proc/self/cmdline'])
        expect((await arena.read(wire, `file://${path}`)).message?.error?.message).toBe('Resource not found')
    }
  })

  test('opens no debugger at SIGUSR1, and continues (SE12)', async () => {
    process.kill(arena.http.pid, 'SIGUSR1')
    for (const wire of arena.wires.filter(({ transport }) => transport === 'http'))
      expect((await partOf(wire, `${arena.world.address}/a.txt`)).text).toBe('alpha\n')
    expect(arena.http.errors()).not.toMatch(/debugger|inspector/i)
    const ports = readFileSync(`/proc/${arena.http.pid}/net/tcp`, 'utf8')
    // 9229, at the loopback.
    expect(ports).not.toMatch(/0100007F:240D 00000000:0000 0A/)
  })

  test('tells every cache and browser to store nothing (SE24)', async () => {
    const { world, http } = arena
    for (const path of ['/mcp', '/healthz', '/readyz', '/nothing'])
      for (const method of ['GET', 'POST']) {
        const { headers = [] } = await send(http, world, { method, path, body: method === 'POST' ? '{}' : '' })
        expect(headers.find(([name]) => name === 'cache-control')?.[1], `${method} ${path}`).toMatch(/^no-store/)
      }
  })
})

describe('errors and logs of a command:', () => {
  const inWorld = (args: readonly string[]) =>
    run(args, { cwd: dirname(arena.world.root), env: { ...arena.world.environment } })

  test('an error holds no secret of the command line, the environment or the configuration (SE11)', async () => {
    const token = arena.world.canaries.plant('header')
    writeFileSync(beside(arena.world, 'wrong.json'), JSON.stringify({ mounts: {}, cursorSecret: token }))
    const commands = [
      ['ls', '--url', `http://u:${token}@127.0.0.1:1/mcp`, '--header', `Authorization: Bearer ${token}`],
      ['ls', '--url', 'http://127.0.0.1:1/mcp', '--header', `Authorization Bearer ${token}`],
      ['read', `file:///${token}`, '--url', 'http://127.0.0.1:1/mcp', `--header=X-Api-Key: ${token}`],
      ['ls', String(arena.world.environment.API_TOKEN)],
      ['serve', String(arena.world.environment.AWS_SECRET_ACCESS_KEY)],
      ['check', '--config', 'wrong.json'],
      ['check', '--config', 'wrong.json', '--json'],
    ]
    for (const args of commands) {
      const { code, out, err } = await inWorld(args)
      expect(code, err).not.toBe(0)
      arena.world.canaries.see(Buffer.from(`${out}\0${err}\0`), args.slice(0, 3).join(' '))
    }
  })

  test('a log at the debug level has one line for each event, and no secret (SE13, SE14)', async () => {
    const { world } = arena
    const hostile = [
      'file:///a\nfake="1"',
      'file:///\u001b[31mred',
      'file:///","level":"error","x":"',
      'file:///\u2028\u0085x',
      `file:///${world.environment.API_TOKEN}`,
    ]
    const message = (uri: string, id: number) =>
      JSON.stringify({ jsonrpc: '2.0', id, method: 'resources/subscribe', params: { uri } })
    const initialize = JSON.stringify({
      jsonrpc: '2.0',
      id: 'i',
      method: 'initialize',
      params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'a\n"b', version: '\u001b[1m' } },
    })
    for (const format of ['json', 'text']) {
      const { err } = await run(['serve', world.root, '--stdio', '--log-level', 'debug', '--log-format', format], {
        cwd: dirname(world.root),
        env: { ...world.environment },
        input: `${[initialize, ...hostile.map(message), '{"a'].join('\n')}\n`,
      })
      world.canaries.see(Buffer.from(`${err}\0`), `the log as ${format}`)
      const lines = err.trim().split('\n')
      expect(lines.length).toBeGreaterThan(0)
      for (const line of lines) {
        // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be there.
        expect(line).not.toMatch(/[\u0000-\u001f\u0085\u2028]/)
        if (format === 'json')
          expect(JSON.parse(line)).toMatchObject({ level: expect.any(String), message: expect.any(String) })
        else expect(line).toMatch(/^\d{4}-\d\d-\d\dT[\d:.]+Z (?:debug|info|warn|error) /)
      }
    }
  })
})
