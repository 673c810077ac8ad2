import { createHash, generateKeyPairSync, type KeyObject, randomBytes } from 'node:crypto'
import { afterAll, describe, expect, test } from 'vitest'
import { ResourceError } from '../../src/core/errors.ts'
import type { Content, Context, Provider } from '../../src/core/provider.ts'
import { createRedactor, type Redactor } from '../../src/secrets/redactor.ts'
import { redactWindow } from '../../src/secrets/window.ts'
import { documents } from '../../src/wrap/documents.ts'
import { redacted } from '../../src/wrap/redacted.ts'
import { sliced } from '../../src/wrap/sliced.ts'
import { memory } from '../support/memory.ts'
import { ranged } from '../support/ranged.ts'
import { leaks, password } from '../support/secrets.ts'
import { someOf, volume } from '../support/volume.ts'

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

describe('JSON Web Keys:', () => {
  test.each(spellings)(
    'private members of a key written %s are redacted, in every range (SE25)',
    async (spelling, path, write) => {
      for (const key of someOf(spelling, Object.values(keys))) {
        const secrets = entriesOf(key).flatMap(([name, text]) =>
          isPrivate(name) ? (text.match(/.{1,24}/g) ?? []) : [],
        )
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
    },
  )

  test('the additional primes of an RSA key are redacted (SE25)', async () => {
    const [r, d, t] = [1, 2, 3].map(() => randomBytes(32).toString('base64url')) as [string, string, string]
    const key = { kty: 'RSA', n: 'abc', oth: [{ r, d, t }] }
    for (const text of [JSON.stringify(key), JSON.stringify(key, null, 2), JSON.stringify(JSON.stringify(key))])
      await expectHidden(text, 'a.json', [r, d, t], ['abc'])
  })

  test('a private member without the rest of its key is redacted by the form of its value, and other values of members with its name are unchanged (SE25)', async () => {
    const { d = '' } = keys.EC ?? {}
    expect(await shown(`  "d": "${d}",\n`, 'a.json')).toBe('  "d": "[redacted]",\n')
    for (const text of [
      '{"d": "short", "k": "v", "p": "a-long-slug-of-many-words", "q": "what is it"}\n',
      '<path d="M3h18v18H3V3zm2-2v14h14V5H5z"/><path d="M0 0h24v24H0z"/>\n',
      '{"d": "0123456789abcdef0123456789abcdef01234567", "k": "7f1c6e0a-9d6b-4a0e-8a53-5d7a86c0e4b1"}\n',
    ])
      for (const path of ['a.json', 'a.md', 'a.ts', 'a.html']) expect(await shown(text, path)).toBe(text)
  })

  test('a read of a directory, and HTML as it is, as text and as Markdown, show no private member (SE25)', async () => {
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

test('a secret whose characters Markdown escapes is redacted, also in HTML that is read as Markdown', async () => {
  const token = `ghp_${randomBytes(60).toString('base64').replace(/[+/=]/g, 'x').slice(0, 36)}`
  const provider = documents(memory({ 'a.html': { text: `<p>Use ${token} now</p>`, mimeType: 'text/html' } }), {
    through: (whole) => redacted(whole, { redactor }),
  })
  expect(await read(provider, 'a.html', { as: 'markdown' })).toContain('Use [redacted] now')
  expect(await shown(`Use ${token.replace('_', '\\_')} now\n`, 'a.md')).toBe('Use [redacted] now\n')
})

test('the secret value after a name of two words is redacted', async () => {
  const value = password().planted
  for (const line of ['API key: V', '- **Secret key:** `V`', 'The access key = V', 'Mot de passe : V'])
    await expectHidden(`# Notes\n\n${line.replace('V', value)}\nnext\n`, 'a.md', [value], ['next'])
  for (const line of ['Primary key: id', 'API key: see the page of the operator', 'The key: abc12345'])
    expect(await shown(line, 'a.md')).toBe(line)
})

test('the secret value after a name in bold is redacted, as after the plain name', async () => {
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

describe('secrets in tables:', () => {
  const id = 'AKIAIOSFODNN7EXAMPLE'
  const secret = `wJalr/${randomBytes(60).toString('base64').replace(/[+/=]/g, 'x').slice(0, 34)}`
  const plain = password().planted

  test.each([',', ';', '\t', '|'])('access keys in a table with %j between cells are redacted (SE26)', async (sign) => {
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

  test('columns with the name of a secret are redacted, also if they hold words (SE26)', async () => {
    const text =
      'id,login,db_password,apiKey,max_tokens\n1,bob,"correct ""horse""\nbattery",staple,8000\n2,eve,x y z,,4000\n'
    expect(await shown(text, 'a.csv')).toBe(
      'id,login,db_password,apiKey,max_tokens\n1,bob,"[redacted]",[redacted],8000\n2,eve,[redacted],,4000\n',
    )
    expect(await shown('| User | Password |\n|---|---|\n| bob | hunter2x |\n\nnext\n', 'a.md')).toBe(
      '| User | Password |\n|---|---|\n| bob | [redacted] |\n\nnext\n',
    )
  })

  test('a row far from the header is redacted as well, and a row without a header by the access key id in it (SE26)', async () => {
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

  test('sentences and rows of code are not treated as tables (SE26)', async () => {
    for (const text of [
      'Enter your name, password\nand address, please.\n',
      'user, password, host\nare the names, in order, of it\n',
      'call(user, password)\ncall(host, port5432)\n',
    ])
      for (const path of ['a.md', 'a.txt', 'a.py']) expect(await shown(text, path)).toBe(text)
  })
})

describe('secrets in tables of every kind:', () => {
  // Passwords that sound like the name of a secret, and one that is a word.
  const [first, second, third, word] = ['Passw0rd!2024', 'MyPassword99', 'Secret123!', 'hunterhorse'] as const
  const all = [first, second, third]
  const rows = (sign: string) =>
    ['user', 'password', 'note'].join(sign) +
    [first, second, third].map((value, at) => `\nu${at}${sign}${value}${sign}n${at}`).join('')

  test.each<[string, string, readonly string[]]>([
    ...[',', ';', '\t', '|'].map((sign): [string, string, readonly string[]] => ['a.csv', rows(sign), all]),
    ['a.txt', rows(','), all],
    ['a.md', `\`\`\`csv\n${rows(',')}\n\`\`\`\n`, all],
    ['a.csv', `password\n${first}\n${second}\n`, [first, second]],
    ['a.csv', `sep=;\nuser;password\na;${first}\nb;${second}\n`, [first, second]],
    ['a.csv', `# all users\nuser,password\na,${first}\nb,${word}\n`, [first, word]],
    [
      'a.csv',
      `"User\nname","Password\n(initial)"\na,${first}\nb,"${second}\nstaple-line"\n`,
      [first, second, 'staple'],
    ],
    ['a.csv', `,Login,\nname,user,password\na,b,${first}\nc,d,${second}\n`, [first, second]],
    ['a.csv', `user,password\na,${first}\n\nb,${second}\n\n${third},${word}\n`, [first, second, word]],
    ['a.csv', `user,password\na,${first},more\nb,${second}\n`, [first, second]],
    ['a.csv', `key,value\nhost,db\npassword,${word}\n`, [word]],
    [
      'a.md',
      `| User | Password |\n|:--|--:|\n| a | ${first} |\n| b | \`${word}\` |\n| c | correct horse battery |\n`,
      [first, word, 'horse battery'],
    ],
    ['a.md', `| **User** | **Password** |\n|---|---|\n| a | ${second} |\n`, [second]],
    ['a.md', `User | Password\n--- | ---\na | ${second}\nb | ${word}\n`, [second, word]],
    ['a.md', `| User | Password |\n|---|---|\n| a\\|b | ${second} |\n`, [second]],
    ['a.md', `> | User | Password |\n> |---|---|\n> | a | ${second} |\n`, [second]],
    ['a.md', `| Setting | Value |\n|---|---|\n| host | db |\n| password | ${second} |\n`, [second]],
    ['a.md', `||User||Password||\n|a|${second}|\n`, [second]],
    ['a.org', `| user | password |\n|------+----------|\n| a | ${first} |\n| b | ${word} |\n`, [first, word]],
    ['a.rst', `+---+----------+\n| u | password |\n+===+==========+\n| a | ${first} |\n+---+----------+\n`, [first]],
    [
      'a.rst',
      `==== ==========\nuser password\n==== ==========\na    ${second}\nb    ${word}\n==== ==========\n`,
      [second, word],
    ],
    [
      'a.rst',
      `.. list-table:: x\n   :header-rows: 1\n\n   * - User\n     - Password\n   * - a\n     - ${first}\n`,
      [first],
    ],
    [
      'a.rst',
      `.. csv-table:: x\n   :header: "user", "password"\n\n   "a", "${first}"\n   "b", "${second}"\n`,
      [first, second],
    ],
    ['a.adoc', `|===\n|user |password\n\n|a |${first}\n|b\n|${word}\n|===\n`, [first, word]],
    [
      'a.adoc',
      `[cols="1,2", options="header"]\n|===\n|user\n|password\n\n|a\n|${first}\n\n|b\n|${second}\n|===\n`,
      [first, second],
    ],
    [
      'a.txt',
      `+------+----------+\n| user | password |\n+------+----------+\n| a    | ${first} |\n+------+----------+\n`,
      [first],
    ],
    ['a.txt', ` user | password \n------+----------\n a    | ${second}\n(1 row)\n`, [second]],
    ['a.txt', `Name  Password\n----  --------\na     ${first}\nb     ${second}\n`, [first, second]],
    [
      'a.html',
      `<table><tr><th>User</th><th>Password</th></tr><tr><td>a</td><td>${first}</td></tr><tr><td>c<td>${word}</table>`,
      [first, word],
    ],
    [
      'a.html',
      `<table>\n<thead><tr>\n<th colspan="2">User</th>\n<th><b>Password</b></th></tr></thead>\n<tr><td>a</td><td>b</td><td><code>${second}</code></td></tr></table>`,
      [second],
    ],
    ['a.html', `<table><tr><td>User</td><td>Password</td></tr>\n<tr><td>a</td><td>${word}</td></tr></table>`, [word]],
    ['a.html', `<table><tr><th>User</th><td>a</td></tr><tr><th>Password</th><td>${second}</td></tr></table>`, [second]],
    ['a.html', `<table><tr><td>Password:</td><td>${second}</td></tr></table>`, [second]],
    ['a.html', `<dl><dt>User</dt><dd>a</dd><dt>Password</dt><dd>${second}</dd></dl>`, [second]],
    [
      'a.sql',
      `INSERT INTO \`u\` (\`id\`, \`password\`, \`n\`) VALUES\n(1, '${word}', 'x'),\n(2, 'it''s ${second}', 'a,b (c)'),\n(3, NULL, 'x');`,
      [word, second],
    ],
    ['a.py', `cur.execute("INSERT INTO users (name, password) VALUES ('bob', '${word}')")`, [word]],
    ['a.sql', `insert into users (name, password) values ('bob', crypt('${second}', gen_salt('bf')));`, [second]],
    [
      'a.sql',
      `COPY public.users (id, name, password) FROM stdin;\n1\tbob\t${word}\n2\tx\t${second}\n\\.\n`,
      [word, second],
    ],
  ])('in %s, every cell below or beside the name of a secret is redacted: %j (SE26)', async (path, text, secrets) => {
    const output = await shown(text, path)
    for (const secret of secrets) expect(output).not.toContain(secret)
    expect(await shown(output, path)).toBe(output)
  })

  test('the end of a table hides what the whole table hides, whatever precedes its header (SE26)', async () => {
    for (const head of ['# users\nuser,password', '"User\nname","Password\n(initial)"', 'sep=,\nuser,password']) {
      const text = `${head}\n${Array.from({ length: 3000 }, (_, i) => `u${i},${second}`).join('\n')}\n`
      const provider = documents(ranged({ 'a.csv': text }), { through: (whole) => redacted(whole, { redactor }) })
      expect(await read(provider, 'a.csv', { tail: '2' })).toBe('u2998,[redacted]\nu2999,[redacted]\n')
    }
  })

  test('tables without secrets are unchanged (SE26)', async () => {
    for (const [path, text] of [
      [
        'a.md',
        '| Key | Type | Default | |\n|---|---|---|---|\n| `cursorSecret` | object | none | The secret of cursors |\n',
      ],
      ['a.md', '| secret | to replace it |\n|---|---|\n| keys of a server | they are fetched |\n'],
      ['a.md', '| host | a token in the header |\n|---|---|\n| Zed | not possible |\n'],
      ['a.md', '| Model | Max tokens | Password |\n|---|---|---|\n| a | 8000 | ✓ |\n| b | 4000 | — |\n'],
      ['a.csv', 'id,title,state\n1,Password reset,open\n2,MyPassword99 is shown,done\n'],
      ['a.json', '{\n  "secretlint": "13.0.7",\n  "json5": "^2.2.3",\n  "a": "b"\n}\n'],
      ['a.sh', 'cat token | grep a\nls | wc -l\n'],
      [
        'a.html',
        '<table><tr><td>token</td><td>string</td></tr></table><dl><dt>token</dt><dd>The token to use.</dd></dl>',
      ],
      ['a.sql', 'INSERT INTO users (name, password) VALUES (?, ?), ($1, :password), (NULL, DEFAULT);\n'],
    ] as const)
      expect(await shown(text, path), path).toBe(text)
  })
})

describe('private keys without a PEM frame:', () => {
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const ec = (namedCurve: string) => generateKeyPairSync('ec', { namedCurve }).privateKey
  const der = (key: KeyObject, type: 'pkcs1' | 'pkcs8' | 'sec1') => key.export({ type: type as 'pkcs8', format: 'der' })
  const integer = (bytes: readonly number[]) => Buffer.from([0x02, bytes.length, ...bytes])
  /** The beginning of a PKCS #12, as openssl and Windows write it, with bytes of no meaning behind it. */
  const pkcs12 = (length: readonly number[]) =>
    Buffer.concat([
      ...[Buffer.from([0x30, ...length]), integer([3]), Buffer.from([0x30, 0x82, 0x09, 0xc0])],
      ...[Buffer.from('06092a864886f70d010701a0820900', 'hex'), randomBytes(600)],
    ])
  const stores: readonly (readonly [string, Buffer])[] = [
    ['PKCS #8', der(privateKey, 'pkcs8')],
    ['PKCS #1', der(privateKey, 'pkcs1')],
    ['SEC 1', der(ec('P-256'), 'sec1')],
    ['SEC 1 with 384 bits', der(ec('secp384r1'), 'sec1')],
    ['SEC 1 with 521 bits', der(ec('secp521r1'), 'sec1')],
    ['Ed25519', der(generateKeyPairSync('ed25519').privateKey, 'pkcs8')],
    ['encrypted PKCS #8', privateKey.export({ type: 'pkcs8', format: 'der', cipher: 'aes-256-cbc', passphrase: 'x' })],
    ['PKCS #12', pkcs12([0x82, 0x0a, 0x00])],
    ['PKCS #12 of Java', pkcs12([0x80])],
    ['JKS', Buffer.concat([Buffer.from('feedfeed00000002', 'hex'), randomBytes(300)])],
  ]
  test.each(stores)(
    'a key as %s is redacted, in base64, wrapped base64, base64url and hexadecimal (SE25)',
    async (_, bytes) => {
      const base64 = bytes.toString('base64')
      const lines = (width: number) => base64.match(new RegExp(`.{1,${width}}`, 'g'))?.join('\n') ?? ''
      for (const text of [base64, lines(64), lines(24), lines(20), bytes.toString('base64url'), bytes.toString('hex')])
        for (const [path, whole] of [
          ['a.txt', `key:\n${text}\n\nthe end\n`],
          ['a.json', JSON.stringify({ cert: text })],
          ['a.cs', `var x = "${text}";`],
          ['a.xml', `<cert>${text}</cert>`],
        ] as const) {
          const pieces = text.split('\n').filter((line) => line.length > 15)
          expect(
            leaks(
              await shown(whole, path),
              pieces.map((piece) => piece.slice(-200)),
            ),
            path,
          ).toEqual([])
        }
      expect(await read(redacted(memory({ 'a.bin': { bytes } }), { redactor }), 'a.bin')).toContain('withheld')
    },
  )

  test('public keys, certificate requests and other DER are unchanged (SE25)', async () => {
    const bytes = [
      publicKey.export({ type: 'spki', format: 'der' }),
      publicKey.export({ type: 'pkcs1', format: 'der' }),
      Buffer.concat([Buffer.from('3082030a308201f2a003020102', 'hex'), createHash('sha512').update('x').digest()]),
      Buffer.from('308006092a864886f70d010702a080', 'hex'),
    ]
    for (const one of bytes)
      for (const text of [`key ${one.toString('base64')} there\n`, `key ${one.toString('hex')} there\n`])
        expect(await shown(text, 'a.txt')).toBe(text)
  })

  const jwk = privateKey.export({ format: 'jwk' }) as Jwk
  const in64 = (name: string) => Buffer.from(jwk[name] ?? '', 'base64url').toString('base64')
  const members = { P: 'p', Q: 'q', DP: 'dp', DQ: 'dq', InverseQ: 'qi', D: 'd' }
  const xml = (gap: string, prefix = '') =>
    [
      `<${prefix}RSAKeyValue>`,
      `<${prefix}Modulus>${in64('n')}</${prefix}Modulus>`,
      `<${prefix}Exponent>AQAB</${prefix}Exponent>`,
    ]
      .concat(Object.entries(members).map(([name, of]) => `<${prefix}${name}>${in64(of)}</${prefix}${name}>`))
      .concat(`</${prefix}RSAKeyValue>`)
      .join(gap)
  test.each<[string, string]>([
    ['a.xml', xml('')],
    ['a.config', xml('\n  ')],
    ['a.cs', `var key = @"${xml('\n')}";`],
    ['a.xml', xml('', 'ds:')],
    ['a.xml', xml('').replaceAll('<', '&lt;').replaceAll('>', '&gt;')],
    ['a.json', JSON.stringify({ key: xml('\n') })],
    ['a.txt', xml('\n').split('\n').slice(3).join('\n')],
    [
      'tempkey.rsa',
      JSON.stringify({ Parameters: { Modulus: in64('n'), D: in64('d'), P: in64('p'), InverseQ: in64('qi') } }),
    ],
  ])('the private members of a key of .NET are redacted in %s: %.60s (SE25)', async (path, text) => {
    const output = await shown(text, path)
    expect(leaks(output, Object.values(members).map(in64))).toEqual([])
    if (text.includes(in64('n'))) expect(output).toContain(in64('n'))
  })

  test('of a DSAKeyValue, only the private member is redacted (SE25)', async () => {
    const text = `<DSAKeyValue><P>${in64('p')}</P><Q>${in64('q')}</Q><X>${in64('d')}</X></DSAKeyValue>`
    expect(await shown(text, 'a.xml')).toBe(text.replace(in64('d'), '[redacted]'))
  })

  test('the private lines of a key of PuTTY are redacted (SE25)', async () => {
    const line = randomBytes(48).toString('base64')
    const text = `PuTTY-User-Key-File-3: ssh-rsa\nPublic-Lines: 1\nAAAAB3Nz\nPrivate-Lines: 1\n${line}\nPrivate-MAC: ${'0a'.repeat(20)}\n`
    expect(leaks(await shown(text, 'a.txt'), [line])).toEqual([])
  })
})

describe('secrets in code, settings and prose:', () => {
  const { planted: value } = password()
  const word = 'hunterhorse'
  test.each<[string, string, readonly string[]]>([
    ['a.go', `sql.Open("mysql", "app:${word}@tcp(db.example.net:3306)/shop")`, [word]],
    ['a.txt', `DSN=root:p@ss/${value}:x@unix(/tmp/mysql.sock)/shop`, [value]],
    ['a.go', `sql.Open("mysql", "root:${value}@/shop")`, [value]],
    ['a.sh', `sqlplus scott/${value}@db:1521/xe`, [value]],
    ['a.properties', `url=jdbc:oracle:thin:scott/${value}@//db:1521/xe`, [value]],
    ['a.properties', `url=jdbc:oracle:oci:scott/${value}@(DESCRIPTION=(ADDRESS=(HOST=db)))`, [value]],
    ['a.sh', `sqlplus scott/${value}@//[::1]:1521/xe`, [value]],
    ['a.go', `"app:${value}~@tcp([::1]:3306)/shop"`, [value]],
    ['a.txt', `proxy ${'app'}:${value}@db.example.net:8080`, [value]],
    ['a.py', `"DRIVER={ODBC Driver 18};SERVER=db;UID=sa;PWD={${value};x}"`, [value]],
    ['a.txt', `Driver={SQL Server};Server=db;Uid=app;Pwd={ab;c}}${value};x};Encrypt=yes`, [value]],
    ['a.txt', `Server=db;Uid=app;Pwd={${value}};`, [value]],
    ['a.txt', 'Driver={SQL Server};Server=db;Uid=app;Pwd={horsebattery}', ['horsebattery']],
    ['a.ini', 'c = Server=db;Uid=app;Driver={ODBC Driver 18 for SQL Server};PWD={horsebattery};', ['horsebattery']],
    ['a.cs', `var s = "Server=db;User Id=sa;Password=${word};Pooling=true";`, [word]],
    ['a.cs', `var s = "Server=db;User Id=sa;Password='${value};x';Pooling=true";`, [value]],
    ['a.go', `dsn := "host=localhost user=gorm password=${word} dbname=gorm"`, [word]],
    ['a.plist', `<key>Password</key>\n\t<string>${word}</string>`, [word]],
    [
      'a.plist',
      `<key>Passwords</key>\n<array>\n<string>${value}</string>\n<string>${word}</string>\n</array>`,
      [value, word],
    ],
    [
      'a.xml',
      `<property>\n<name>db.password</name>\n<description>x</description>\n<value>${word}</value>\n</property>`,
      [word],
    ],
    ['a.resx', `<data name="DbPassword" xml:space="preserve">\n    <value>${word}</value>\n  </data>`, [word]],
    ['a.tf', `password = <<-EOT\n    ${word}\n    ${value}\n  EOT\n`, [word, value]],
    ['a.sh', `PASSWORD=$(cat <<'EOF'\n${value}\nEOF\n)\n`, [value]],
    ['a.tf', `variable "db_password" {\n  type = string\n  default = "${word}"\n}\n`, [word]],
    ['a.http', `--b\r\nContent-Disposition: form-data; name="password"\r\n\r\n${word}\r\n--b--\r\n`, [word]],
    [
      'a.txt',
      `--b\nContent-Disposition: form-data; name="api_key"; filename="x"\nContent-Type: text/plain\n\n${word}\n${value}\n--b--\n`,
      [word, value],
    ],
    ['a.yaml', `env:\n  - name: DB_PASSWORD # why\n    # a comment: here\n    value: ${word}\n`, [word]],
    ['a.jsonc', `{"name":"DB_PASSWORD", // x\n /* y */ "value":"${word}"}`, [word]],
    ['a.json', JSON.stringify({ name: 'DB_PASSWORD', type: 'string', value: word }, null, 2), [word]],
    ['a.json', JSON.stringify({ ParameterKey: 'DBPassword', ParameterValue: word }), [word]],
    ['a.yaml', `kind: "Secret" # x\nstringData:\n  greeting: ${word}\n`, [word]],
    ['a.yml', `environment:\n  - PASSWORD=${word}\n  - "API_TOKEN=${value}"\n`, [word, value]],
    ['a.ps1', `ConvertTo-SecureString "${value}" -AsPlainText -Force\n$env:API_TOKEN = '${word}'\n`, [value, word]],
    ['a.bat', `@set PASSWORD=${word}\nset "API_TOKEN=${value}"\nsetx DB_PASSWORD ${word}2\n`, [word, value]],
    ['a.cs', `public string Password { get; set; } = "${word}";`, [word]],
    ['a.vb', `Dim password As String = "${word}"`, [word]],
    ['a.rs', `const API_KEY: &'static str = "${word}";`, [word]],
    ['a.fish', `set -gx DB_PASSWORD ${word}\n`, [word]],
    ['redis.conf', `requirepass ${word}\n`, [word]],
    ['a.sh', `docker login -u bob -p ${value} registry.example.net\n`, [value]],
    ['a.md', `My password is: ${value}\n`, [value]],
  ])('in %s, the secret of %j is redacted (SE04)', async (path, text, secrets) => {
    const output = await shown(text, path)
    for (const secret of secrets) expect(output).not.toContain(secret)
    expect(await shown(output, path)).toBe(output)
  })

  test('placeholders, and other texts of these forms, are unchanged (SE04)', async () => {
    for (const [path, text] of [
      ['a.ts', 'const source = `host=h user=u password=${password} dbname=x`'],
      ['a.py', 'dsn = f"Server=db;UID=sa;PWD={password};Encrypt=yes"'],
      ['a.md', 'Use `Server=db;User Id=sa;Password=<password>;` here, or user@example.com:8080.'],
      ['a.yaml', '- name: LOG_LEVEL\n  # a password is not needed\n  value: debug\n'],
      ['a.plist', '<key>Name</key>\n<string>Password manager</string>\n'],
      ['a.ts', "const all = { ...session, 'MCP-Protocol-Version': version }"],
      ['a.md', 'The password is kept in the vault.'],
    ] as const)
      expect(await shown(text, path), path).toBe(text)
  })
})

describe('encoded secrets', () => {
  const token = `ghp_${randomBytes(60).toString('base64').replace(/[+/=]/g, 'x').slice(0, 36)}`
  const percent = [...token].map((c) => `%${c.charCodeAt(0).toString(16)}`).join('')
  test.each([1, 2, 3])('are redacted if they are percent-encoded %i times (SE06)', async (times) => {
    const text = percent.replaceAll('%', `%${'25'.repeat(times - 1)}`)
    expect(await shown(`see ${text} there\n`, 'a.md')).toBe('see [redacted] there\n')
    const [once, value] = [encodeURIComponent, password().planted]
    const url = `https://h.example.net/?next=${once(once(`https://u:${value}@db.example.net/?access_token=${value}`))}`
    expect(leaks(await shown(url, 'a.md'), [value])).toEqual([])
  })

  test.each([16, 20, 24, 30, 32, 40, 64, 76])(
    'are redacted in base64 and hexadecimal with lines of %i characters (SE06)',
    async (width) => {
      const bytes = Buffer.from(`{"a":1,"token":"${token}","c":"more text here, for two lines and more"}`)
      for (const encoded of [bytes.toString('base64'), bytes.toString('hex')]) {
        const lines = encoded.match(new RegExp(`.{1,${width}}`, 'g')) ?? []
        const pieces = lines.slice(0, -1)
        for (const [path, text] of [
          ['a.txt', `key:\n${lines.join('\n')}\n\nthe end\n`],
          ['a.txt', `key: ${lines.join('\r\n')}\r\n`],
          ['a.yaml', `x: |\n  ${lines.join('\n  ')}\ny: 1\n`],
          ['a.json', JSON.stringify({ x: lines.join('\n') })],
          ['a.js', `const x = '${lines.join("' +\n  '")}'\n`],
          ['a.sh', `# ${lines.join('\n# ')}\n`],
        ] as const)
          expect(leaks(await shown(text, path), pieces), `${path}: ${text}`).toEqual([])
      }
    },
  )

  test.each(['\u{e0041}', '\u{e0001}\u{e007f}', '\u{e0101}', '\u3164', '\ufff9', '\u200b'])(
    'are redacted if they contain invisible characters (%j) (SE06)',
    async (sign) => {
      const text = `see ${[...token].join(sign)} there\npass${sign}word: ${password().planted}\n`
      expect(await shown(text, 'a.md')).toBe(`see [redacted] there\npass${sign}word: [redacted]\n`)
    },
  )

  test('are not mistakenly found in lines of words or of digests (SE06)', async () => {
    const digests = Array.from({ length: 8 }, (_, i) => createHash('sha1').update(`${i}`).digest('hex'))
    for (const text of [`${digests.join('\n')}\n`, 'AbstractSingleton\nProxyFactoryBean1\nConfigurationProp\n'])
      expect(await shown(text, 'a.txt')).toBe(text)
  })
})

describe('secrets in XML attributes:', () => {
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
  ])('the secret of %s is redacted (SE27)', async (element) => {
    for (const path of someOf(element.replaceAll(plain, ''), ['a.html', 'a.xml', 'a.md', 'a.config'], 2))
      await expectHidden(`<p>\n${element}\n<b>shown</b>\n`, path, [plain], ['shown'])
  })

  test('attributes of other elements are unchanged (SE27)', async () => {
    const text =
      '<input name="city" value="Kyoto-2024"><meta name="author" content="Bob7 Smith"><a id="key" value="x1y2">\n'
    for (const path of ['a.html', 'a.xml']) expect(await shown(text, path)).toBe(text)
  })
})

describe('YAML values of several lines:', () => {
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
  ])('a secret value is redacted in every range: %s (SE28)', async (name, value) => {
    for (const head of someOf(name, ['db_password: ', '  apiKey: ', '- token: ', '"clientSecret": '], 2))
      for (const path of someOf(head + name, ['a.yaml', 'values.yml'])) {
        const after = head.startsWith('-') ? '- host: db\n' : `${/^ */.exec(head)?.[0]}host: db\n`
        await expectHidden(`x: 1\n${head}${value}\n${after}y: 2\n`, path, [first, second, third], ['host: db', 'y: 2'])
      }
  })

  test('text after the value is unchanged (SE28)', async () => {
    expect(await shown('password: a7b8c9\n  d7e8f9\nhost: db\n', 'a.yaml')).toBe('password: [redacted]\nhost: db\n')
    expect(await shown('password: a7b8c9\n# a comment\n  x: shown\n', 'a.yaml')).toBe(
      'password: [redacted]\n# a comment\n  x: shown\n',
    )
    expect(await shown('password: "a7b8c9\nhost: "db"\n', 'a.yaml')).toBe('password: "[redacted]\nhost: "db"\n')
  })
})

test('the end of a table hides the columns that the whole table hides (SE22)', async () => {
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

test('of a withheld file, a range at its end is withheld too (SE22)', async () => {
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

test('if files with secrets are withheld, a read of the end of a file reads and searches the whole file once (SE22)', async () => {
  let searches = 0
  const counted: Redactor = {
    ...redactor,
    window: (...job) => {
      searches++
      return redactor.window(...job)
    },
  }
  let reads = 0
  const source = memory({ 'b.log': `${'a plain line\n'.repeat(3000)}the last\n` })
  const provider = documents(
    {
      ...source,
      read: (request, context) => {
        reads++
        return source.read(request, context)
      },
    },
    { through: (whole) => redacted(whole, { redactor: counted, mode: 'withhold' }) },
  )
  expect(await read(provider, 'b.log', { tail: '1' })).toBe('the last\n')
  expect([searches, reads]).toEqual([1, 1])
})

test('a part of a file that is too large to search is refused with the reason (SE22)', async () => {
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
      message: expect.stringContaining('searched for secrets as a whole'),
      detail: { size: 5e9, reason: 'withheld' },
    })
  await expect(read(through('mask'), 'a.log')).rejects.toThrow('Ask for a part of it.')
})

describe('a patch and a blame hide the secrets that the file hides', () => {
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
  test.each(Object.entries(files))('in %s (SE22)', async (file, text) => {
    expect(leaks(await shown(text, file), [secret])).toEqual([])
    for (const [path, make] of Object.entries(forms))
      await expectHidden(make(file, text), path.endsWith('/') ? path + file : path, [secret])
  })
})

test.each<[string, string]>([
  ['members', '"d":"'.repeat(100_000)],
  ['members without a value', 'd: '.repeat(150_000)],
  ['key types', '{"kty":"d":'.repeat(45_000)],
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
  ['rows of a Markdown table', `| a | password |\n|---|---|\n${'| b |\n'.repeat(80_000)}`],
  ['heads of Markdown tables', '| a | password |\n|---|---|\n'.repeat(18_000)],
  ['cells of one row', `| a | password |\n|---|---|\n|${' b |'.repeat(120_000)}`],
  ['borders of a table', `+---+\n| password |\n${'+---+'.repeat(90_000)}`],
  ['columns of psql', ` a | password \n---+---\n${' b |'.repeat(120_000)}`],
  ['grid cells of reStructuredText', '===== =====\npassword b\n'.repeat(20_000)],
  ['tables in HTML', '<table><tr><th>password'.repeat(20_000)],
  ['connection strings of Go', 'a:b@tcp('.repeat(60_000)],
  ['users of a connection string', `${'a:'.repeat(240_000)}@tcp(h)/db`],
  ['members of ODBC', 'Server=a;Pwd={'.repeat(34_000)],
  ['braces of ODBC', `Server=a;Pwd={${'}}'.repeat(240_000)}`],
  ['libpq strings', "host=a password='\\".repeat(26_000)],
  ['DER in hexadecimal', '3082'.repeat(120_000)],
  ['DER in base64', 'MIIE'.repeat(120_000)],
  ['DER with short lengths', Buffer.from('3003020100'.repeat(70_000), 'hex').toString('base64')],
  ['base64 in lines of 20', `${'A7b9C3d5E1f8G2h4J6k0\n'.repeat(23_000)}`],
  ['base64 in lines of 24 after a name', `password: |\n${'  A7b9C3d5E1f8G2h4J6k0L5m7\n'.repeat(18_000)}`],
  ['base64 in lines of 4', 'A7b9\n'.repeat(96_000)],
  ['defaults of references', `password=${'${A:-'.repeat(90_000)}`],
  ['references', 'password=${A:-b}'.repeat(30_000)],
  ['placeholders', '${password:'.repeat(44_000)],
  ['here-documents', 'password = <<EOT\n'.repeat(28_000)],
  ['property lists', '<key>Password</key>'.repeat(25_000)],
  ['strings of a property list', `<key>Password</key>${'<string>'.repeat(60_000)}`],
  ['parts of a form', '--x\nContent-Disposition: form-data; name="password"\n\n'.repeat(9000)],
  ['rows of SQL', `INSERT INTO t (a, password) VALUES ${'(1, '.repeat(120_000)}`],
  ['columns of SQL', `INSERT INTO t (${'password, '.repeat(48_000)}`],
  ['statements', 'INSERT INTO t (password) VALUES '.repeat(15_000)],
  ['copied rows', `COPY t (a, password) FROM stdin;\n${'b\t'.repeat(240_000)}`],
  ['pairs with comments', `- name: DB_PASSWORD\n${'  # a comment\n'.repeat(34_000)}`],
  ['values before names', '- value: horsebattery\n'.repeat(21_000)],
  ['members before a name', `{${'"value": "horsebattery", '.repeat(19_000)}`],
  ['sentences', 'the password is '.repeat(30_000)],
  ['percent-encodings', 'password%253D'.repeat(37_000)],
  ['invisible characters', `ghp_${'\u{e0041}'.repeat(120_000)}`],
  ['XML keys', '<RSAKeyValue><P>'.repeat(30_000)],
  ['lines of netrc', 'machine a login b password '.repeat(18_000)],
])(
  'a file of %s, repeated many thousand times, is searched within the time limit, and not withheld (SE22)',
  async (name, text) => {
    for (const path of someOf(name, ['a.yaml', 'a.csv', 'a.html', 'a.md', 'a.sql', 'a.txt'], 1, volume / 3))
      expect(await read(redacted(memory({ [path]: text }), { redactor }), path)).not.toContain('withheld')
  },
)

test.each<[string, string]>([
  ['a.md', '- | user | password |\n  |---|---|\n  | bob | horsebattery |\n'],
  ['a.md', '| user | [Password](#x) |\n|---|---|\n| bob | horsebattery |\n'],
  ['a.md', '| user | password |\n|---|---|\n| bob | the horsebattery is red |\n'],
  ['a.md', '| user | password |\n|---|---|\n| `a|b` | horsebattery |\n'],
  ['a.csv', 'user,Password [Required],x\nbob,horsebattery,1\n'],
  ['a.csv', '#user,password\nbob,horsebattery\n'],
  ['a.csv', 'user,pass\nbob,horsebattery\n'],
  ['a.csv', 'user,password\rbob,horsebattery\r'],
  ['a.csv', `user,note,password\nbob,"${'x\n'.repeat(3000)}",horsebattery\n`],
  ['a.csv', 'user,note,password\nal,"open,horsebattery\nno,x,horsebattery\nb,"quoted",horsebattery\n'],
  ['a.csv.bak', 'user,password\nbob,horsebattery\n'],
  ['a.properties', 'spring.datasource.password=${DB_PASS:horsebattery}\n'],
  ['a.yaml', 'environment:\n  - POSTGRES_PASSWORD=${PG:-horsebattery}\n'],
  ['a.java', '@Value("${db.password:horsebattery}")\n'],
  ['a.json', '{"value": "horsebattery", "name": "DB_PASSWORD"}'],
  ['a.yaml', '- value: horsebattery\n  name: DB_PASSWORD\n'],
  ['a.lua', 'password = [==[horsebattery]==]\n'],
  ['Makefile', 'DB_PASSWORD ?= horsebattery\n'],
  ['a.rs', 'let password = String::from("horsebattery");\n'],
  ['a.php', "define('DB_PASSWORD', 'horsebattery');\n"],
])('a word with the name of a secret before or after it is redacted in %s: %j (SE26)', async (path, text) => {
  expect(await shown(text, path)).not.toContain('horsebattery')
})

test('a reference to a secret elsewhere, without a default value, is unchanged (SE26)', async () => {
  for (const text of ['password: ${DB_PASSWORD:?must be set}\n', 'password: ${vault:secret/x}\n', 'password: ${A:-}\n'])
    expect(await shown(text, 'a.yaml')).toBe(text)
})
