import { createHash } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import { afterAll, describe, expect, test } from 'vitest'
import type { Content, Context, Provider } from '../../src/core/provider.ts'
import { createScrubber } from '../../src/core/scrub.ts'
import { env } from '../../src/providers/env/index.ts'
import { answerSettings } from '../../src/providers/settings/answer.ts'
import { type SettingsFormat, settings } from '../../src/providers/settings/index.ts'
import { defaultSettingsLimits } from '../../src/providers/settings/tree.ts'
import { type DetectionLayer, detectionLayers } from '../../src/secrets/find.ts'
import { createRedactor } from '../../src/secrets/redactor.ts'
import { redactWindow } from '../../src/secrets/window.ts'
import { redacted } from '../../src/wrap/redacted.ts'
import { sliced } from '../../src/wrap/sliced.ts'
import { memory } from '../support/memory.ts'
import { ranged } from '../support/ranged.ts'
import { addresses, type Canary, harmless, leaks, password, tokens } from '../support/secrets.ts'
import { someOf, volume, volumeOf } from '../support/volume.ts'
import { positions, writeSettings } from './harness/settings-files.ts'

const context: Context = { principal: { id: 'a', roles: [] }, signal: new AbortController().signal }
const formats = ['json', 'yaml', 'toml', 'ini', 'dotenv', 'properties'] as const
const fileOf: Readonly<Record<SettingsFormat, string>> = {
  json: 'app.json',
  yaml: 'app.yaml',
  toml: 'app.toml',
  ini: 'app.ini',
  dotenv: '.env',
  properties: 'app.properties',
}

const redactor = createRedactor()
afterAll(() => redactor.close())

const bodyOf = (contents: readonly Content[]) =>
  contents
    .map((content) =>
      'text' in content ? content.text : 'bytes' in content ? Buffer.from(content.bytes).toString('latin1') : '',
    )
    .join('\n')

const read = async (provider: Provider, path: string, params: Readonly<Record<string, string>> = {}) =>
  bodyOf(await provider.read({ path, params: new Map(Object.entries(params)) }, context))

/** A text as a file of this name is shown by `redacted`. */
const shown = async (text: string, path: string, without: readonly DetectionLayer[] = []) =>
  (await redactWindow({ text, from: 0, final: true }, { path, without })).text

/** A file of settings as it is, and as JSON. Of dotenv, everything is allowed that can be. */
async function settingsShown(
  format: SettingsFormat,
  text: string,
  without: readonly DetectionLayer[] = [],
  allow = format === 'dotenv' ? ['*'] : [],
) {
  const policy = { show: 'safe', allow } as const
  const ask = { text, path: fileOf[format], format, policy, limits: defaultSettingsLimits, without }
  const answers = [
    await answerSettings({ ...ask, want: { kind: 'source' } }),
    await answerSettings({ ...ask, want: { kind: 'json', steps: [] } }),
  ]
  return answers.map((found) => ('text' in found ? found.text : JSON.stringify(found)))
}

/** How a token stands in code. */
const codeWith = (value: string) =>
  `const greeting = ${JSON.stringify(value)}\n// ${value.replaceAll('\n', ' ')}\ncall('x', \`${value}\`)\nconst x = { greeting: ${JSON.stringify(value)} }\n`

