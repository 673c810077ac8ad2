import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { afterAll, describe, expect, test } from 'vitest'
import { ResourceError } from '../../src/core/errors.ts'
import type { Content, Context, Provider } from '../../src/core/provider.ts'
import { createRedactor } from '../../src/secrets/redactor.ts'
import { redactWindow } from '../../src/secrets/window.ts'
import { documents } from '../../src/wrap/documents.ts'
import { redacted } from '../../src/wrap/redacted.ts'
import { sliced } from '../../src/wrap/sliced.ts'
import { memory } from '../support/memory.ts'
import { ranged } from '../support/ranged.ts'
import { leaks, password } from '../support/secrets.ts'
import { someOf } from '../support/volume.ts'

// The forms that secrets are written in: keys as JSON, cells of tables, attributes, and values of YAML over lines.

const context: Context = { principal: { id: 'a', roles: [] }, signal: new AbortController().signal }
const redactor = createRedactor()
afterAll(() => redactor.close())

const bodyOf = (contents: readonly Content[]) =>
  contents.map((content) => ('text' in content ? content.text : '')).join('\n')

const read = async (provider: Provider, path: string, params: Readonly<Record<string, string>> = {}) =>
  bodyOf(await provider.read({ path, params: new Map(Object.entries(params)) }, context))

const shown = async (text: string, path: string) => (await redactWindow({ text, from: 0, final: true }, { path })).text

/** Asserts that no secret leaves a text, whole, as each of its lines, and cut at places that fit nothing. */
async function expectHidden(text: string, path: string, secrets: readonly string[], kept: readonly string[] = []) {
  const whole = await shown(text, path)
  expect(leaks(whole, secrets), `${path}: ${whole}`).toEqual([])
  for (const part of kept) expect(whole, path).toContain(part)
  expect(await shown(whole, path)).toBe(whole)
  const provider = sliced(redacted(ranged({ [path]: text }), { redactor }))
  const lines = whole.split('\n').length
  for (let line = 1; line <= lines; line++)
    expect(leaks(await read(provider, path, { lines: `${line}` }).catch(() => ''), secrets), `line ${line}`).toEqual([])
  for (let at = 7; at < whole.length; at += Math.max(13, Math.ceil(whole.length / 12))) {
    const parts = [await read(provider, path, { bytes: `0-${at}` })]
    parts.push(await read(provider, path, { bytes: `${at}-` }).catch(() => ''))
    expect(leaks(parts.join('\n'), secrets), `cut at ${at}`).toEqual([])
  }
}

const privateNames = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'k']

type Jwk = Readonly<Record<string, string>>

const keys: Readonly<Record<string, Jwk>> = {
  RSA: generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ format: 'jwk' }) as Jwk,
  EC: generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ format: 'jwk' }) as Jwk,
  OKP: generateKeyPairSync('ed25519').privateKey.export({ format: 'jwk' }) as Jwk,
  oct: { kty: 'oct', alg: 'HS256', k: randomBytes(32).toString('base64url') },
  // Twelve letters look like a word, were it not for the `kty`.
  'short oct': { kty: 'oct', k: 'secretsecret' },
}

const isPrivate = (name: string) => privateNames.includes(name)
const entriesOf = (key: Jwk) => Object.entries(key)
const reversed = (key: Jwk): Jwk => Object.fromEntries(entriesOf(key).reverse())

