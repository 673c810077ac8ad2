import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createLog } from '../../src/cli/terminal/log.ts'
import {
  createSecrets,
  isDistinctSecret,
  secretsInArguments,
  secretsInEnvironment,
} from '../../src/cli/terminal/secrets.ts'
import { secretSourcesIn } from '../../src/schema/values.ts'
import { runHere } from '../support/cli-here.ts'

describe('the secrets in an environment', () => {
  test.each([
    ['DB_PASSWORD', 'hunter2', ['hunter2']],
    ['API_TOKEN', 'correct horse battery staple', ['correct horse battery staple']],
    ['npm_config__auth', 'dXNlcjpwYXNzd29yZA==', ['dXNlcjpwYXNzd29yZA==']],
    ['DATABASE_URL', 'postgres://app:p%40ss1word@db/x', ['p%40ss1word', 'p@ss1word']],
    ['DSN', 'host=db user=x password=Abc12345', ['Abc12345']],
    ['ANYTHING', `ghp_${'aB3'.repeat(12)}`, [`ghp_${'aB3'.repeat(12)}`]],
  ])('of %s=%s are %j', (name, value, expected) => {
    expect([...new Set(secretsInEnvironment({ [name]: value }))]).toEqual(expected)
  })

  test.each([
    ['PATH', '/usr/local/bin:/usr/bin'],
    ['NODE_OPTIONS', '--max-old-space-size=4096'],
    ['POSTGRES_PASSWORD', 'postgres'],
    ['MYSQL_ROOT_PASSWORD', 'root'],
    ['DESKTOP_SESSION', 'ubuntu-xorg'],
    ['TOKENIZERS_PARALLELISM', 'false'],
    ['USE_TOKEN', 'true'],
    ['PIN', '20260102'],
    ['JWT_SIGNATURE', 'sha256'],
    ['TOKEN_URL', 'https://login.example.net/oauth/token'],
    ['GOOGLE_APPLICATION_CREDENTIALS', process.execPath],
    ['SSH_AUTH_SOCK', '/tmp/ssh-x/agent.1'],
  ])('do not include %s=%s, a common text', (name, value) => {
    expect(secretsInEnvironment({ [name]: value })).toEqual([])
  })
})

describe('the secrets in a command line', () => {
  test('are those of headers, whole and without the scheme, and passwords in URLs', () => {
    const words = ['--header', 'Authorization: Bearer abc.def123', '--header=Authorization: Basic dXNlcjpwYXNzdzByZA==']
    const found = secretsInArguments([
      'ls',
      ...words,
      '--url',
      'https://me:pw12345678@host/mcp',
      '--header',
      'Accept: text/html',
    ])
    for (const secret of ['Bearer abc.def123', 'abc.def123', 'dXNlcjpwYXNzdzByZA==', 'passw0rd', 'pw12345678'])
      expect(found).toContain(secret)
    expect(found.some((secret) => /text|me|host/.test(secret))).toBe(false)
    expect(secretsInArguments(['--header', 'Cookie: a=b12345678; c=d123456789'])).toContain('d123456789')
    expect(secretsInArguments(['--header', 'Authorization Bearer tok1234567'])).toContain('tok1234567')
  })
})

describe('the set of known secrets', () => {
  test('accepts further secrets, and is collected once, when the first text is scrubbed', () => {
    let collected = 0
    const secrets = createSecrets(() => {
      collected++
      return ['first-secret']
    })
    secrets.add(['other-secret'])
    expect(collected).toBe(0)
    expect(secrets.scrub('first-secret other-secret third-secret')).toBe('[redacted] [redacted] third-secret')
    secrets.add(['third-secret'])
    expect(secrets.scrub('first-secret other-secret third-secret')).toBe('[redacted] [redacted] [redacted]')
    expect(collected).toBe(1)
  })

  test('has distinctive passwords, and neither short texts nor common words', () => {
    expect(['hunter2', 'Tr0ub4dor&3', 'kXqWvBnMzT'].every(isDistinctSecret)).toBe(true)
    expect(['', 'abc', 'password', 'Postgres', 'my-secret', '12345678', 'AES256'].some(isDistinctSecret)).toBe(false)
  })

  test('has every secret that a configuration refers to by { env } or { file }, and not the file of an env mount', () => {
    const config = {
      a: [{ env: 'A' }],
      b: { c: { file: './d' } },
      mount: { provider: 'env', file: '.env' },
      e: { env: 1 },
    }
    expect(secretSourcesIn(config)).toEqual([{ env: 'A' }, { file: './d' }])
  })

  test.each(['text', 'json'] as const)(
    'keeps its secrets out of a log in %s, also where a long line is cut',
    (format) => {
      const lines: string[] = []
      const scrubber = createSecrets(() => ['a-secret-value'])
      const log = createLog({ level: 'debug', format, write: (line) => void lines.push(line), scrubber })
      const error = new Error('got a-secret-value', { cause: new Error('a-secret-value') })
      log('error', 'a-secret-value failed', {
        error,
        'a-secret-value': ['a-secret-value'],
        object: { k: 'a-secret-value' },
      })
      log('error', `${'x'.repeat(8150)}a-secret-value${'y'.repeat(9000)}`)
      expect(lines.join('')).not.toMatch(/a-secret/)
      expect(lines.join('')).toContain('[redacted]')
    },
  )
})