describe('detectors of secrets:', () => {
  test.each(formats)(
    'no sample of any detector is disclosed by a settings file in %s, at any place (SE01)',
    async (format) => {
      const cases = tokens().flatMap((canary) => positions.map((position) => ({ canary, position })))
      for (const { canary, position } of someOf(format, cases, 30)) {
        const text = writeSettings(format, position, canary.planted)
        if (text === undefined) continue
        for (const output of [...(await settingsShown(format, text)), await shown(text, fileOf[format])])
          expect(leaks(output, canary.secret), `${canary.name}, ${position}: ${output}`).toEqual([])
      }
    },
  )

  test.each(['notes.md', 'main.ts', 'main.py', 'run.sh', 'log.txt', 'Dockerfile', 'page.html'])(
    'no sample of any detector is disclosed in %s (SE01)',
    async (path) => {
      for (const canary of someOf(path, tokens(), 10)) {
        const output = await shown(codeWith(canary.planted), path)
        expect(leaks(output, canary.secret), `${canary.name}: ${output}`).toEqual([])
      }
    },
  )

  test.each(formats)(
    'a secret under an innocent name, and an innocent value under a secret name, are redacted in %s (SE02)',
    async (format) => {
      const { planted: token } = tokens()[2] as Canary
      const { planted: plain } = password()
      for (const output of await settingsShown(format, writeSettings(format, 'value', token) ?? ''))
        expect(leaks(output, [token])).toEqual([])
      for (const name of ['db_password', 'apiKey'])
        for (const position of ['value', 'nested', 'list'] as const) {
          const text = writeSettings(format, position, plain, name) ?? ''
          for (const output of await settingsShown(format, text)) expect(leaks(output, [plain]), output).toEqual([])
          if (position === 'value') expect(leaks(await shown(text, fileOf[format]), [plain])).toEqual([])
        }
    },
  )

  test.each([
    'PASSWORD',
    'passwd',
    'pwd',
    'db-pass',
    'apiKey',
    'API.KEY',
    'x_token_url',
    'ＡＰＩ_KEY',
    'pass\u200bword',
    'Contraseña_passwd',
    'パスワード',
    'clientSecret',
    'AWS_SESSION_TOKEN',
    'signing-key-2',
    'P_A_S_S_W_O_R_D',
  ])('the value under the name %j is redacted (SE03)', async (name) => {
    const { planted } = password()
    const text = JSON.stringify({ [name]: planted, nested: { [name]: [planted] }, host: 'db' })
    for (const output of await settingsShown('json', text)) {
      expect(leaks(output, [planted]), output).toEqual([])
      expect(output).toContain('"db"')
    }
    expect(leaks(await shown(text, 'app.json'), [planted])).toEqual([])
    const provider = env({ environment: { [name]: planted }, allow: ['*'] })
    expect(await read(provider, name)).toBe('[redacted]')
  })

  test.each(addresses())(
    'of $name only the secret part is redacted (SE04)',
    async ({ name, planted, secret, kept = [] }) => {
      for (const format of someOf(name, formats)) {
        const outputs = await settingsShown(format, writeSettings(format, 'value', planted) ?? '')
        for (const output of [
          ...outputs,
          await shown(planted, 'notes.md'),
          await shown(codeWith(planted), 'main.ts'),
        ]) {
          expect(leaks(output, secret), output).toEqual([])
          for (const part of kept) expect(output).toContain(part)
        }
      }
    },
  )

  const github = tokens()[2] as Canary
  const gzipped = (text: string) => gzipSync(text).toString('base64')
  test.each<[string, (text: string) => string]>([
    ['base64', (text) => Buffer.from(`token=${text}`).toString('base64')],
    ['base64 at another alignment', (text) => Buffer.from(`x token=${text}`).toString('base64')],
    ['base64url', (text) => Buffer.from(`{"t":"${text}?>~"}`).toString('base64url')],
    ['base64 of base64', (text) => Buffer.from(Buffer.from(text).toString('base64')).toString('base64')],
    [
      'base64 in lines',
      (text) =>
        (
          Buffer.from(`token=${text}`.repeat(4))
            .toString('base64')
            .match(/.{1,76}/g) ?? []
        ).join('\n'),
    ],
    ['base64 of UTF-16', (text) => Buffer.from(text, 'utf16le').toString('base64')],
    ['gzip and base64', (text) => gzipped(`{"token":"${text}"}`.padEnd(200))],
    ['the beginning of 3 MiB, in gzip and base64', (text) => gzipped(`{"token":"${text}"}`.padEnd(3 * 1024 * 1024))],
    ['hex', (text) => Buffer.from(text).toString('hex')],
    ['HEX', (text) => Buffer.from(text).toString('hex').toUpperCase()],
    ['hex with colons', (text) => (Buffer.from(text).toString('hex').match(/../g) ?? []).join(':')],
    ['percent-encoded', (text) => [...text].map((c) => `%${c.charCodeAt(0).toString(16)}`).join('')],
    ['JSON escapes', (text) => [...text].map((c) => `\\u00${c.charCodeAt(0).toString(16)}`).join('')],
    ['hexadecimal escapes', (text) => [...text].map((c) => `\\x${c.charCodeAt(0).toString(16)}`).join('')],
    ['XML references', (text) => [...text].map((c) => `&#${c.charCodeAt(0)};`).join('')],
    ['full-width forms', (text) => [...text].map((c) => String.fromCharCode(c.charCodeAt(0) + 0xfee0)).join('')],
    ['characters without width', (text) => [...text].join('\u200b')],
    ['JSON in JSON', (text) => JSON.stringify(JSON.stringify({ greeting: text }))],
  ])('a secret in %s is redacted (SE06)', async (_, encode) => {
    const encoded = encode(github.planted)
    // JSON around it is none of it.
    const pieces = [...(encoded.includes('greeting') ? [] : encoded.split('\n')), ...github.secret]
    for (const path of ['notes.md', 'main.ts', 'app.yaml'])
      expect(leaks(await shown(`see ${encoded} there\n`, path), pieces)).toEqual([])
    for (const format of ['json', 'yaml', 'toml'] as const)
      for (const output of await settingsShown(format, writeSettings(format, 'value', encoded) ?? ''))
        expect(leaks(output, pieces), output).toEqual([])
  })

  test('secrets in block scalars, binary tags, anchors and aliases of YAML are redacted (SE06)', async () => {
    const { planted } = password()
    const base64 = Buffer.from(planted).toString('base64')
    const text = `base: &a ${planted}\npassword: *a\nx: |\n  ${github.planted}\ny: >\n  a\n  ${github.planted}\nz: !!binary ${Buffer.from(`key ${github.planted}`).toString('base64')}\nw: ${base64}\n# was ${planted}\n`
    for (const output of await settingsShown('yaml', text))
      expect(leaks(output, [planted, base64, ...github.secret]), output).toEqual([])
  })

  test('a secret over several lines is redacted (SE07)', async () => {
    const half = github.planted.length / 2
    const [first, second] = [github.planted.slice(0, half), github.planted.slice(half)]
    for (const text of [
      `x=${first}\\\n   ${second}\n`,
      `x = "${first}" +\n  "${second}"\n`,
      `x = '${first}' . '${second}'\n`,
      `x = ("${first}"\n     "${second}")\n`,
    ])
      expect(leaks(await shown(text, 'a.txt'), [first.slice(4), second]), text).toEqual([])
  })

  test('variables, includes and commands in settings are not expanded (SE08)', async () => {
    const environment = { SECRET_HALF: 'abc' }
    const text = 'a: ${SECRET_HALF}${OTHER}\nb: !include /etc/passwd\nc: $(id)\nd: ${HOME:-x}\n'
    const [source, json] = await settingsShown('yaml', text)
    expect(source).toBe(text)
    expect(JSON.parse(json ?? '')).toEqual({
      a: '${SECRET_HALF}${OTHER}',
      b: '/etc/passwd',
      c: '$(id)',
      d: '${HOME:-x}',
    })
    const provider = env({ environment: { ...environment, A: '${SECRET_HALF}' }, allow: ['A'] })
    expect(await read(provider, 'A')).toBe('${SECRET_HALF}')
    const [dotenv] = await settingsShown('dotenv', 'A=${SECRET_HALF}\n', [], ['A'])
    expect(dotenv).toBe('A=${SECRET_HALF}\n')
  })

  test('the value of an environment variable is shown only if it is allowed and its name is not that of a secret; /proc/*/environ and cmdline are withheld (SE09)', async () => {
    const provider = env()
    for await (const { path } of provider.list({}, context)) expect(await read(provider, path)).toBe('[redacted]')
    const environment = { npm_config__auth: password().planted, HISTFILE: '/x', PATH: '/bin' }
    const some = env({ environment, allow: ['PATH', 'npm_*'] })
    expect(await read(some, 'PATH')).toBe('/bin')
    expect(await read(some, 'npm_config__auth')).toBe('[redacted]')
    expect(await read(some, 'HISTFILE')).toBe('[redacted]')
    const process = redacted(memory({ 'proc/self/environ': 'A=b\0', 'proc/1/cmdline': 'x\0--pw\0y' }), { redactor })
    for (const path of ['proc/self/environ', 'proc/1/cmdline'])
      expect(await read(process, path)).toMatch(/^\[redacted\] This content is withheld/)
  })

  test('numbers, booleans, lists, null and short values under a secret name are redacted (SE21)', async () => {
    const text =
      '{"pin": 12345, "password": true, "tokens": ["a", 7, {"x": null}], "secret": null, "auth": "ab", "apiKey": "", "port": 5432}'
    const [source, json] = await settingsShown('json', text)
    const mark = '[redacted]'
    expect(JSON.parse(json ?? '')).toEqual({
      pin: mark,
      password: mark,
      tokens: [mark, mark, { x: mark }],
      secret: mark,
      auth: mark,
      apiKey: mark,
      port: 5432,
    })
    expect(JSON.parse(source ?? '')).toEqual(JSON.parse(json ?? ''))
    expect(await shown('pin: 12345\nport: 5432\n', 'a.yaml')).toBe('pin: [redacted]\nport: 5432\n')
  })
})