const spellings: readonly (readonly [string, string, (key: Jwk) => string])[] = [
  ['minified', 'a.json', (key) => JSON.stringify(key)],
  ['pretty', 'a.json', (key) => JSON.stringify(key, null, 2)],
  ['in the other order', 'a.json', (key) => JSON.stringify(reversed(key), null, 4)],
  ['in a set', 'a.json', (key) => JSON.stringify({ keys: [key, reversed(key)] }, null, 1)],
  ['in a string', 'a.json', (key) => JSON.stringify({ jwk: JSON.stringify(key) })],
  ['in a string in a string', 'a.json', (key) => JSON.stringify({ a: JSON.stringify({ jwk: JSON.stringify(key) }) })],
  ['pretty, in a string', 'a.json', (key) => JSON.stringify({ jwk: JSON.stringify(key, null, 2) })],
  ['in Markdown', 'a.md', (key) => `The key:\n\n\`\`\`json\n${JSON.stringify(key, null, 2)}\n\`\`\`\n`],
  ['in a log', 'a.log', (key) => `12:00 INFO loaded ${JSON.stringify(key)} in 3 ms\n`],
  [
    'as YAML',
    'a.yaml',
    (key) =>
      `${entriesOf(key)
        .map(([name, text]) => `${name}: ${text}`)
        .join('\n')}\n`,
  ],
  [
    'as a list in YAML',
    'a.yml',
    (key) =>
      `keys:\n  - ${entriesOf(key)
        .map(([name, text]) => `${name}: "${text}"`)
        .join('\n    ')}\n`,
  ],
  [
    'as folded scalars of YAML',
    'a.yaml',
    (key) =>
      `${entriesOf(key)
        .map(([name, text]) => `${name}: >-\n  ${(text.match(/.{1,24}/g) ?? []).join('\n  ')}`)
        .join('\n')}\n`,
  ],
  [
    'as an object of JavaScript',
    'a.ts',
    (key) =>
      `const key = {\n${entriesOf(key)
        .map(([name, text]) => `  ${name}: '${text}',`)
        .join('\n')}\n}\n`,
  ],
  ['in base64', 'a.md', (key) => `jwk ${Buffer.from(JSON.stringify(key)).toString('base64')} there\n`],
]

describe('JSON Web Keys', () => {
  test.each(spellings)('SE25: the private members are taken out %s, in every range', async (spelling, path, write) => {
    for (const key of someOf(spelling, Object.values(keys))) {
      const secrets = entriesOf(key).flatMap(([name, text]) => (isPrivate(name) ? (text.match(/.{1,24}/g) ?? []) : []))
      const text = write(key)
      const open = text.includes(String(key.kty)) ? entriesOf(key).filter(([name]) => !isPrivate(name)) : []
      const kept = open.flatMap(([, value]) => (text.includes(value) ? [value] : []))
      await expectHidden(
        text,
        path,
        secrets.filter((part) => part.length > 8),
        kept,
      )
    }
  })

  test('SE25: other primes are taken out', async () => {
    const [r, d, t] = [1, 2, 3].map(() => randomBytes(32).toString('base64url')) as [string, string, string]
    const key = { kty: 'RSA', n: 'abc', oth: [{ r, d, t }] }
    for (const text of [JSON.stringify(key), JSON.stringify(key, null, 2), JSON.stringify(JSON.stringify(key))])
      await expectHidden(text, 'a.json', [r, d, t], ['abc'])
  })

  test('SE25: a member whose object is out of sight is taken out by its looks', async () => {
    const { d = '' } = keys.EC ?? {}
    expect(await shown(`  "d": "${d}",\n`, 'a.json')).toBe('  "d": "[redacted]",\n')
    for (const text of [
      '{"d": "short", "k": "v", "p": "a-long-slug-of-many-words", "q": "what is it"}\n',
      '<path d="M3h18v18H3V3zm2-2v14h14V5H5z"/><path d="M0 0h24v24H0z"/>\n',
      '{"d": "0123456789abcdef0123456789abcdef01234567", "k": "7f1c6e0a-9d6b-4a0e-8a53-5d7a86c0e4b1"}\n',
    ])
      for (const path of ['a.json', 'a.md', 'a.ts', 'a.html']) expect(await shown(text, path)).toBe(text)
  })

  test('SE25: a child of a directory and a reading as text have none', async () => {
    const key = keys.EC ?? {}
    const text = JSON.stringify(key)
    const html = `<h1>Key</h1><pre>${JSON.stringify(key, null, 2)}</pre>`
    const source = memory({ 'in/a.json': text, 'in/a.html': { text: html, mimeType: 'text/html' } })
    const provider = documents(
      {
        ...source,
        read: async (request, ...rest) =>
          request.path === 'in'
            ? [
                { path: 'in/a.json', text },
                { path: 'in/a.html', text: html },
              ]
            : source.read(request, ...rest),
      },
      { through: (whole) => redacted(whole, { redactor }) },
    )
    for (const [path, params] of [
      ['in', {}],
      ['in/a.html', {}],
      ['in/a.html', { as: 'text' }],
      ['in/a.html', { as: 'markdown' }],
      ['in/a.html', { as: 'text', lines: '2-' }],
    ] as const) {
      const output = await read(provider, path, params)
      expect(output).toContain('[redacted]')
      expect(leaks(output, [key.d ?? ''])).toEqual([])
    }
  })
})

