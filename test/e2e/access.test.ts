import { mkdtempSync, readFileSync, realpathSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { run, writeNotes } from '../support/cli.ts'
import { runHere } from '../support/cli-here.ts'

const home = realpathSync(mkdtempSync(join(tmpdir(), 'hikidashi-access-')))
const audit = join(home, 'log', 'audit.jsonl')

beforeAll(async () => {
  await writeNotes(home)
  const access = ['analyst', { deny: ['guest', 'analyst'], match: 'docs/deep/**' }, { allow: ['guest'], match: '*.md' }]
  const config = {
    mounts: {
      // Neither is opened by `access check`.
      'docs://notes': { provider: 'files', root: 'notes', access },
      'docs://open': { provider: 'git', repository: 'notes' },
      'docs://scoped': { provider: 'files', root: 'notes/docs', scopes: ['notes:read'] },
    },
    roles: ['guest'],
  }
  writeFileSync(join(home, 'hikidashi.json'), JSON.stringify(config))
  const logged = { mounts: { 'docs://notes': config.mounts['docs://notes'] }, roles: ['analyst'] }
  writeFileSync(join(home, 'audited.json'), JSON.stringify({ ...logged, audit: { file: 'audit.jsonl' } }))
  writeFileSync(join(home, 'served.json'), JSON.stringify({ ...logged, audit: { file: 'notes/audit.jsonl' } }))
})
afterAll(() => rmSync(home, { recursive: true }))

describe('hikidashi access check', () => {
  const check = (...words: readonly string[]) => runHere(['access', 'check', ...words], { cwd: home })

  test('names the rule that allows or denies, or says that no rule allows, and exits with 0 or 4', async () => {
    const allowed = await check('docs://notes/docs/numbers.txt', '--as', 'analyst')
    expect(allowed.code).toBe(0)
    expect(allowed.out).toContain('with the role analyst may see')
    expect(allowed.out).toContain('docs://notes\n')
    expect(allowed.out).toContain('rule 1 allows it: {"allow":["analyst"]}')
    const denied = await check('docs://notes/docs/deep/x', '--as', 'analyst,other')
    expect(denied.code).toBe(4)
    expect(denied.out).toContain('with the roles analyst, other may not see')
    expect(denied.out).toContain('rule 2 denies it')
    const unnamed = await check('docs://notes/docs/numbers.txt', '--as', 'nobody')
    expect(unnamed.code).toBe(4)
    expect(unnamed.out).toContain('the mount has access rules, and none of them allows it')
  })

  test('prints the decision and its reason as JSON, and uses the roles of the configuration if none are given', async () => {
    const { code, out } = await check('docs://notes/README.md', '--json')
    expect(code).toBe(0)
    expect(JSON.parse(out)).toEqual({
      ...{ uri: 'docs://notes/README.md', roles: ['guest'], allowed: true, reason: 'allowed-by-rule' },
      ...{ mount: 'docs://notes', path: 'README.md', rule: { index: 2, rule: { allow: ['guest'], match: '*.md' } } },
    })
    const open = JSON.parse((await check('docs://open/HEAD/x', '--json', '--as', '')).out)
    expect(open).toMatchObject({ allowed: true, reason: 'no-rules', roles: [] })
    const scoped = JSON.parse((await check('docs://scoped/x', '--json', '--scopes', 'other')).out)
    expect(scoped).toMatchObject({ allowed: false, reason: 'missing-scope', missingScopes: ['notes:read'] })
    expect(JSON.parse((await check('docs://none/x', '--json')).out)).toMatchObject({ reason: 'no-mount' })
    const directory = JSON.parse((await check('docs://notes/docs/deep/', '--json', '--as', 'analyst')).out)
    expect(directory.below).toBe('none')
    expect(JSON.parse((await check('docs://notes/', '--json')).out).below).toBe('some')
  })

  test('names the missing scope for a directory, and says that a URI is in no mount', async () => {
    const scoped = await check('docs://scoped/', '--scopes', 'other')
    expect(scoped).toMatchObject({ code: 4, out: expect.stringContaining('the scope notes:read\n') })
    expect(scoped.out).not.toContain('below')
    expect(scoped.err).toContain('its token lacks a scope')
    const none = await check('docs://none/x')
    expect(none).toMatchObject({ code: 4, out: expect.stringContaining('is not in any mount of the configuration') })
    expect(none.err).toContain('The URI is in no mount of the configuration.')
  })

  test('refuses an argument that is not a URI, and a folder without a configuration', async () => {
    expect((await check('nonsense')).code).toBe(2)
    const { code, err } = await run(['access', 'check', 'a://b'], { cwd: join(home, 'notes') })
    expect(code).toBe(2)
    expect(err).toContain('no configuration')
  })
})

describe('the audit log of a server', () => {
  test('records the caller, the request and the outcome over stdio, in a file that only its user can read', async () => {
    const read = (id: number, uri: string) => ({ jsonrpc: '2.0', id, method: 'resources/read', params: { uri } })
    const uris = ['docs://notes/README.md', 'docs://notes/docs/deep/x', 'docs://notes/none']
    const input = uris.map((uri, id) => `${JSON.stringify(read(id, uri))}\n`).join('')
    const { code, err } = await run(['serve', '--config', 'audited.json', '--stdio'], { cwd: home, input })
    expect(code, err).toBe(0)
    const file = join(home, 'audit.jsonl')
    const records = readFileSync(file, 'utf8')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>)
    const found = new Map(records.map((record) => [record.uri, record]))
    expect(uris.map((uri) => found.get(uri)?.outcome)).toEqual(['ok', 'denied', 'not-found'])
    expect(found.get(uris[0])).toMatchObject({ principal: 'local', transport: 'stdio', verb: 'read', bytes: 8 })
    expect(statSync(file).mode & 0o777).toBe(0o600)
  })

  test('keeps the server from starting if a mount would serve it, or if it cannot be written', async () => {
    const { code, err } = await run(['serve', '--config', 'served.json', '--stdio'], { cwd: home })
    expect(code).toBe(1)
    expect(err).toContain('audit.file: The audit log lies in the folder that the mount "docs://notes" serves.')
    const config = JSON.parse(readFileSync(join(home, 'audited.json'), 'utf8')) as Record<string, unknown>
    writeFileSync(join(home, 'nowhere.json'), JSON.stringify({ ...config, audit: { file: audit } }))
    const nowhere = await run(['serve', '--config', 'nowhere.json', '--stdio'], { cwd: home })
    expect(nowhere.code).toBe(1)
    expect(nowhere.err).toContain('cannot be written (ENOENT)')
  })
})
