import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import iconv from 'iconv-lite'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { docx } from '../fixtures/documents/office.ts'
import { japanesePdf } from '../fixtures/documents/pdf.ts'
import { main, type Running, run, start } from '../support/cli.ts'
import { runHere } from '../support/cli-here.ts'
import { type EraClient, eras, type Place } from '../support/era-clients.ts'
import { createFolder, type Folder } from '../support/folder.ts'
import { hasTurn } from '../support/volume.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const project = 'examples/project.json'

/** The newest official client. */
const connect = async (place: Place) => (await eras.at(-1)?.connect(place))?.client ?? expect.fail('no client')

interface Shown {
  readonly text?: string
  readonly mimeType?: string
  readonly _meta?: Readonly<Record<string, unknown>>
}

/** In a tenth of the volume one configuration is served over one transport, and the other over the other. */
const all = ['stdio', 'HTTP'] as const
const overOne = (place: number) => all.filter((_, at) => hasTurn(place, at, all.length))

/** A configuration that is served over transports, each with a client. */
function served(cwd: () => string, config: string, transports: readonly string[]) {
  const clients = new Map<string, EraClient>()
  let server: Running | undefined
  beforeAll(async () => {
    if (transports.includes('HTTP')) {
      server = start(['serve', '--config', config, '--http', '0'], { cwd: cwd(), env: { LANG: 'ja_JP.UTF-8' } })
      const [, url = ''] = await server.says(/at (http:\/\/127\.0\.0\.1:\d+\/mcp)\n/)
      clients.set('HTTP', await connect({ url }))
    }
    if (!transports.includes('stdio')) return
    const args = [main, 'serve', '--config', `${cwd()}/${config}`, '--stdio', '--log-level', 'error']
    clients.set('stdio', await connect({ command: process.execPath, args }))
  })
  afterAll(async () => {
    for (const client of clients.values()) await client.close()
    server?.child.kill('SIGTERM')
    await server?.ended
  })
  const clientOf = (transport: string) => clients.get(transport) ?? expect.fail(`no client over ${transport}`)
  return {
    list: async (transport: string) => (await clientOf(transport).listResources()).resources.map(({ uri }) => uri),
    read: async (transport: string, uri: string): Promise<Shown> => {
      const { contents } = await clientOf(transport).readResource({ uri })
      expect(contents).toHaveLength(1)
      return contents[0] as Shown
    },
    complete: async (transport: string, uri: string, name: string, value: string) =>
      (await clientOf(transport).complete({ ref: { type: 'ref/resource', uri }, argument: { name, value } })).completion
        .values,
    templates: async (transport: string) =>
      (await clientOf(transport).listResourceTemplates()).resourceTemplates.map(({ uriTemplate }) => uriTemplate),
  }
}

describe('one configuration over the repository of this project', () => {
  // Over HTTP at least: its server has the environment that is asked for below.
  const transports = overOne(1)
  const { list, read, complete, templates } = served(() => root.replace(/\/$/, ''), project, transports)

  test('is accepted by hikidashi check', async () => {
    const { code, out, err } = await run(['check', '--config', project, '--limit', '5'], {
      cwd: root,
    })
    expect({ code, out, err }).toMatchObject({ code: 0 })
    expect(out.match(/^ok /gm)).toHaveLength(5)
  }, 120_000)

  test.each(transports)('lists resources of every source over %s', async (transport) => {
    const uris = await list(transport)
    expect(new Set(uris).size).toBe(uris.length)
    expect(uris).toEqual(
      expect.arrayContaining([
        'config://hikidashi/package.json',
        'docs://hikidashi/architecture.md',
        'env://process/PATH',
        'file:///hikidashi/src/index.ts',
        'git://hikidashi/log',
        'git://hikidashi/HEAD/package.json',
      ]),
    )
  })

  test.each(transports)('reads resources of every source over %s', async (transport) => {
    const manifest = JSON.parse(await readFile(`${root}/package.json`, 'utf8')) as { version: string }
    const index = await readFile(`${root}/src/index.ts`, 'utf8')
    expect(await read(transport, 'file:///hikidashi/src/index.ts')).toMatchObject({ text: index })
    expect((await read(transport, 'git://hikidashi/log?limit=1')).text).toMatch(/^Log of HEAD/)
    expect((await read(transport, 'git://hikidashi/HEAD/package.json')).text).toContain('"hikidashi"')
    expect(await read(transport, 'config://hikidashi/package.json?pointer=/version')).toMatchObject({
      text: `${JSON.stringify(manifest.version)}\n`,
      mimeType: 'application/json',
    })
    expect((await read(transport, 'docs://hikidashi/architecture.md?lines=1-1')).text).toBe('# The architecture\n')
    expect(await read(transport, 'docs://hikidashi/architecture.md?tail=3')).toMatchObject({
      _meta: { 'dev.hikidashi/tail': { lines: 3, earlier: true } },
    })
    expect(await read(transport, 'env://process/PATH')).toMatchObject({ text: '[redacted]' })
  })

  test('shows the value of an allowed environment variable over HTTP', async () => {
    expect(await read('HTTP', 'env://process/LANG')).toMatchObject({ text: 'ja_JP.UTF-8' })
  })

  test.each(transports)('completes variables of every source over %s', async (transport) => {
    expect(await complete(transport, 'file:///hikidashi/{+path}', 'path', 'src/ind')).toEqual(['src/index.ts'])
    expect(await complete(transport, 'git://hikidashi/log{?path,since,until,author,limit,ref}', 'ref', 'HE')).toEqual([
      'HEAD',
    ])
    expect(await complete(transport, 'git://hikidashi/{+path}{?tail}', 'path', 'HEAD/src/ind')).toEqual([
      'HEAD/src/index.ts',
    ])
    expect(await complete(transport, 'config://hikidashi/{+path}{?pointer,as}', 'path', 'tsconfig.b')).toEqual([
      'tsconfig.build.json',
    ])
    expect(await complete(transport, 'docs://hikidashi/{+path}{?as,lines,bytes}', 'path', 'providers/set')).toEqual([
      'providers/settings.md',
    ])
    expect(await complete(transport, 'env://process/{name}', 'name', 'PAT')).toEqual(['PATH'])
  })

  test.each(transports)('lists the templates of its sources over %s', async (transport) => {
    expect(await templates(transport)).toEqual(
      expect.arrayContaining([
        'config://hikidashi/{+path}{?pointer,as}',
        'docs://hikidashi/{+path}{?tail}',
        'docs://hikidashi/{+path}{?as,lines,bytes}',
        'env://process/{name}',
        'git://hikidashi/commits/{sha}',
      ]),
    )
  })
})