test('a secret whose characters Markdown escapes is removed, also from a reading as Markdown', async () => {
  const token = `ghp_${randomBytes(60).toString('base64').replace(/[+/=]/g, 'x').slice(0, 36)}`
  const provider = documents(memory({ 'a.html': { text: `<p>Use ${token} now</p>`, mimeType: 'text/html' } }), {
    through: (whole) => redacted(whole, { redactor }),
  })
  expect(await read(provider, 'a.html', { as: 'markdown' })).toContain('Use [redacted] now')
  expect(await shown(`Use ${token.replace('_', '\\_')} now\n`, 'a.md')).toBe('Use [redacted] now\n')
})

test('the value after a name of two words is removed', async () => {
  const value = password().planted
  for (const line of ['API key: V', '- **Secret key:** `V`', 'The access key = V', 'Mot de passe : V'])
    await expectHidden(`# Notes\n\n${line.replace('V', value)}\nnext\n`, 'a.md', [value], ['next'])
  for (const line of ['Primary key: id', 'API key: see the page of the operator', 'The key: abc12345'])
    expect(await shown(line, 'a.md')).toBe(line)
})

test('the value after a name in bold is removed, as after the plain name', async () => {
  const value = password().planted
  const lines = ['**Password:** V', '**Password**: V', '*Password*: V', '- __Password:__ V', '> **Token:** `V`']
  for (const line of [...lines, '<b>Password:</b> V', '<strong>Password</strong>: V'])
    await expectHidden(`# Notes\n\n${line.replace('V', value)}\nnext\n`, 'a.md', [value], ['next'])
  const text = `<p><b>Password:</b> ${value}</p>`
  const provider = documents(memory({ 'a.html': { text, mimeType: 'text/html' } }), {
    through: (whole) => redacted(whole, { redactor }),
  })
  for (const params of [{}, { as: 'text' }, { as: 'markdown' }])
    expect(leaks(await read(provider, 'a.html', params), [value])).toEqual([])
})

