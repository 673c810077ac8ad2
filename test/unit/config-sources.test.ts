import { rmSync } from 'node:fs'
import iconv from 'iconv-lite'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { openCatalog } from '../../src/config/build.ts'
import { loadConfig } from '../../src/config/load.ts'
import { planConfig } from '../../src/config/plan.ts'
import type { Catalog } from '../../src/core/catalog.ts'
import { createScrubber } from '../../src/core/scrub.ts'
import { createFolder, type Folder } from '../support/folder.ts'

let folder: Folder
const opened: Catalog[] = []
beforeEach(() => {
  folder = createFolder()
})
afterEach(async () => {
  for (const catalog of opened.splice(0)) await catalog.close()
  folder.remove()
})

const log = () => {}
const token = `ghp_${'a1B2c3D4e5'.repeat(4)}`
const everybody = { id: 'x', roles: [] }

async function problemsIn(mounts: unknown): Promise<readonly string[]> {
  folder.write({ 'hikidashi.json': JSON.stringify({ mounts }) })
  const loaded = await loadConfig(folder.at('hikidashi.json'))
  return 'problems' in loaded ? loaded.problems.map(({ key, message, fix }) => `${key}: ${message} ${fix}`) : []
}

async function open(mounts: unknown, settings: { secret?: string; known?: string } = {}) {
  folder.write({ 'hikidashi.json': JSON.stringify({ mounts }) })
  const loaded = await loadConfig(folder.at('hikidashi.json'))
  if ('problems' in loaded) throw new Error(JSON.stringify(loaded.problems))
  const catalog = await openCatalog(planConfig(loaded.config), {
    log,
    ...(settings.secret === undefined ? {} : { cursorSecret: settings.secret }),
    ...(settings.known === undefined ? {} : { scrubber: createScrubber([settings.known]) }),
  })
  opened.push(catalog)
  const view = catalog.view(everybody)
  return {
    view,
    uris: async () => (await view.list()).items.map(({ uri }) => uri),
    entry: async (uri: string) => (await view.list()).items.find((item) => item.uri === uri),
    read: async (uri: string) => (await view.read(uri)).contents[0],
    text: async (uri: string) => {
      const [content] = (await view.read(uri)).contents
      return content !== undefined && 'text' in content ? content.text : undefined
    },
  }
}

describe('a settings mount of a configuration', () => {
  const settings = { provider: 'settings', root: '.' }

  test('has dotenv files unless "dotenv" is false, also those that git ignores, with redacted secrets, and no keys, dependencies and tool files', async () => {
    folder.write({
      '.gitignore': '.env*\nout/\n',
      '.env': `HOST=db\nTOKEN=${token}\n`,
      '.env~': 'A=1',
      'deploy/prod.env': 'A=1',
      'out/.env': 'A=1',
      'node_modules/x/package.json': '{}',
      '.npmrc': '//registry.npmjs.org/:_authToken=x',
      'server.pem': 'x',
      'package-lock.json': '{}',
      'conf/app.yaml': 'db:\n  host: db\n  password: hunter2\n',
      'readme.md': '# none',
    })
    const { uris, text } = await open({ 'config://x': settings })
    expect(await uris()).toEqual(
      ['.env', 'conf/app.yaml', 'deploy/prod.env', 'hikidashi.json'].map((path) => `config://x/${path}`),
    )
    expect(await text('config://x/.env')).toBe('HOST=[redacted]\nTOKEN=[redacted]\n')
    expect(await text('config://x/conf/app.yaml?pointer=/db')).toBe(
      '{\n  "host": "db",\n  "password": "[redacted]"\n}\n',
    )
    const without = await open({ 'config://x': { ...settings, dotenv: false } })
    expect(await without.uris()).toEqual(['config://x/conf/app.yaml', 'config://x/hikidashi.json'])
  })

  test('obeys the configured encodings and formats and the size limit', async () => {
    folder.write({
      'a.ini': iconv.encode('[会社]\n名前 = 吉野家\n', 'shift_jis'),
      settings: 'port = 1\n',
      'long.json': JSON.stringify('x'.repeat(2000)),
    })
    const { text, view } = await open({
      'config://x': {
        ...settings,
        encodings: [{ match: '*.ini', encoding: 'shift_jis' }],
        formats: { settings: 'toml' },
        maxBytes: '1KiB',
      },
    })
    expect(await text('config://x/a.ini?as=json')).toContain('吉野家')
    expect(await text('config://x/settings?pointer=/port')).toBe('1\n')
    await expect(view.read('config://x/long.json')).rejects.toMatchObject({ kind: 'too-large' })
  })

  test('has the same versions on replicas with the same secret, and other versions with another secret', async () => {
    folder.write({ 'a.json': '{}' })
    const versionBy = async (secret: string) =>
      (await (await open({ 'config://x': settings }, { secret })).entry('config://x/a.json'))?.version
    const first = await versionBy('a'.repeat(32))
    expect(first).toBeTypeOf('string')
    expect(await versionBy('a'.repeat(32))).toBe(first)
    expect(await versionBy('b'.repeat(32))).not.toBe(first)
  })
})