describe('redaction:', () => {
  test('a secret that two parts of a resource share is shown by neither (SE07)', async () => {
    for (const { planted, secret } of someOf('SE07', tokens(), 5)) {
      const text = `first line\nsee ${planted} there\nlast line\n`
      const provider = sliced(redacted(ranged({ 'a.log': text }), { redactor }))
      for (let at = 10; at < 40 + planted.length; at += 5) {
        const parts = [await read(provider, 'a.log', { bytes: `0-${at}` })]
        parts.push(await read(provider, 'a.log', { bytes: `${at}-` }).catch(() => ''))
        expect(leaks(parts.join('\n'), secret), parts.join('|')).toEqual([])
      }
      const lines = planted.split('\n').length + 2
      for (let line = 1; line <= lines; line++)
        expect(leaks(await read(provider, 'a.log', { lines: `${line}` }).catch(() => ''), secret)).toEqual([])
    }
  })

  test('secrets at the border of two windows are not shown, whole or in parts (SE07)', async () => {
    const canary = tokens()[3] as Canary
    const filler = `${'x '.repeat(49)}x\n`.repeat(5200)
    for (const shift of someOf('SE07', [0, 20, 40, 80, 200, 65_536, 65_600, 131_072], 3)) {
      const text = `${filler}${'y'.repeat(shift)} ${canary.planted}\n${filler}`
      const provider = redacted(ranged({ 'a.log': text }), { redactor })
      const whole = await read(provider, 'a.log')
      expect(leaks(whole, canary.secret)).toEqual([])
      expect(whole.length).toBe(text.length - canary.planted.length + '[redacted]'.length)
      const [part] = await provider.read(
        { path: 'a.log', params: new Map(), range: { start: 519_000, end: 530_000 } },
        context,
      )
      expect(part !== undefined && 'text' in part && part.text).toBe(whole.slice(519_000, 530_000))
    }
  })

  test('secrets in bytes and in a stream of a source are redacted (SE16)', async () => {
    const [, , canary] = tokens() as [Canary, Canary, Canary]
    const stream = async function* () {
      yield Buffer.from(`row: ${canary.planted.slice(0, 9)}`)
      yield Buffer.from(canary.planted.slice(9))
    }
    const provider = redacted(
      {
        ...memory({ a: '', b: '' }),
        read: async ({ path }) =>
          path === 'a'
            ? [{ bytes: Buffer.from(`{"note":"${canary.planted}"}`) }]
            : [{ stream: stream(), length: 5 + canary.planted.length }],
      },
      { redactor },
    )
    expect(await read(provider, 'a')).toBe('{"note":"[redacted]"}')
    expect(await read(provider, 'b')).toBe('row: [redacted]')
  })

  test('secrets in titles, descriptions, metadata, paths and completions are redacted in every answer, and a path with a secret is not found (SE17)', async () => {
    const [, , canary] = tokens() as [Canary, Canary, Canary]
    const { planted, secret } = canary
    const inner = memory({
      'a.md': { text: 'x', title: `How ${planted} works`, description: `password=${password().planted}` },
      [`${planted}.md`]: 'x',
    })
    const provider = redacted(
      {
        ...inner,
        read: async () => [{ text: 'x', title: planted, meta: { note: { deep: [planted] }, [planted]: 1 } }],
        complete: async () => ({ values: ['a.md', `${planted}.md`], total: 2, hasMore: false }),
      },
      { redactor },
    )
    const seen: unknown[] = []
    for await (const entry of provider.list({}, context)) seen.push(entry)
    seen.push(await provider.stat?.('a.md', context))
    seen.push(await provider.read({ path: 'a.md', params: new Map() }, context))
    seen.push(
      await provider.complete?.(
        { template: '{+path}', argument: { name: 'path', value: '' }, arguments: new Map() },
        context,
      ),
    )
    expect(leaks(JSON.stringify(seen), secret)).toEqual([])
    expect(JSON.stringify(seen)).toContain('How [redacted] works')
    await expect(provider.read({ path: `${planted}.md`, params: new Map() }, context)).rejects.toMatchObject({
      kind: 'not-found',
    })
  })

  test('neither the mark, a size, nor a range shows the length of a secret (SE18)', async () => {
    const short = redacted(ranged({ 'a.env': 'PASSWORD=abc\nx=1\n' }), { redactor, key: Buffer.alloc(32) })
    const long = redacted(ranged({ 'a.env': `PASSWORD=${'abc'.repeat(40)}\nx=1\n` }), {
      redactor,
      key: Buffer.alloc(32),
    })
    const all = async (provider: Provider) => {
      const entries: unknown[] = []
      for await (const { version: _, ...entry } of provider.list({}, context)) entries.push(entry)
      for (const range of [undefined, { start: 0, end: 12 }, { start: 10 }]) {
        const [content] = await provider.read(
          { path: 'a.env', params: new Map(), ...(range === undefined ? {} : { range }) },
          context,
        )
        const { version: _, ...rest } = content ?? {}
        entries.push(rest)
      }
      return entries
    }
    expect(await all(short)).toEqual(await all(long))
  })

  test('versions are hashed with a key, so that no guess can be compared with them (SE19)', async () => {
    const source = memory({
      a: { text: 'x', version: 'etag-of-content' },
      b: { text: 'x', version: 'etag-of-content' },
    })
    const versions = async (provider: Provider) => {
      const found: (string | undefined)[] = []
      for await (const { version } of provider.list({}, context)) found.push(version)
      return found
    }
    const one = await versions(redacted(source, { redactor, key: Buffer.alloc(32, 1) }))
    const other = await versions(redacted(source, { redactor, key: Buffer.alloc(32, 2) }))
    expect(new Set([...one, ...other, 'etag-of-content']).size).toBe(5)
    expect(await versions(redacted(source, { redactor, key: Buffer.alloc(32, 1) }))).toEqual(one)
    expect(await versions(redacted(source, { redactor, key: Buffer.alloc(32, 1), mode: 'withhold' }))).not.toEqual(one)
  })

  test.each<[string, string]>([
    ['100 KB of A', 'A'.repeat(100_000)],
    ['a minified line of 1 MB', 'const a=function(b){return c.token?d.e(f):g};'.repeat(23_000)],
    ['names without end', 'password='.repeat(60_000)],
    ['headers without end', 'authorization: x y '.repeat(30_000)],
    ['URLs without end', 'http://a:b/'.repeat(50_000)],
    ['tokens without end', 'eyJ'.repeat(200_000)],
    ['keys without end', '-----BEGIN RSA PRIVATE KEY-----'.repeat(16_000)],
    ['lists without end', '"token":['.repeat(60_000)],
    ['backslashes', '\\'.repeat(500_000)],
    ['white space', ` token ${' '.repeat(500_000)}=`],
    ['base64', Buffer.from(Array.from({ length: 375_000 }, (_, i) => (i * 7919) % 256)).toString('base64')],
    ['quotes', 'password="'.repeat(50_000)],
    ['markup', '<password key="'.repeat(35_000)],
  ])('%s is searched within the time limit, and not withheld (SE22)', async (name, text) => {
    for (const path of someOf(name, ['a.txt', 'a.json', 'a.js'], 1, volume / 3)) {
      const body = await read(redacted(memory({ [path]: text }), { redactor }), path)
      expect(body).not.toContain('withheld')
    }
  })

  test.each(['hangs', 'dies', 'throws', 'floods'])(
    'if a detector %s, the content is withheld, and the next content is not (SE23)',
    async (fault) => {
      const own = createRedactor({
        file: new URL('./harness/faulty-redactor.mjs', import.meta.url).pathname,
        timeoutMs: 300,
      })
      const provider = redacted(memory({ bad: `password: x ${fault}`, good: 'fine' }), { redactor: own })
      const [content] = await provider.read({ path: 'bad', params: new Map() }, context)
      expect(content).toMatchObject({
        mimeType: 'text/plain',
        text: expect.stringMatching(/^\[redacted\] This content is withheld: /),
      })
      expect(content?.version).toBeUndefined()
      expect(await read(provider, 'good')).toBe('fine')
      own.close()
    },
  )

  const { planted } = tokens()[2] as Canary
  const ebcdic = (text: string) =>
    Uint8Array.from(text, (c) => {
      const at = 'abcdefghi\0\0\0\0\0\0\0jklmnopqr\0\0\0\0\0\0\0\0stuvwxyz'.indexOf(c.toLowerCase())
      if (c === ' ') return 0x40
      return at === -1 ? 0xf0 + (Number(c) || 0) : (c < 'a' ? 0xc1 : 0x81) + at
    })
  test.each<[string, Uint8Array, RegExp]>([
    ['UTF-16LE with a mark', Buffer.from(`\ufeffkey ${planted}\n`, 'utf16le'), /\[\0r\0e\0d\0a\0c\0t\0e\0d\0\]/],
    ['UTF-16LE', Buffer.from(`key ${planted}\n`, 'utf16le'), /\[\0r\0e\0d\0a\0c\0t\0e\0d\0\]/],
    ['UTF-16BE', Buffer.from(`key ${planted}\n`, 'utf16le').swap16(), /\[\0r\0e\0d\0a\0c\0t\0e\0d\0\]/],
    ['Shift_JIS', Buffer.concat([Buffer.from([0x8e, 0xa7, 0x82, 0xcc]), Buffer.from(` ${planted} x`)]), /\[redacted\]/],
    ['Latin-1', Buffer.from(`caf\xe9 ${planted}\n`, 'latin1'), /caf\xe9 \[redacted\]\n/],
    ['UTF-7', Buffer.from(`key +AGA- ${planted} +AGA-`), /\[redacted\]/],
    ['EBCDIC', ebcdic(`the key is ${planted} and nobody may see it`), /withheld: it is text in an encoding/],
    ['UTF-32', Buffer.from([...`key ${planted}`].flatMap((c) => [c.charCodeAt(0), 0, 0, 0])), /withheld/],
    [
      'a binary',
      Buffer.concat([Buffer.from([0, 1, 2, 3, 0xff]), Buffer.from(planted), Buffer.alloc(40, 1)]),
      /withheld: it contains a secret/,
    ],
    [
      'a binary with UTF-16 in it',
      Buffer.concat([Buffer.alloc(41, 1), Buffer.from(planted, 'utf16le'), Buffer.alloc(40, 1)]),
      /withheld: it contains a secret/,
    ],
  ])('a secret in %s is redacted or withheld (SE23)', async (_, bytes, expected) => {
    const output = await read(redacted(memory({ a: { bytes } }), { redactor }), 'a')
    expect(output).toMatch(expected)
    expect(leaks(output.replaceAll('\0', ''), [planted])).toEqual([])
  })

  test('comments that turn a detector off have no effect (SE23)', async () => {
    const canary = tokens().find(({ name }) => name === 'Linear key') as Canary
    expect(
      leaks(
        await shown(`// secretlint-disable\n${canary.planted} // secretlint-disable-line\n`, 'a.ts'),
        canary.secret,
      ),
    ).toEqual([])
  })
})