describe('tables', () => {
  const id = 'AKIAIOSFODNN7EXAMPLE'
  const secret = `wJalr/${randomBytes(60).toString('base64').replace(/[+/=]/g, 'x').slice(0, 34)}`
  const plain = password().planted

  test.each([',', ';', '\t', '|'])('SE26: access keys in a table with %j between cells are taken out', async (sign) => {
    const row = (...cells: readonly string[]) => cells.join(sign)
    const quoted = (...cells: readonly string[]) => cells.map((cell) => `"${cell}"`).join(sign)
    const names = ['User name', 'Password', 'Access key ID', 'Secret access key', 'Console login link']
    const cells = ['alice', plain, id, secret, 'console.example.com']
    for (const text of [
      `${row(...names)}\n${row(...cells)}\n${row(...cells)}\n`,
      `${quoted(...names)}\r\n${quoted(...cells)}\r\n`,
      `${row('Access key ID', 'Secret access key')}\n${row(id, secret)}\n`,
    ])
      for (const path of someOf(`table ${text.slice(0, 40)}`, ['keys/export.csv', 'a.tsv', 'a.txt', 'a.md'], 2))
        await expectHidden(text, path, [plain, id, secret], text.includes('alice') ? ['alice', 'console'] : ['Secret'])
  })

  test('SE26: columns with the name of a secret are taken out, words too', async () => {
    const text =
      'id,login,db_password,apiKey,max_tokens\n1,bob,"correct ""horse""\nbattery",staple,8000\n2,eve,x y z,,4000\n'
    expect(await shown(text, 'a.csv')).toBe(
      'id,login,db_password,apiKey,max_tokens\n1,bob,"[redacted]",[redacted],8000\n2,eve,[redacted],,4000\n',
    )
    expect(await shown('| User | Password |\n|---|---|\n| bob | hunter2x |\n\nnext\n', 'a.md')).toBe(
      '| User | Password |\n|---|---|\n| bob | [redacted] |\n\nnext\n',
    )
  })

  test('SE26: a row far from the names of its columns is hidden as well, and one without them by its id', async () => {
    const row = (i: number) => `${i},user${i},staplehorse\n`
    const text = `id,login,password\n${Array.from({ length: 50_000 }, (_, i) => row(i)).join('')}`
    const provider = redacted(ranged({ 'a.csv': text }), { redactor })
    const whole = await read(provider, 'a.csv')
    expect(whole).not.toContain('staplehorse')
    const end = Buffer.byteLength(whole)
    const range = { start: end - 500, end }
    const ask = { path: 'a.csv', params: new Map(), range }
    expect(bodyOf(await provider.read(ask, context))).toBe(whole.slice(-500))
    expect(leaks(await shown(`alice,${id},${secret}\n`, 'a.txt'), [id, secret])).toEqual([])
    expect(leaks(await shown(`${secret};${id}\n`, 'a.md'), [id, secret])).toEqual([])
  })

  test('SE26: sentences and rows of code are no tables', async () => {
    for (const text of [
      'Enter your name, password\nand address, please.\n',
      'user, password, host\nare the names, in order, of it\n',
      'call(user, password)\ncall(host, port5432)\n',
    ])
      for (const path of ['a.md', 'a.txt', 'a.py']) expect(await shown(text, path)).toBe(text)
  })
})

describe('attributes', () => {
  const plain = password().planted
  test.each([
    `<input name="password" value="${plain}">`,
    `<input type="password" class="wide" autocomplete="off" value="${plain}">`,
    `<input value="${plain}" name="password">`,
    `<input value=${plain} type=password>`,
    `<INPUT\n  NAME='api_token'\n  VALUE='${plain}'\n/>`,
    `<div data-api-key="${plain}"></div>`,
    `<add key="ApiKey" value="${plain}"/>`,
    `<add value="${plain}" key="ApiKey"/>`,
    `<meta name="api-key" content="${plain}">`,
    `<meta content="${plain}" name="api-key">`,
    `<property name="db.password" type="string" value="${plain}"/>`,
    `<user login="bob" password="${plain}"/>`,
    `&lt;input type=&quot;password&quot; value=&quot;${plain}&quot;&gt;`,
  ])('SE27: the secret of %s is taken out', async (element) => {
    for (const path of someOf(element.replaceAll(plain, ''), ['a.html', 'a.xml', 'a.md', 'a.config'], 2))
      await expectHidden(`<p>\n${element}\n<b>shown</b>\n`, path, [plain], ['shown'])
  })

  test('SE27: attributes of other elements stay', async () => {
    const text =
      '<input name="city" value="Kyoto-2024"><meta name="author" content="Bob7 Smith"><a id="key" value="x1y2">\n'
    for (const path of ['a.html', 'a.xml']) expect(await shown(text, path)).toBe(text)
  })
})

