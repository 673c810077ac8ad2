import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { CheckReporter } from '../../src/cli/operations/doctor/findings.ts'
import { checkMachine } from '../../src/cli/operations/doctor/needs.ts'
import { checkLocal } from '../../src/cli/operations/doctor/targets.ts'
import { createSecrets } from '../../src/cli/terminal/secrets.ts'
import type { Diagnosis } from '../../src/core/kit/diagnosis.ts'

const folder = mkdtempSync(join(tmpdir(), 'hikidashi-doctor-'))
const taken: Server = createServer()
let port = 0
beforeAll(async () => {
  mkdirSync(join(folder, 'notes'))
  writeFileSync(join(folder, 'notes/a.md'), 'a')
  writeFileSync(join(folder, 'open-secret'), 'not for everybody')
  chmodSync(join(folder, 'open-secret'), 0o644)
  await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve))
  const address = taken.address()
  port = typeof address === 'object' && address !== null ? address.port : 0
})
afterAll(() => {
  taken.close()
  rmSync(folder, { recursive: true })
})

function collect(): CheckReporter & { readonly told: Diagnosis[] } {
  const told: Diagnosis[] = []
  return { told, tell: (check, found) => void told.push({ check, ...found }), doing: () => {} }
}

async function diagnose(config: unknown, name = 'hikidashi.json'): Promise<readonly Diagnosis[]> {
  const file = join(folder, name)
  const text = typeof config === 'string' ? config : JSON.stringify(config, undefined, 1)
  writeFileSync(file, text)
  const findings = collect()
  await checkLocal({ config: file, limit: 10 }, findings, { log: () => {}, secrets: createSecrets(() => []) })
  return findings.told
}
const of = (told: readonly Diagnosis[], check: string) => told.filter((one) => one.check === check)
const notes = { provider: 'files', root: 'notes' }

describe('doctor, about the machine,', () => {
  test('reports a version of Node that is not supported', async () => {
    for (const [version, status] of [
      ['20.18.9', 'failed'],
      ['18.99.0', 'failed'],
      ['20.19.0', 'ok'],
      ['20.100.0', 'ok'],
      ['21.7.3', 'failed'],
      ['22.0.0', 'failed'],
      ['22.2.0', 'failed'],
      ['22.3.0', 'ok'],
      ['24.0.0', 'ok'],
      ['100.0.0', 'ok'],
    ] as const) {
      const findings = collect()
      await checkMachine(findings, { version })
      expect(of(findings.told, 'node')).toMatchObject([{ status }])
    }
  })

  test('says with which versions of Node hikidashi is tested, the same as in the README', async () => {
    const page = (name: string) => readFileSync(join(import.meta.dirname, '../..', name), 'utf8')
    const runs = [...page('.ci/run').matchAll(/test:node -- (?:--whole )?([\d. ]+)$/gm)]
    const versions = runs.flatMap(([, words = '']) => words.split(' ')).sort((a, b) => Number(a) - Number(b))
    const said = `tested with Node ${versions.slice(0, -1).join(', ')} and ${versions.at(-1)}`
    const findings = collect()
    await checkMachine(findings, { version: '24.0.0' })
    expect(of(findings.told, 'node')[0]?.found).toContain(`(${said})`)
    expect(page('README.md')).toContain(said)
  })

  test('names Bun or Deno in a warning', async () => {
    for (const [name, version] of [
      ['bun', '1.4.5'],
      ['deno', '2.9.6'],
    ] as const) {
      Object.defineProperty(process.versions, name, { value: version, configurable: true })
      try {
        const findings = collect()
        await checkMachine(findings)
        const found = expect.stringMatching(new RegExp(`in ${name} ${version}:`, 'i')) as string
        expect(of(findings.told, 'node')).toMatchObject([{ status: 'warning', found }])
      } finally {
        Reflect.deleteProperty(process.versions, name)
      }
    }
  })

  test('has a note on missing limits on Windows, and none on macOS', async () => {
    for (const [platform, count] of [
      ['win32', 1],
      ['darwin', 0],
    ] as const) {
      const findings = collect()
      await checkMachine(findings, { platform })
      expect(of(findings.told, 'system')).toHaveLength(count)
    }
  })

  test('reports a clock that is not plausible', async () => {
    const findings = collect()
    await checkMachine(findings, { now: Date.UTC(2001, 0, 1) })
    expect(of(findings.told, 'clock')).toMatchObject([{ status: 'failed', fix: expect.any(String) }])
  })
})