describe('an env mount of a configuration', () => {
  test('of a file has the current variables of the file, with secrets masked', async () => {
    folder.write({ '.env': '\ufeffHOST=db\nNAME="吉野家"\nexport DB_PASSWORD=x\n' })
    const { uris, text, entry } = await open({
      'env://x': { provider: 'env', file: '.env', allow: ['HOST', 'NAME', 'DB_*'] },
    })
    expect(await uris()).toEqual(['env://x/DB_PASSWORD', 'env://x/HOST', 'env://x/NAME'])
    expect(await text('env://x/NAME')).toBe('吉野家')
    expect(await text('env://x/DB_PASSWORD')).toBe('[redacted]')
    const before = await entry('env://x/HOST')
    folder.write({ '.env': 'HOST=other\n' })
    expect(await text('env://x/HOST')).toBe('other')
    expect((await entry('env://x/HOST'))?.version).not.toBe(before?.version)
    expect(await uris()).toEqual(['env://x/HOST'])
  })

  test('of a deleted file is unavailable, and not empty', async () => {
    folder.write({ '.env': 'A=1\n' })
    const { view } = await open({ 'env://x': { provider: 'env', file: '.env' } })
    rmSync(folder.at('.env'))
    await expect(view.read('env://x/A')).rejects.toMatchObject({ kind: 'unavailable' })
  })

  test('removes known secrets from the allowed values', async () => {
    folder.write({ '.env': 'MOTTO=open sesame please\n' })
    const mounts = { 'env://x': { provider: 'env', file: '.env', allow: ['MOTTO'] } }
    const { text } = await open(mounts, { known: 'sesame' })
    expect(await text('env://x/MOTTO')).toBe('open [redacted] please')
  })
})