describe('values of YAML over lines', () => {
  const [first, second, third] = [1, 2, 3].map(() => password().planted) as [string, string, string]
  test.each<[string, string]>([
    ['folded', `>\n    ${first}\n    ${second}\n\n    ${third}`],
    ['folded, with a comment', `>- # ${'why '.repeat(40)}\n    ${first}\n    ${second}\n    ${third}`],
    ['literal', `|\n    ${first}\n    ${second}\n\n    ${third}`],
    ['literal with an indent', `|2+\n    ${first}\n      ${second}\n    ${third}`],
    ['plain', `${first}\n    ${second}\n\n    ${third}`],
    ['plain, below', `\n    ${first}\n    ${second}\n    ${third}`],
    ['plain, below a tag', `!!str\n    ${first}\n    ${second}\n    ${third}`],
    ['in double quotes', `"${first}\n    ${second} \\\n\n    ${third}"`],
    ['in double quotes, below', `\n    "${first}\n    ${second}\n    ${third}"`],
    ['in single quotes', `'${first}\n    it''s ${second}\n    ${third}'`],
    ['in single quotes on one line', `'${first}''${second}''${third}'`],
    ['a list', `\n    - ${first}\n      ${second}\n    - ${third}`],
  ])('SE28: %s, is taken out in every range', async (name, value) => {
    for (const head of someOf(name, ['db_password: ', '  apiKey: ', '- token: ', '"clientSecret": '], 2))
      for (const path of someOf(head + name, ['a.yaml', 'values.yml'])) {
        const after = head.startsWith('-') ? '- host: db\n' : `${/^ */.exec(head)?.[0]}host: db\n`
        await expectHidden(`x: 1\n${head}${value}\n${after}y: 2\n`, path, [first, second, third], ['host: db', 'y: 2'])
      }
  })

  test('SE28: what follows the value stays', async () => {
    expect(await shown('password: a7b8c9\n  d7e8f9\nhost: db\n', 'a.yaml')).toBe('password: [redacted]\nhost: db\n')
    expect(await shown('password: a7b8c9\n# a comment\n  x: shown\n', 'a.yaml')).toBe(
      'password: [redacted]\n# a comment\n  x: shown\n',
    )
    expect(await shown('password: "a7b8c9\nhost: "db"\n', 'a.yaml')).toBe('password: "[redacted]\nhost: "db"\n')
  })
})

test('SE22: the end of a table hides the columns that the whole table hides', async () => {
  const { planted: secret } = password()
  const rows = Array.from({ length: 3000 }, (_, i) => `u${i},${secret},n${i}\n`).join('')
  const provider = documents(ranged({ 'users.csv': `user,password,note\n${rows}` }), {
    through: (whole) => redacted(whole, { redactor }),
  })
  for (const tail of ['1', '2', '2999', '3000', '3001', '100000']) {
    const text = await read(provider, 'users.csv', { tail })
    expect(leaks(text, [secret]), tail).toEqual([])
    expect(text.split('\n')).toHaveLength(Math.min(Number(tail), 3001) + 1)
    expect(text.startsWith('user,')).toBe(Number(tail) > 3000)
    expect(text.endsWith('u2999,[redacted],n2999\n')).toBe(true)
  }
})

test('SE22: a file that is withheld shows no end without a secret', async () => {
  const { planted: secret } = password()
  const text = `password=${secret}\n${'a plain line\n'.repeat(3000)}`
  for (const make of [memory, ranged]) {
    const through = (whole: Provider) => redacted(whole, { redactor, mode: 'withhold' })
    const provider = documents(make({ 'a.log': text, 'b.log': 'one\ntwo\n' }), { through })
    const whole = await read(provider, 'a.log')
    expect(whole).toContain('withheld')
    expect(await read(provider, 'a.log', { tail: '2' })).toBe(whole)
    expect(await read(provider, 'a.log', { lines: '2000-2001' }).catch(() => '')).not.toContain('plain')
    expect(await read(provider, 'b.log', { tail: '1' })).toBe('two\n')
  }
})

test('SE22: a part of a file that is too large to be searched as a whole is refused with the reason', async () => {
  const tooLarge: Provider = {
    ...memory({ 'a.log': 'one' }),
    read: async () => {
      throw new ResourceError('too-large', 'Ask for a part of it.', { size: 5e9 })
    },
  }
  const through = (mode: 'mask' | 'withhold') =>
    documents(tooLarge, { through: (whole) => redacted(whole, { redactor, mode }) })
  for (const params of [{ tail: '2' }, { lines: '1-2' }, { bytes: '0-9' }])
    await expect(read(through('withhold'), 'a.log', params)).rejects.toMatchObject({
      kind: 'too-large',
      message: expect.stringContaining('is searched for secrets as a whole'),
      detail: { size: 5e9, reason: 'secret' },
    })
  await expect(read(through('mask'), 'a.log')).rejects.toThrow('Ask for a part of it.')
})

