import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type LoadOptions, loadConfig } from '../../src/config/load.ts'
import { formatConfigProblem } from '../../src/config/problem.ts'
import * as declarations from '../../src/providers/table.ts'

let folder = ''
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'hikidashi-config-'))
  await mkdir(join(folder, 'docs'))
})
afterEach(() => rm(folder, { recursive: true }))

async function load(text: string, options?: LoadOptions) {
  const file = join(folder, 'hikidashi.json')
  await writeFile(file, text)
  return loadConfig(file, options)
}

/** The problems, without the folder that is another one in each run. */
async function problems(text: string, options?: LoadOptions): Promise<readonly string[]> {
  const result = await load(text, options)
  if (!('problems' in result)) return []
  return result.problems.map((problem) => formatConfigProblem(problem).replaceAll(`${folder}/`, ''))
}

async function config(text: string, options?: LoadOptions) {
  const result = await load(text, options)
  if ('problems' in result) throw new Error(result.problems.map(formatConfigProblem).join('\n'))
  return result.config
}

const mount = '"file:///a": { "provider": "files", "root": "docs" }'

describe('a valid configuration', () => {
  test('may have comments, trailing commas and a byte order mark', async () => {
    const loaded = await config(`\ufeff// why\n{ "mounts": { ${mount}, /* here */ }, }`)
    expect(loaded.mounts['file:///a']).toEqual({ provider: 'files', root: 'docs' })
    expect(loaded.folder).toBe(folder)
  })

  test('is parsed with durations in milliseconds, sizes in bytes, and roles as rules', async () => {
    const loaded = await config(`{
      "mounts": { "file:///a": {
        "provider": "files", "root": "docs", "maxBytes": "2MiB",
        "access": ["reader", { "deny": ["guest"], "match": "x/**" }],
        "cache": { "ttl": "5m" }
      } },
      "http": { "listen": 8787, "limits": { "body": "64KiB", "sessionIdle": "1h", "drain": 500 } }
    }`)
    expect(loaded.mounts['file:///a']).toMatchObject({
      maxBytes: 2 * 2 ** 20,
      access: [{ allow: ['reader'] }, { deny: ['guest'], match: 'x/**' }],
      cache: { ttl: 300_000, scope: 'private' },
    })
    expect(loaded.http).toEqual({
      listen: { host: '127.0.0.1', port: 8787 },
      limits: { body: 65_536, sessionIdle: 3_600_000, drain: 500 },
    })
  })

  test('takes a secret from the environment or a file, or the current and the earlier ones in a list, and refuses a short one', async () => {
    const value = 'x'.repeat(32)
    const withEnv = `{ "mounts": { ${mount} }, "cursorSecret": { "env": "SECRET" } }`
    expect((await config(withEnv, { env: { SECRET: value } })).cursorSecret).toBe(value)
    await writeFile(join(folder, 'secret'), `${value}\n`)
    const withFile = `{ "mounts": { ${mount} }, "cursorSecret": { "file": "secret" } }`
    expect((await config(withFile)).cursorSecret).toBe(value)
    const both = `{ "mounts": { ${mount} }, "cursorSecret": [{ "env": "NEW" }, { "file": "secret" }] }`
    expect(await config(both, { env: { NEW: 'n'.repeat(32) } })).toMatchObject({
      cursorSecret: 'n'.repeat(32),
      earlierCursorSecrets: [value],
      secrets: ['n'.repeat(32), value],
    })
    expect((await problems(both, { env: { NEW: 'short' } })).join()).toContain('cursorSecret[0]: The secret is shorter')
  })

  test('does not treat the audit log as a secret', async () => {
    await writeFile(join(folder, 'secret'), 'x'.repeat(32))
    await writeFile(join(folder, 'audit.jsonl'), '{"verb":"read"}\n')
    const text = `{ "mounts": { ${mount} }, "cursorSecret": { "file": "secret" }, "audit": { "file": "audit.jsonl" } }`
    expect((await config(text)).secrets).toEqual(['x'.repeat(32)])
  })

  test('may mount the home folder as "~"', async () => {
    expect(await problems('{ "mounts": { "file:///a": { "provider": "files", "root": "~" } } }')).toEqual([])
    expect(homedir()).not.toBe('')
  })
})