describe('doctor checks that a configuration', () => {
  test('is good, with a line for each check', async () => {
    const told = await diagnose({
      mounts: { 'docs://notes': { ...notes }, 'x://y': { provider: 'inline', resources: { 'a.md': { text: 'a' } } } },
    })
    expect(told.map(({ check, status }) => `${check} ${status}`)).toEqual([
      'configuration ok',
      'mount ok',
      'changes ok',
      'mount ok',
      'changes ok',
    ])
    expect(of(told, 'mount')[0]?.found).toMatch(/^docs:\/\/notes \(files\): 1 entry checked, \d+ ms$/)
  })

  test('has a server that reports all changes, else says that its lists are compared', async () => {
    const answers = {
      initialize: {
        ...{ protocolVersion: '2025-06-18', capabilities: { resources: {} } },
        serverInfo: { name: 'silent', version: '1' },
      },
      'resources/list': { resources: [{ uri: 'x://a', name: 'a' }] },
      'resources/templates/list': { resourceTemplates: [] },
      'resources/read': { contents: [{ uri: 'x://a', text: 'a' }] },
    }
    const program = `require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
      const { id, method, params } = JSON.parse(line)
      const isMissing = method === 'resources/read' && params.uri !== 'x://a'
      const result = isMissing ? undefined : ${JSON.stringify(answers)}[method]
      const answer = result ? { result } : { error: { code: isMissing ? -32002 : -32601, message: 'unknown' } }
      if (id !== undefined) console.log(JSON.stringify({ jsonrpc: '2.0', id, ...answer }))
    })`
    writeFileSync(join(folder, 'silent.cjs'), program)
    const command = [process.execPath, join(folder, 'silent.cjs')]
    const told = await diagnose({
      mounts: { 'far://a': { provider: 'remote', command: command[0], args: [command[1]] } },
    })
    expect(of(told, 'changes')).toMatchObject([
      {
        status: 'warning',
        found: 'far://a: its source does not report all changes, so its lists are compared periodically.',
        fix: expect.stringContaining('"refresh" at '),
      },
    ])
  })

  test('has no error, and shows the place and the fix of each error without opening a mount', async () => {
    expect(await diagnose('{\n "mouns": {}\n}')).toMatchObject([
      { check: 'configuration', status: 'failed', found: expect.stringContaining('mounts: The key is missing.') },
      { found: expect.stringMatching(/:2:2: mouns: This key is unknown/), fix: 'Did you mean "mounts"?' },
    ])
    const findings = collect()
    const nowhere = { config: join(folder, 'nope.json'), limit: 10 }
    await checkLocal(nowhere, findings, { log: () => {}, secrets: createSecrets(() => []) })
    expect(findings.told).toMatchObject([
      { status: 'failed', found: expect.stringContaining('The file does not exist') },
    ])
  })

  test('has its secrets and programs, and opens no mount that lacks one', async () => {
    const told = await diagnose({
      mounts: {
        'db://a': { provider: 'postgres', url: { env: 'HIKIDASHI_TEST_NOT_SET' } },
        'mcp://a': { provider: 'remote', url: 'https://mcp.example.org/mcp', bearer: { file: 'nope' } },
        'mcp://b': { provider: 'remote', command: 'hikidashi-no-such-program' },
      },
    })
    expect(of(told, 'secrets')).toMatchObject([
      {
        status: 'failed',
        found: expect.stringMatching(
          /hikidashi\.json:\d+: mounts\["db:\/\/a"\]\.url: .*HIKIDASHI_TEST_NOT_SET is not set/,
        ),
        fix: expect.stringContaining('export HIKIDASHI_TEST_NOT_SET='),
      },
      { status: 'failed', found: expect.stringContaining('cannot be read (ENOENT)') },
    ])
    expect(of(told, 'programs')).toMatchObject([{ status: 'failed', found: expect.stringContaining('mcp://b needs') }])
    expect(of(told, 'mount')).toEqual([])
    expect(JSON.stringify(told)).not.toContain('not for everybody')
  })

  test('keeps its secrets unreadable for other users, without printing them', async () => {
    const told = await diagnose({
      mounts: {
        'mcp://a': {
          provider: 'remote',
          command: process.execPath,
          args: ['-e', ''],
          env: { A: { file: 'open-secret' } },
        },
      },
    })
    expect(of(told, 'secrets')).toMatchObject([{ status: 'warning', fix: `chmod 600 ${join(folder, 'open-secret')}` }])
    expect(of(told, 'mount')).toMatchObject([{ status: 'failed', fix: expect.stringContaining('hikidashi check') }])
    expect(JSON.stringify(told)).not.toContain('not for everybody')
  })

  test('has no mount that no client sees', async () => {
    const told = await diagnose({ mounts: { 'docs://notes': { ...notes, access: ['boss'] } } })
    expect(of(told, 'rights')).toMatchObject([
      { status: 'warning', fix: expect.stringContaining('hikidashi access check docs://notes') },
    ])
  })

  test('has a free port and valid tokens', async () => {
    const tokens = join(folder, 'tokens.json')
    const http = { listen: port, auth: { tokens } }
    const told = await diagnose({ http, mounts: { 'docs://notes': notes } })
    expect(of(told, 'port')).toMatchObject([
      { status: 'warning', fix: expect.stringContaining(`hikidashi doctor --url http://127.0.0.1:${port}/mcp`) },
    ])
    expect(of(told, 'http')).toEqual([])
    expect(of(told, 'tokens')).toMatchObject([
      { status: 'warning', fix: expect.stringContaining('hikidashi token add') },
    ])
    writeFileSync(tokens, '{"version":1,"tokens":[]}')
    chmodSync(tokens, 0o666)
    expect(of(await diagnose({ http, mounts: { 'docs://notes': notes } }), 'tokens')).toMatchObject([
      { status: 'failed', fix: `chmod 600 ${tokens}` },
    ])
  })

  test('shows an IPv6 address in brackets', async () => {
    const diagnosis = await diagnose({ http: { listen: '[::1]:0' }, mounts: { 'docs://notes': notes } })
    expect(of(diagnosis, 'port')).toMatchObject([{ found: expect.stringContaining('[::1]:0') }])
  })

  test('requires authentication beyond this machine', async () => {
    const http = { listen: '0.0.0.0:0', allowedHosts: ['context.example.org'] }
    expect(of(await diagnose({ http, mounts: { 'docs://notes': notes } }), 'http')).toMatchObject([
      { status: 'failed', fix: expect.stringContaining('hikidashi token add') },
    ])
  })

  test('has a writable store, and warns of an index that is incomplete', async () => {
    const mounts = { 'docs://notes': notes, 'search://all': { provider: 'search', over: ['docs://notes'] } }
    const told = await diagnose({ mounts, store: { sqlite: 'kept/store.sqlite' } })
    expect(of(told, 'store')).toMatchObject([{ status: 'ok', found: expect.stringContaining('kept/store.sqlite') }])
    expect(of(told, 'index')).toMatchObject([{ status: 'warning', fix: expect.stringContaining('hikidashi serve') }])
    writeFileSync(join(folder, 'a-file'), '')
    const refused = await diagnose({ mounts, store: { sqlite: 'a-file/store.sqlite' } })
    expect(of(refused, 'store')).toMatchObject([
      { status: 'failed', found: expect.stringMatching(/^The store .*a-file\/store\.sqlite cannot be opened: /) },
    ])
    // The search needs the store: it is not reported as a second fault.
    expect(of(refused, 'mount').map(({ found }) => found)).toEqual([expect.stringContaining('docs://notes')])
  })
})