describe('each layer of redaction is needed:', () => {
  const bearer = tokens().find(({ name }) => name === 'Bearer hex') as Canary
  const linear = tokens().find(({ name }) => name === 'Linear key') as Canary
  const stripe = tokens().find(({ name }) => name === 'Stripe key') as Canary
  const plain = password().planted
  const only: Readonly<Record<DetectionLayer, readonly [path: string, body: string | Uint8Array, secret: string]>> = {
    blocks: ['a.md', `-----BEGIN PRIVATE KEY-----\n${plain}${plain}\n-----END PRIVATE KEY-----\n`, `${plain}${plain}`],
    urls: ['a.md', `see redis://:${plain}@h/0`, plain],
    headers: ['a.md', bearer.planted, bearer.secret[0] ?? ''],
    kubernetes: ['a.yaml', `kind: Secret\ndata:\n  greeting: ${plain}\n`, plain],
    keys: ['a.yaml', `password: ${plain}\n`, plain],
    shapes: ['a.md', stripe.planted, stripe.planted],
    encoded: [
      'a.md',
      Buffer.from(`x ${stripe.planted}`).toString('base64'),
      Buffer.from(`x ${stripe.planted}`).toString('base64'),
    ],
    lint: ['a.md', linear.planted, linear.planted],
    decoded: ['a.md', [...stripe.planted].join('\u200b'), [...stripe.planted].join('\u200b')],
    vaults: ['.vault-token', plain, plain],
    bytes: ['a.bin', Buffer.concat([Buffer.alloc(9), Buffer.from(stripe.planted), Buffer.alloc(9)]), stripe.planted],
  }

  test.each(detectionLayers)('without the layer %s a secret is disclosed, and with it not', async (layer) => {
    const [path, body, secret] = only[layer]
    const source = memory({ [path]: typeof body === 'string' ? body : { bytes: body } })
    expect(leaks(await read(redacted(source, { redactor }), path), [secret])).toEqual([])
    expect(leaks(await read(redacted(source, { redactor, without: [layer] }), path), [secret])).not.toEqual([])
  })

  test('without the known values, a secret of no special form is disclosed', async () => {
    const source = memory({ 'a.md': `it is tuesday afternoon` })
    expect(await read(redacted(source, { redactor }), 'a.md')).toContain('tuesday afternoon')
    const scrubber = createScrubber(['tuesday afternoon'])
    expect(await read(redacted(source, { redactor, scrubber }), 'a.md')).toBe('it is [redacted]')
    expect(
      await read(settings({ source: memory({ 'a.json': '{"a": "tuesday afternoon"}' }), scrubber }), 'a.json'),
    ).toBe('{"a": "[redacted]"}')
    expect(await read(env({ environment: { A: 'tuesday afternoon' }, allow: ['A'], scrubber }), 'A')).toBe('[redacted]')
  })
})