describe('one configuration over a folder of Japanese documents', () => {
  let folder: Folder
  const config = 'hikidashi.json'
  const token = `ghp_${'a1B2c3D4e5'.repeat(4)}`
  const key = ['-----BEGIN PRIVATE KEY-----', 'MIIBVQIBADANBgkqhkiG9w0BAQEFAASCAT8wggE7', '-----END PRIVATE KEY-----']
  const sentence = '設定ファイルを変更した後は、必ずサービスを再起動してください。\n'
  const mounts = {
    'docs://notes': {
      provider: 'files',
      root: 'docs',
      language: 'ja',
      frontMatter: '*.md',
      rules: [{ match: '*.md', title: 'heading' }],
    },
    'safe://notes': { provider: 'files', root: 'docs', redact: 'mask' },
    'config://notes': { provider: 'settings', root: '.', allow: ['HOST'] },
    'env://notes': { provider: 'env', file: '.env', allow: ['HOST'], poll: '1s' },
  }
  beforeAll(() => {
    folder = createFolder()
    folder.write({
      [config]: JSON.stringify({ mounts }),
      '.gitignore': '.env\n',
      '.env': `HOST=db\nTOKEN=${token}\n`,
      'conf/会社.ini': '[会社]\n名前 = 吉野家\npassword = himitsu\n',
      'docs/手引き.md': iconv.encode(`# 手引き\n\n${sentence.repeat(3)}`, 'shift_jis'),
      'docs/手引き.en.md': '---\npriority: 0.8\n---\n# The guide\n',
      'docs/議事録.docx': docx(),
      'docs/報告.pdf': japanesePdf([['四半期の報告']]),
      'docs/app.log': `${'line\n'.repeat(2000)}token=${token}\n${key.join('\n')}\nlast\n`,
    })
  })
  afterAll(() => folder.remove())
  const transports = overOne(0)
  const { list, read } = served(() => folder.root, config, transports)
  const docs = 'docs://notes/%E6%89%8B%E5%BC%95%E3%81%8D'

  test('is accepted by hikidashi check', async () => {
    expect(await runHere(['check'], { cwd: folder.root })).toMatchObject({ code: 0 })
  }, 120_000)

  test.each(transports)('serves a text in Shift_JIS and the text of documents over %s', async (transport) => {
    const uris = await list(transport)
    expect(uris).toEqual(expect.arrayContaining([`${docs}.md`, 'config://notes/.env', 'env://notes/TOKEN']))
    expect(await read(transport, `${docs}.md`)).toMatchObject({
      text: `# 手引き\n\n${sentence.repeat(3)}`,
      _meta: {
        'dev.hikidashi/encoding': 'shift_jis',
        'dev.hikidashi/alternates': [{ href: '%E6%89%8B%E5%BC%95%E3%81%8D.en.md', language: 'en' }],
      },
    })
    expect(await read(transport, `${docs}.md?lines=1-1`)).toMatchObject({ text: '# 手引き\n' })
    for (const uri of uris.filter((uri) => /^docs:.*\.(?:docx|pdf)$/.test(uri)))
      expect((await read(transport, `${uri}?as=text`)).text, uri).toMatch(/\p{Script=Han}/u)
  })

  test.each(transports)('shows no secret of settings, variables and redacted files over %s', async (transport) => {
    const uris = await list(transport)
    const [ini = 'none'] = uris.filter((uri) => uri.endsWith('.ini'))
    expect(await read(transport, 'config://notes/.env')).toMatchObject({ text: 'HOST=db\nTOKEN=[redacted]\n' })
    expect(await read(transport, `${ini}?pointer=/%E4%BC%9A%E7%A4%BE`)).toMatchObject({
      text: '{\n  "名前": "吉野家",\n  "password": "[redacted]"\n}\n',
    })
    expect(await read(transport, 'env://notes/HOST')).toMatchObject({ text: 'db' })
    expect(await read(transport, 'env://notes/TOKEN')).toMatchObject({ text: '[redacted]' })
    const log = await read(transport, 'safe://notes/app.log')
    expect(log.text).toContain('token=[redacted]\n[redacted]\nlast\n')
    // An end that begins within the key shows nothing of it.
    expect(await read(transport, 'safe://notes/app.log?tail=3')).toMatchObject({
      text: 'token=[redacted]\n[redacted]\nlast\n',
      _meta: { 'dev.hikidashi/tail': { lines: 3, earlier: true } },
    })
    expect((await read(transport, 'docs://notes/app.log?tail=2')).text).toBe(`${key[2]}\nlast\n`)
  })
})