describe('a command that opens a folder itself', () => {
  const secret = 'correct-Horse7-battery'
  let cwd = ''
  beforeAll(() => {
    cwd = mkdtempSync(join(tmpdir(), 'hikidashi-known-'))
    writeFileSync(join(cwd, 'notes.md'), `# About ${secret}\n\nThe zebra knows ${secret}.\n`)
    writeFileSync(join(cwd, `${secret}.md`), 'a file with a bad name\n')
    // A text in an encoding that nobody knows: `check` names it.
    writeFileSync(join(cwd, `${secret}.txt`), Buffer.from([0xc3, 0x28, 0x41, 0xa0, 0xa1, 0x20, 0xe2, 0x28, 0xa1, 0x0a]))
    writeFileSync(join(cwd, 'bytes.bin'), Buffer.concat([Buffer.from([0, 1, 2, 255]), Buffer.from(secret)]))
  })
  afterAll(() => rmSync(cwd, { recursive: true, force: true }))

  test.each([
    [['ls', '--long', '--recursive'], 'notes.md'],
    [['tree'], 'notes.md'],
    [['read', 'notes.md'], 'The zebra knows [redacted].'],
    [['read', 'notes.md', '--json'], 'The zebra knows [redacted].'],
    [['read', 'notes.md', '--lines', '3'], 'The zebra knows [redacted].'],
    [['read', 'bytes.bin'], '[redacted]'],
    [['search', 'zebra'], 'zebra knows [redacted].'],
    [['search', 'zebra', '--json'], 'zebra knows [redacted].'],
    [['pack', 'What does the zebra know?'], 'The zebra knows [redacted].'],
    [['stat', 'notes.md'], 'text/markdown'],
    [['why', 'notes.md'], 'notes.md'],
    [['status'], 'file:///'],
    [['check'], '[redacted]'],
    [['check', '--json'], '[redacted]'],
    [['doctor'], 'mount'],
    [['doctor', '--json'], '"checks"'],
  ])('prints no known secret, and all other text: %j', async (words, expected) => {
    const { code, out, err } = await runHere(words, { cwd, env: { API_TOKEN: secret } })
    expect(out + err).not.toContain(secret)
    expect(out).toContain(expected)
    expect(code, err).toBe(0)
  })

  test('stores no analysis with a known secret in its id, and does not print the secret', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'hikidashi-known-'))
    const mounts = { 'results://r': { provider: 'results' } }
    const store = { sqlite: './store.sqlite' }
    writeFileSync(join(folder, 'hikidashi.json'), JSON.stringify({ store, mounts }))
    const consensus = { content: 'c', confidence: 1, reasoning: 'r' }
    const thresholds = { met: true, confidence: 1, agreement: 1 }
    const facts = { prompt: 'p', taskType: 'basic', language: 'en', rounds: 1, totalCost: 0 }
    const vote = { provider: 'a', model: 'b', error: 'It took too long.' }
    writeFileSync(
      join(folder, 'a.json'),
      JSON.stringify({ id: secret, ...facts, votes: [vote], consensus, thresholds }),
    )
    const words = ['results', 'put', 'a.json', '--config', 'hikidashi.json']
    const { out, err } = await runHere(words, { cwd: folder, env: { API_TOKEN: secret } })
    expect(out + err).not.toContain(secret)
    expect(err).toContain('a.json: id: It contains a secret')
    rmSync(folder, { recursive: true, force: true })
  })

  test('redacts a secret that lies across the border of two parts of a content', async () => {
    const mib = 1024 * 1024
    const text = `${'x'.repeat(mib - 8)}${secret}${'y'.repeat(mib)}`
    writeFileSync(join(cwd, 'large.txt'), text)
    writeFileSync(
      join(cwd, 'hikidashi.json'),
      JSON.stringify({ mounts: { 'file:///r': { provider: 'files', root: '.', maxBytes: mib } } }),
    )
    const words = ['read', 'file:///r/large.txt', '--config', 'hikidashi.json']
    const { code, out } = await runHere(words, { cwd, env: { API_TOKEN: secret } })
    expect(code).toBe(0)
    expect(out).toBe(text.replace(secret, '[redacted]'))
  })
})