describe('a files mount of a configuration', () => {
  const files = { provider: 'files', root: '.' }

  test('serves files unchanged, unless "redact" is set', async () => {
    folder.write({ 'notes.txt': `token=${token}\n` })
    const plain = await open({ 'docs://x': files })
    expect(await plain.text('docs://x/notes.txt')).toBe(`token=${token}\n`)
    expect(await plain.entry('docs://x/notes.txt')).toMatchObject({ size: token.length + 7 })
    const masked = await open({ 'docs://x': { ...files, redact: 'mask' } })
    expect(await masked.text('docs://x/notes.txt')).toBe('token=[redacted]\n')
    expect(await masked.entry('docs://x/notes.txt')).not.toHaveProperty('size')
    const withheld = await open({ 'docs://x': { ...files, redact: 'withhold' } })
    expect(await withheld.text('docs://x/notes.txt')).toMatch(/^\[redacted\] This content is withheld/)
    const known = await open({ 'docs://x': { ...files, redact: 'mask' } }, { known: 'xyzzy-plugh' })
    folder.write({ 'magic.txt': 'say xyzzy-plugh\n' })
    expect(await known.text('docs://x/magic.txt')).toBe('say [redacted]\n')
  })

  test('leaves out environment files by any name, and serves their examples', async () => {
    folder.write({ '.env': '', 'prod.env': '', 'example.env': '', '.env.example': '' })
    expect(await (await open({ 'docs://x': { ...files, include: ['*env*'] } })).uris()).toEqual([
      'docs://x/.env.example',
      'docs://x/example.env',
    ])
  })

  test('detects titles, front matter and translations of texts in any encoding', async () => {
    const text = '---\npriority: 0.8\n---\n# 設計書\n\n設定ファイルを変更した後は、必ずサービスを再起動してください。\n'
    folder.write({
      'a.ja.md': iconv.encode(text, 'shift_jis'),
      'a.md': '# Design\n',
      'b.txt': iconv.encode('価格', 'euc-jp'),
    })
    const { entry, read } = await open({
      'docs://x': {
        ...files,
        language: 'ja',
        frontMatter: '*.md',
        encodings: [{ match: 'b.txt', encoding: 'euc-jp' }],
        rules: [{ match: '*.md', title: 'heading', priority: 0.2 }],
      },
    })
    expect(await entry('docs://x/a.ja.md')).toMatchObject({ title: '設計書', priority: 0.8 })
    expect(await entry('docs://x/a.md')).toMatchObject({ title: 'Design', priority: 0.2 })
    expect(await read('docs://x/b.txt')).toMatchObject({ text: '価格', meta: { 'dev.hikidashi/encoding': 'euc-jp' } })
    expect(await read('docs://x/a.md')).toMatchObject({
      meta: { 'dev.hikidashi/alternates': [{ href: 'a.ja.md', language: 'ja' }] },
    })
  })

  test('does not name the translations of a document if access rules hide some paths', async () => {
    folder.write({ 'a.ja.md': 'x', 'a.md': 'x' })
    const rules = [{ allow: ['*'], match: 'a.md' }]
    const { read } = await open({ 'docs://x': { ...files, access: rules } })
    expect(await read('docs://x/a.md')).not.toHaveProperty('meta')
    expect(await problemsIn({ 'docs://x': { ...files, access: rules, languages: ['ja'] } })).toEqual([
      expect.stringMatching(
        /^mounts\["docs:\/\/x"\]\.languages: With "languages", a document would name its translations/,
      ),
    ])
    expect(await problemsIn({ 'docs://x': { ...files, access: ['reader'], languages: ['ja'] } })).toEqual([])
  })

  test('gives a document as text unless "readings" is false or the document is over their limit', async () => {
    folder.write({ 'a.html': '<p>x' })
    const { text, view } = await open({ 'docs://x': { ...files, readings: false } })
    await expect(view.read('docs://x/a.html?as=text')).rejects.toMatchObject({ kind: 'invalid' })
    expect(await text('docs://x/a.html?tail=1')).toBe('<p>x')
    const short = await open({ 'docs://x': { ...files, readings: { maxBytes: 2 } } })
    await expect(short.view.read('docs://x/a.html?as=text')).rejects.toMatchObject({ kind: 'too-large' })
    const all = await open({ 'docs://x': files })
    expect((await all.text('docs://x/a.html?as=text'))?.trim()).toBe('x')
  })

  test('completes the path and the format in its template', async () => {
    folder.write({ 'docs/a.pdf': 'x', 'docs/b.md': 'x' })
    const { view } = await open({ 'docs://x': files })
    const complete = async (name: string, value: string, path?: string) =>
      (
        await view.complete({
          uriTemplate: 'docs://x/{+path}{?as,lines,bytes}',
          argument: { name, value },
          ...(path === undefined ? {} : { arguments: new Map([['path', path]]) }),
        })
      ).values
    expect(await complete('path', 'docs/')).toEqual(['docs/a.pdf', 'docs/b.md'])
    expect(await complete('as', '', 'docs/a.pdf')).toEqual(['text'])
    expect(await complete('as', 'm')).toEqual(['markdown'])
    expect(await complete('lines', '')).toEqual([])
  })
})

describe('polling in a configuration', () => {
  test('is refused if it has no effect', async () => {
    const refused = (mount: unknown) => expect(open({ 'a://a': mount })).rejects
    await refused({ provider: 'files', root: '.', poll: '5s' }).toThrow('reports its changes by itself')
    await refused({ provider: 'env', poll: '5s' }).toThrow('does not change')
  })

  test('reports changes that no watch reports', async () => {
    folder.write({ '.env': 'A=1\n' })
    const { view } = await open({ 'env://x': { provider: 'env', file: '.env', poll: '100ms' } })
    const told = new Promise<readonly string[]>((resolve) => {
      const subscription = view.subscribe?.(({ uris }) => {
        if (uris.length > 0) resolve(uris)
      })
      void subscription?.add(['env://x/A']).then(() => folder.write({ '.env': 'A=2\n' }))
    })
    expect(await told).toEqual(['env://x/A'])
  })
})

test('missing folders and files, and a folder in place of a file, are reported before any mount is opened', async () => {
  expect(
    await problemsIn({ 'a://a': { provider: 'settings', root: 'no' }, 'b://b': { provider: 'env', file: 'no.env' } }),
  ).toEqual([
    expect.stringMatching(/^mounts\["a:\/\/a"\]\.root: There is no folder .*no\. Create it/),
    expect.stringMatching(/^mounts\["b:\/\/b"\]\.file: There is no file .*no\.env\. Create it/),
  ])
  folder.write({ 'dir/': null })
  expect(await problemsIn({ 'b://b': { provider: 'env', file: 'dir' } })).toEqual([
    expect.stringMatching(/is not a file\. Name a file instead\.$/),
  ])
})