describe('an error in a configuration', () => {
  const names = Object.keys(declarations)
    .map((name) => JSON.stringify(name))
    .join(' or ')
  test.each([
    ['/healthz', {}],
    ['/readyz', {}],
    ['/llms.txt', {}],
    ['/content/mcp', {}],
    ['/metrics', { metrics: true }],
    ['/sse', { sse: true }],
    ['/messages', { sse: true }],
  ])('is reported for an endpoint at %s, where the server answers other requests', async (path, http) => {
    const mounts = { 'file:///docs': { provider: 'files', root: 'docs' } }
    const text = JSON.stringify({ mounts, http: { listen: 8787, ...http, path } })
    expect(await problems(text)).toEqual([
      expect.stringContaining(`http.path: The server uses the path ${path} for something else`),
    ])
  })

  test.each([
    { path: '/metrics' },
    { path: '/sse' },
    { path: '/messages' },
    { path: '/content/', contentLinks: false },
  ])('is not reported for an endpoint at a free path: %j', async (http) => {
    const mounts = { 'file:///docs': { provider: 'files', root: 'docs' } }
    expect(await problems(JSON.stringify({ mounts, http: { metrics: false, ...http } }))).toEqual([])
  })

  test('is reported with all other errors, in the order of the file, with place, key, fault and fix', async () => {
    const text = `{
  "nmae": "y",
  "mounts": {
    "file:///a": { "provider": "files", "root": "nope", "exlude": ["x"] },
    "file:///a/b": { "provider": "flies", "root": "." },
    "manual": { "provider": "files", "root": "docs" },
    "c://x": { "root": 3, "access": [] },
    "c://x": { "provider": "files", "root": "docs", "include": ["{a"], "rules": [{ "match": "*", "priority": 2 }] }
  },
  "http": { "listen": "0.0.0.0:80", "limits": { "sessions": 0 } },
  "cursorSecret": "hunter2"
}`
    expect(await problems(text)).toEqual([
      'hikidashi.json:2:3: nmae: This key is unknown. Did you mean "name"?',
      'hikidashi.json:4:49: mounts["file:///a"].root: There is no folder nope. Create it, or correct the path. A relative path starts at the configuration file.',
      'hikidashi.json:4:57: mounts["file:///a"].exlude: This key is unknown. Did you mean "exclude"?',
      'hikidashi.json:5:5: mounts["file:///a/b"]: The address overlaps with "file:///a". Give each mount an address of its own, neither at nor under another; "exclude" leaves a folder out of a mount.',
      'hikidashi.json:5:34: mounts["file:///a/b"].provider: There is no provider "flies". Did you mean "files"?',
      'hikidashi.json:6:5: mounts.manual: This is not an address. The URI is not of the form scheme://authority/path. Write one such as "file:///docs" or "docs://manual".',
      'hikidashi.json:8:5: mounts["c://x"]: The key occurs twice. Remove one of the two, or merge them.',
      'hikidashi.json:8:65: mounts["c://x"].include[0]: The glob "{a" is malformed: a "{" has no "}". Correct it; a "\\\\" makes the next character literal.',
      'hikidashi.json:8:110: mounts["c://x"].rules[0].priority: The value is more than 1. It must be at most 1.',
      'hikidashi.json:10:23: http.listen: Other machines can reach 0.0.0.0, but "allowedHosts" names no host. Add "allowedHosts" with the host names that clients use, or listen on the loopback interface.',
      'hikidashi.json:10:61: http.limits.sessions: The value is less than 1. It must be at least 1.',
      'hikidashi.json:11:19: cursorSecret: This is a literal secret. Put it into an environment variable or a file of its own, and write { "env": "NAME" } or { "file": "path" }. If this file was ever shared, replace the secret.',
    ])
  })

  test('is reported for a text that is too long, with the number of characters that it may have', async () => {
    const mounts = '"mounts": { "file:///a": { "provider": "files", "root": "docs" } }'
    const facts = { name: 'org.example/context', url: 'https://context.example.org/mcp', description: 'x'.repeat(101) }
    const fault = 'http.public.description: The value has more than 100 characters. Keep at most 100.'
    expect(await problems(`{ ${mounts}, "http": ${JSON.stringify({ public: facts })} }`)).toEqual([
      expect.stringContaining(fault),
    ])
  })

  test('is reported for an allowed host or origin in a form that clients and browsers do not send', async () => {
    const mounts = '"mounts": { "file:///a": { "provider": "files", "root": "docs" } }'
    const http = (members: object) => problems(`{ ${mounts}, "http": ${JSON.stringify(members)} }`)
    const allowedHosts = ['context.example.org', '10.0.0.5:8787', '[::1]:8787', 'https://context.example.org', 'a/b']
    expect(await http({ allowedHosts })).toEqual(
      [3, 4].map((index) =>
        expect.stringContaining(`http.allowedHosts[${index}]: No client sends this as its Host header. Write a name`),
      ),
    )
    const allowedOrigins = [
      'https://app.example.org:8443',
      'vscode-webview://x',
      'null',
      'app.example.org',
      'https://a.example/',
    ]
    expect(await http({ allowedOrigins })).toEqual(
      [3, 4].map((index) =>
        expect.stringContaining(`http.allowedOrigins[${index}]: No browser sends this as an origin. Write scheme://`),
      ),
    )
  })

  test('is reported for replicas without a common store and secret', async () => {
    const mounts = '"mounts": { "file:///a": { "provider": "files", "root": "docs" } }'
    expect(await problems(`{ ${mounts}, "replicas": true }`)).toEqual([
      'hikidashi.json:1:83: replicas: Replicas need "store", which is missing. Name the database that they share: "store": { "postgres": { "env": "NAME" } }.',
      'hikidashi.json:1:83: replicas: Replicas need "cursorSecret", which is missing. Name the secret that they share: "cursorSecret": { "env": "NAME" }.',
    ])
    expect(await problems(`{ ${mounts}, "replicas": false }`)).toEqual([])
  })

  test('is reported for a missing folder, and for a file in place of a folder, beside a misspelt key of another mount', async () => {
    const text = `{ "mounts": {
      "file:///a": { "provider": "files", "root": "docs", "x": 1 },
      "file:///b": { "provider": "files", "root": "nope" },
      "file:///c": { "provider": "files", "root": "hikidashi.json" }
    } }`
    const found = await problems(text)
    expect(found).toHaveLength(3)
    expect(found[1]).toContain('3:51: mounts["file:///b"].root: There is no folder nope.')
    expect(found[2]).toContain('4:51: mounts["file:///c"].root: hikidashi.json is not a folder.')
  })

  test('is not reported for missing folders if the caller admits them, and the configuration comes with a list of these folders', async () => {
    const text = `{ "mounts": { ${mount}, "file:///b": { "provider": "files", "root": "nope" } } }`
    const { absent, mounts } = await config(text, { admitsAbsent: true })
    expect(Object.keys(mounts)).toEqual(['file:///a', 'file:///b'])
    expect(absent.map(({ address, problem }) => [address, problem.line, problem.column, problem.key])).toEqual([
      ['file:///b', 1, 113, 'mounts["file:///b"].root'],
    ])
    // Beside another fault all are told.
    expect(await problems(text.replace('"nope"', '"nope", "x": 1'), { admitsAbsent: true })).toHaveLength(2)
  })

  test('is reported without the value of a secret', async () => {
    for (const secret of [
      '"hunter2hunter2"',
      '["hunter2"]',
      '{ "value": "hunter2" }',
      '{ "env": "A", "value": "hunter2" }',
    ]) {
      const found = (await problems(`{ "mounts": { ${mount} }, "cursorSecret": ${secret} }`, { env: {} })).join('\n')
      expect(found).toContain('cursorSecret')
      expect(found).not.toContain('hunter2')
    }
  })

  test.each([
    ['{ "env": "NOT_SET" }', 'The environment variable NOT_SET is not set.'],
    ['{ "env": "EMPTY" }', 'The environment variable EMPTY is empty.'],
    ['{ "env": "SHORT" }', 'The secret is shorter than 16 bytes.'],
    ['{ "file": "not-there" }', 'The file not-there cannot be read (ENOENT).'],
    ['{ "file": "docs/secret" }', 'The file with the secret lies in the folder that the mount "file:///a" serves.'],
  ])('is reported for the secret %s', async (secret, message) => {
    await writeFile(join(folder, 'docs', 'secret'), 'x'.repeat(32))
    const found = await problems(`{ "mounts": { ${mount} }, "cursorSecret": ${secret} }`, {
      env: { EMPTY: '', SHORT: 'short' },
    })
    expect(found).toHaveLength(1)
    expect(found[0]).toContain(message)
  })

  test.each([
    ['', '1:1: A value is missing here.'],
    ['{ "mounts": { a: 1 } }', '1:15: This is not a JSON value.'],
    ['{ "mounts": {}', '1:15: An object is not closed.'],
    ['{ "a": "b\n" }', '1:8: A string is not closed.'],
    ['{} {}', '1:4: There is text after the end of the object.'],
    ['[]', '1:1: The value is an array. It must be an object.'],
    ['{ "mounts": {} }', '1:13: mounts: Nothing is mounted.'],
    ['{}', '1:1: mounts: The key is missing.'],
    ['{ "mounts": { "file:///a": [] } }', '1:28: mounts["file:///a"]: The value is an array. It must be an object.'],
    [
      '{ "mounts": { "file:///a": { "root": "." } } }',
      `1:15: mounts["file:///a"].provider: The key is missing. Add it: ${names}.`,
    ],
    [`{ "mounts": { ${mount} }, "__proto__": { "x": 1 } }`, '__proto__: This key is unknown.'],
    [`{ "mounts": { ${mount} }, "http": { "listen": "8787x" } }`, 'http.listen: This is not an address to listen on.'],
    [
      `{ "mounts": { ${mount} }, "http": { "limits": { "sessionIdle": "5" } } }`,
      'sessionIdle: This is not a duration.',
    ],
    [`{ "mounts": { ${mount} }, "http": { "limits": { "body": "5 MB" } } }`, 'body: This is not a size.'],
    [`{ "mounts": { ${mount} }, "http": { "path": "mcp" } }`, 'http.path: This is not the path of an endpoint.'],
  ])('is reported for the text %j', async (text, message) => {
    const found = await problems(text)
    expect(found.join('\n')).toContain(message)
  })

  test.each([
    ['[]', 'access: The list is empty.'],
    ['[{}]', 'access[0]: The rule neither allows nor denies anything.'],
    ['[{ "alow": ["x"] }]', 'access[0].alow: This key is unknown. Did you mean "allow"?'],
    ['[{ "allow": "x" }]', 'access[0].allow: The value is a string. It must be an array.'],
    ['[3]', 'access[0]: This is not an access rule.'],
    ['"reader"', 'access: The value is a string. It must be an array.'],
  ])('is reported for the access rules %s', async (access, message) => {
    const found = await problems(
      `{ "mounts": { "file:///a": { "provider": "files", "root": "docs", "access": ${access} } } }`,
    )
    expect(found.join('\n')).toContain(message)
  })

  test('is reported for a missing file, without a place in it', async () => {
    const result = await loadConfig(join(folder, 'nope.json'))
    expect('problems' in result && result.problems.map(formatConfigProblem)).toEqual([
      `${folder}/nope.json: The file does not exist. Correct the path, or create a configuration with: hikidashi init.`,
    ])
  })
})