describe('SE22: a file in a patch and in a blame hides the same secrets', () => {
  const { planted: secret } = password()
  const files: Readonly<Record<string, string>> = {
    'users.csv': `user,password\nu1,${secret}\nu2,${secret}\n`,
    'table.md': `| user | password |\n|---|---|\n| u1 | ${secret} |\n`,
    'secret.yaml': `apiVersion: v1\nkind: Secret\nstringData:\n  abc: ${secret}\n`,
    'folded.yaml': `auth:\n  password: >-\n    ${secret}\n    ${secret}\nother: 1\n`,
    'pair.yaml': `env:\n  - name: DB_PASSWORD\n    value: ${secret}\n`,
    'next.json': `{\n  "password":\n    "${secret}"\n}\n`,
    'next.properties': `db.password=\\\n   ${secret}\n`,
    'headers.http': `Authorization: Bearer\n ${secret}\n`,
    'one.ini': `password=${secret}\n`,
  }
  const numbered = (text: string) =>
    text.replace(/\n$/, '').replace(
      /^/gm,
      (() => {
        let line = 0
        return () => `${String(++line).padStart(6)}  `
      })(),
    )
  const patchOf = (file: string, text: string) =>
    `diff --git a/${file} b/${file}\n--- a/${file}\n+++ b/${file}\n${text}`
  const forms: Readonly<Record<string, (file: string, text: string) => string>> = {
    'commits/0123456789ab': (file, text) => patchOf(file, `@@ -0,0 +1,9 @@\n${text.replace(/^(?=.)/gm, '+')}`),
    'diff/a/b': (file, text) => patchOf(file, `@@ -1,9 +1 @@ heading\n${text.replace(/^(?=.)/gm, '-')}`),
    'blame/HEAD/': (file, text) =>
      `Blame of ${file} at HEAD (0123456789ab).\n0123456789ab 2026-11-27 a: first\n${numbered(text)}\n`,
    'blame/main/': (file, text) =>
      `Blame of ${file} at main (0123456789ab).\n0123456789ab 2026-11-27 a: first\n${numbered(text).replace(/\n(?=.*$)/, '\n1123456789ab 2026-11-28 b: second\n')}\n`,
  }
  test.each(Object.entries(files))('%s', async (file, text) => {
    expect(leaks(await shown(text, file), [secret])).toEqual([])
    for (const [path, make] of Object.entries(forms))
      await expectHidden(make(file, text), path.endsWith('/') ? path + file : path, [secret])
  })
})

test.each<[string, string]>([
  ['members', '"d":"'.repeat(100_000)],
  ['members without a value', 'd: '.repeat(150_000)],
  ['kinds', '{"kty":"d":'.repeat(45_000)],
  ['braces', '{'.repeat(500_000)],
  ['folded members', 'd: >\n a\n'.repeat(60_000)],
  ['quotes in a table', `a,password\n${'"a,'.repeat(160_000)}`],
  ['names of columns', 'a,password\n'.repeat(45_000)],
  ['access key ids', 'AKIAIOSFODNN7EXAMPLE,'.repeat(24_000)],
  ['tags', '<input type="password" '.repeat(22_000)],
  ['attributes', `<input ${'type="password" value="x7y8z9" '.repeat(16_000)}`],
  ['open attributes', `<input ${'value="'.repeat(70_000)}`],
  ['scalars without end', 'password: "a\n  b\n'.repeat(30_000)],
  ['lines of a scalar', `password: a7b8\n${'  b\n'.repeat(120_000)}`],
  ['names below names', 'password:\n  password:\n'.repeat(22_000)],
])('SE22: %s without end are gone through in time', async (name, text) => {
  for (const path of someOf(name, ['a.yaml', 'a.csv', 'a.html']))
    expect(await read(redacted(memory({ [path]: text }), { redactor }), path)).not.toContain('withheld')
})