describe('texts that are not secrets', () => {
  test('are shown: identifiers, digests, images, versions, addresses', async () => {
    for (let round = 0; round < volumeOf(20, 3); round++)
      for (const [name, value] of Object.entries(harmless())) {
        for (const format of ['json', 'yaml', 'toml', 'properties'] as const)
          for (const output of await settingsShown(format, writeSettings(format, 'value', value, 'id') ?? ''))
            expect(output, `${name}: ${value}`).not.toContain('[redacted]')
        for (const path of ['a.md', 'a.ts', 'package-lock.json']) {
          const text =
            path === 'package-lock.json' ? JSON.stringify({ integrity: value, resolved: value }) : codeWith(value)
          expect(await shown(text, path), `${name}: ${value}`).toBe(text)
        }
      }
  })

  test('are shown: counts of tokens in prose, and Japanese sentences after the name of a secret; a password in their place is redacted', async () => {
    for (const text of [
      'The limit is tokens: 8000 for each call.\n',
      'tokens: 12,000\n',
      'max output token: 8k\n',
      'トークン: 最大8000個まで使えます\n',
      'パスワード: 8文字以上で設定してください\n',
      'token: これは説明です\n',
    ])
      for (const path of ['a.md', 'a.txt', 'log.txt']) expect(await shown(text, path), path).toBe(text)
    for (const path of ['a.yaml', 'app.properties'])
      expect(await shown('token: これは説明です。値ではない\n', path)).toBe('token: これは説明です。値ではない\n')
    // A password is one all the same.
    expect(await shown('password: 8000\n', 'a.md')).toBe('password: [redacted]\n')
    expect(await shown('パスワード: Hunter2kaeru\n', 'a.md')).toBe('パスワード: [redacted]\n')
    expect(await shown('token: 秘密のtoken-81f2b9c04\n', 'a.yaml')).toBe('token: [redacted]\n')
  })

  test('are shown: placeholders in a header; a literal beside or inside one is redacted', async () => {
    for (const text of [
      'headers: { authorization: `Bearer ${token}` }',
      'authorization: `Bearer ${await tokenOf(user, scope)}`',
      'authorization: `token ${this.options.auth!.token}`',
      'headers = {"Authorization": f"Bearer {self.api_key}"}',
      '"Authorization": "Bearer %s" % token',
      '"Authorization": "Bearer {}".format(token)',
      'authorization: `Bearer ${process.env.API_TOKEN}`',
      'const token = `${settings.token}`',
    ])
      for (const path of ['a.ts', 'a.py', 'a.md']) expect(await shown(text, path), `${path}: ${text}`).toBe(text)
    const literal = 'k7Qm2xVb9Rt4Zp'
    for (const text of [
      `authorization: \`Bearer \${token}${literal}\``,
      `authorization: \`Bearer \${"${literal}"}\``,
      `authorization: \`Bearer \${tk_9f8a7b6c5d4e3f2a1b0c9d${literal}}\``,
      `authorization: \`Basic \${btoa('admin:${literal}')}\``,
      `password = "{${literal}}"`,
    ])
      for (const path of ['a.ts', 'a.py', 'a.yaml'])
        expect(leaks(await shown(text, path), [literal]), `${path}: ${text}`).toEqual([])
  })

  test('are shown: base64 that ends in the name of a secret and padding; a value assigned to a name with that ending is redacted', async () => {
    const digests = Array.from({ length: 6 }, (_, index) => createHash('sha512').update(`${index}`).digest())
    const random = Buffer.concat(digests).toString('base64')
    for (const name of ['Sig', 'Pwd', 'Token', 'Secret'])
      for (const sign of ['=', '=='])
        for (const run of [`${random}A9b${name}${sign}`, `${random.slice(0, 61)}A9b${name}${sign}`])
          for (const text of [
            `{"data":"${run}","mimeType":"image/png"}\n`,
            `{"text":"{\\"data\\":\\"${run}\\",\\"mimeType\\":\\"image/png4\\"}"}\n`,
            `const image = '${run}'; const other = 'x4-other-text'\n`,
            `<img src="data:image/png;base64,${run}" alt="figure 4-1">\n`,
            `{"integrity": "sha512-${run}", "other": "4.2.1+5"}\n`,
          ])
            for (const path of ['a.json', 'a.ts', 'a.md', 'a.html']) expect(await shown(text, path), path).toBe(text)
    // An assignment remains one, whatever is before its name. A fixed value, since few random ones look like a word.
    const planted = { ...password(), planted: 'k7Qm2xVb9Rt4Zp' }
    for (const text of [
      `"MY_PRODUCTION_DATABASE_2_REPLICA_CONNECTION_PASSWORD="${planted.planted}"\n`,
      `"azureStorageAccount2ConnectionPrimaryPassword="${planted.planted}"\n`,
      `PREFIX_${random.replaceAll(/[+/=]/g, 'x')}_PASSWORD="${planted.planted}"\n`,
      `see /${random.replaceAll(/[+/=]/g, 'x')}/password="${planted.planted}"\n`,
      `"${random.slice(0, 80)}", "password"="${planted.planted}"\n`,
    ])
      for (const path of ['a.env', 'a.ts', 'a.md'])
        expect(leaks(await shown(text, path), [planted.planted]), `${path}: ${text}`).toEqual([])
    // In the source of a program, a value without quotes is the name of a variable.
    const bare = `${random.slice(0, 80)}Password=${planted.planted}\n`
    for (const path of ['a.env', 'a.md'])
      expect(leaks(await shown(bare, path), [planted.planted]), `${path}: ${bare}`).toEqual([])
  })

  test('are redacted less than once in 3,700 lines of the source code of hikidashi', async () => {
    const { readdirSync, readFileSync } = await import('node:fs')
    const root = new URL('../../src/', import.meta.url).pathname
    const files = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter(
      (file) => file.endsWith('.ts') && !/^secrets|redacted|scrub/.test(file),
    )
    const marksIn = (text: string) => text.split('[redacted]').length - 1
    let marks = 0
    let lines = 0
    for (const file of files) {
      const text = readFileSync(root + file, 'utf8')
      lines += text.split('\n').length
      // Some sources mention the mark themselves.
      marks += marksIn(await shown(text, file)) - marksIn(text)
    }
    expect(files.length).toBeGreaterThan(50)
    // By lines, since files are merged and split now and then.
    expect(marks).toBeLessThan(lines / 3700)
  })

  test('include the marks of redaction: a redacted text is not redacted again', async () => {
    for (const { planted } of someOf('once', [...tokens(), ...addresses()], 15))
      for (const path of ['a.yaml', 'a.ts', 'a.md']) {
        const once = await shown(codeWith(planted), path)
        expect(await shown(once, path)).toBe(once)
      }
  })
})
