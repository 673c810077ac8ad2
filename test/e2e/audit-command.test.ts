import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { connect } from '../../src/client/index.ts'
import { addToken } from '../../src/server/auth/token-file.ts'
import { type Running, run, start } from '../support/cli.ts'

const root = mkdtempSync(join(tmpdir(), 'hikidashi-audit-command-'))
const repository = join(root, 'app')
const config = join(root, 'hikidashi.json')
const inRepository = (...words: readonly string[]) =>
  execFileSync('git', ['-C', repository, '-c', 'user.name=a', '-c', 'user.email=a@b.example', ...words])
function commit(text: string): void {
  writeFileSync(join(repository, 'notes.md'), text)
  inRepository('add', '.')
  inRepository('commit', '--quiet', '-m', text)
}

let server: Running
let token = ''
let url = ''
beforeAll(async () => {
  mkdirSync(repository)
  inRepository('init', '--quiet')
  commit('the first text')
  token = (await addToken(join(root, 'tokens.json'), { roles: [], name: 'nightly' })).token
  const settings = {
    mounts: {
      'git://app': { provider: 'git', repository: 'app' },
      'docs://closed': { provider: 'inline', text: 'closed', access: [{ allow: ['nobody'] }] },
    },
    http: { listen: '127.0.0.1:0', auth: { tokens: 'tokens.json' } },
    audit: { file: 'audit.jsonl' },
  }
  writeFileSync(config, JSON.stringify(settings))
  server = start(['serve', '--config', config], { cwd: root })
  url = (await server.says(/http:\/\/127\.0\.0\.1:\d+\/mcp/))[0]
})
afterAll(async () => {
  server.child.kill('SIGTERM')
  await server.ended
  rmSync(root, { recursive: true })
})

describe('hikidashi audit', () => {
  const audit = (...words: readonly string[]) => run(['audit', '--config', config, ...words], { cwd: root })

  test('lists the reads of a token, and shows the text that was read, even if the file has changed since', async () => {
    const view = await connect({ url, headers: { Authorization: `Bearer ${token}` } })
    await view.read('git://app/HEAD/notes.md')
    await view.read('docs://closed').catch(() => {})
    await view.close()
    commit('the second text')
    await expect.poll(async () => (await audit('--caller', 'nightly', '--verb', 'read')).out).toMatch(/denied/)

    const found = await audit(
      '--caller',
      'nightly',
      '--since',
      '1d',
      '--uri',
      'git://app/',
      '--verb',
      'read',
      '--json',
      '--contents',
    )
    expect(found).toMatchObject({ code: 0, err: '' })
    const [record, ...more] = JSON.parse(found.out) as Record<string, unknown>[]
    expect(more).toEqual([])
    expect(record).toMatchObject({
      ...{ label: 'nightly', uri: 'git://app/HEAD/notes.md', outcome: 'ok', bytes: 14 },
      ...{ version: expect.stringMatching(/^[0-9a-f]{40}/), commit: expect.stringMatching(/^[0-9a-f]{40}$/) },
      content: { text: 'the first text', uri: `git://app/${record?.commit}/notes.md` },
    })
    expect((await audit('--uri', 'git://app/', '--verb', 'read', '--contents')).out).toMatch(
      /nightly +read +ok[\s\S]*the first text/,
    )
    expect(found.out).not.toContain(token)
  })

  test('says that no record matches, and refuses an invalid time, a missing configuration and a missing log file', async () => {
    expect(await audit('--caller', 'somebody')).toMatchObject({
      code: 0,
      out: '',
      err: expect.stringMatching(/No record matches/),
    })
    expect(await audit('--since', 'yesterday')).toMatchObject({ code: 2, err: expect.stringMatching(/30m, 12h or 7d/) })
    expect(await run(['audit'], { cwd: tmpdir() })).toMatchObject({
      code: 1,
      err: expect.stringMatching(/No audit log is configured/),
    })
    expect(await audit('--file', join(root, 'none'))).toMatchObject({
      code: 1,
      err: expect.stringMatching(/cannot be read \(ENOENT\)/),
    })
  })
})
