import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Catalog, createCatalog } from '../../src/core/catalog.ts'
import { overReadLimitError, ResourceError, unavailable } from '../../src/core/errors.ts'
import type { Content, Provider } from '../../src/core/provider.ts'
import type { View } from '../../src/core/view.ts'
import { files } from '../../src/providers/files/index.ts'
import { describeProvider } from '../../src/testing/index.ts'
import { frontMatterOf } from '../../src/text/front-matter.ts'
import { encodingKey } from '../../src/wrap/decoded.ts'
import { documented } from '../../src/wrap/documented.ts'
import { documents } from '../../src/wrap/documents.ts'
import { alternatesKey, referenceTo, translationPathsOf } from '../../src/wrap/translations.ts'
import { docx, html } from '../fixtures/documents/office.ts'
import { japanesePdf } from '../fixtures/documents/pdf.ts'
import { encode, textsOf } from '../fixtures/documents/sentences.ts'
import { createFolder, type Folder, listAll, readOne } from '../support/folder.ts'
import { memory } from '../support/memory.ts'

describe('front matter', () => {
  const of = (...lines: readonly string[]) => frontMatterOf(['---', ...lines, '---', '# 見出し'].join('\n'))

  test('gives title, description, priority and audience', () => {
    expect(
      of(
        'title: 引き出しの手引き',
        'description: "使い方: 三つ"',
        'priority: 0.8',
        'audience: [user, assistant]',
        'tags: [a]',
      ),
    ).toEqual({
      title: '引き出しの手引き',
      description: '使い方: 三つ',
      priority: 0.8,
      audience: ['user', 'assistant'],
    })
  })

  test.each<[readonly string[], object]>([
    [['priority: 1'], { priority: 1 }],
    [['priority: 0'], { priority: 0 }],
    [['priority: .5 # half'], { priority: 0.5 }],
    [["priority: '0.25'"], { priority: 0.25 }],
    [['priority: 1.1'], {}],
    [['priority: -0.1'], {}],
    [['priority: high'], {}],
    [['priority:'], {}],
    [['audience: user'], { audience: ['user'] }],
    [['audience: [\'assistant\', "user"]'], { audience: ['assistant', 'user'] }],
    [['audience:', '  - user', '  - assistant'], { audience: ['user', 'assistant'] }],
    [['audience:', '- user', '- user', 'priority: 1'], { audience: ['user'], priority: 1 }],
    [['audience: [user, root]'], {}],
    [['audience: []'], {}],
    [['title: # nothing'], {}],
    [['title: a # b'], { title: 'a' }],
    [['title: a#b'], { title: 'a#b' }],
    [["title: 'it''s'"], { title: "it's" }],
    [['title: "a\\tb\\u3042"'], { title: 'a bあ' }],
    [['title: "a'], {}],
    [['title: >-', '  folded'], {}],
    [['title: a: b'], {}],
    [['title: &x a', 'title: b'], { title: 'b' }],
    [['  title: nested'], {}],
    [['Title: other'], {}],
  ])('gives for %j only the valid values: %j', (lines, wanted) => {
    expect(of(...lines)).toEqual(wanted)
  })

  test('is recognized only between its marks, at the very beginning', () => {
    expect(frontMatterOf('\ufeff---\r\ntitle: a\r\n---\r\n')).toEqual({ title: 'a' })
    expect(frontMatterOf('---\ntitle: a\n...\n')).toEqual({ title: 'a' })
    for (const text of [
      '',
      'title: a',
      '\n---\ntitle: a\n---',
      '---\ntitle: a',
      '----\ntitle: a\n----',
      '+++\ntitle = "a"\n+++',
    ])
      expect(frontMatterOf(text)).toEqual({})
  })
})

describe('documents with front matter', () => {
  const text = '---\ntitle: 手引き\npriority: 0.8\naudience: [user]\n---\n# 見出し\n'

  test('are listed with the title, priority and audience of their front matter, which outrank those of the source', async () => {
    const source = memory({
      'docs/a.md': { text, version: '1', title: '見出し', priority: 0.1 },
      'docs/b.md': { text: '# 無し\n', version: '1', title: '無し', priority: 0.1 },
      'other.md': { text, version: '1' },
    })
    const provider = documented(source, { frontMatter: ['docs/**'] })
    expect(await listAll(provider)).toEqual([
      { path: 'docs/a.md', version: '1', title: '手引き', priority: 0.8, audience: ['user'] },
      { path: 'docs/b.md', version: '1', title: '無し', priority: 0.1 },
      { path: 'other.md', version: '1' },
    ])
    expect(
      await provider.stat?.('docs/a.md', { principal: { id: 'x', roles: [] }, signal: new AbortController().signal }),
    ).toMatchObject({ title: '手引き' })
  })

  test('are opened only if their path is configured for front matter, and once for each version', async () => {
    const source = memory({ 'a.md': { text, version: '1' }, 'b.txt': { text, version: '1' } })
    const provider = documented(source, { frontMatter: ['*.md'] })
    for (let i = 0; i < 3; i++) await listAll(provider)
    expect(source.calls.read).toBe(1)
    source.entries.set('a.md', { text: '---\ntitle: 新しい\n---\n', version: '2' })
    expect(await listAll(provider)).toContainEqual({ path: 'a.md', version: '2', title: '新しい' })
    expect(source.calls.read).toBe(2)
  })

  test('are opened again after a temporary error', async () => {
    const source = memory({ 'a.md': { text, version: '1' } })
    for (const fault of [
      unavailable('Away.'),
      overReadLimitError(9_000_000),
      new ResourceError('internal', 'a fault'),
    ]) {
      let isAway = true
      const provider = documented(
        { ...source, read: async (...asked) => (isAway ? Promise.reject(fault) : source.read(...asked)) },
        { frontMatter: ['**'] },
      )
      expect(await listAll(provider)).toEqual([{ path: 'a.md', version: '1' }])
      isAway = false
      expect(await listAll(provider)).toMatchObject([{ path: 'a.md', title: '手引き' }])
    }
  })

  test('are listed without front matter if they are gone when they are opened, but an unexpected error fails the listing', async () => {
    const source: Provider = {
      ...memory({ 'a.md': 'x' }),
      read: async () => Promise.reject(new Error('a fault of ours')),
    }
    await expect(listAll(documented(source, { frontMatter: ['**'] }))).rejects.toThrow('a fault of ours')
    const gone = documented({ ...memory({}), list: memory({ 'a.md': 'x' }).list }, { frontMatter: ['**'] })
    expect(await listAll(gone)).toEqual([{ path: 'a.md' }])
  })
})

describe('translations of a document', () => {
  test.each<[string, string, string]>([
    ['README.md', 'README.ja.md', 'README.ja.md'],
    ['README.md', 'README_JA.md', 'README_JA.md'],
    ['README.ja.md', 'README.md', 'README.md'],
    ['README-en.md', 'README-ja.md', 'README-ja.md'],
    ['README_EN.md', 'README_JA.md', 'README_JA.md'],
    ['docs/ja/guide/x.md', 'docs/en/guide/x.md', '../../en/guide/x.md'],
    ['docs/guide/x.md', 'docs/ja/guide/x.md', '../ja/guide/x.md'],
    ['docs/ja/x.md', 'docs/x.md', '../x.md'],
    ['guide/x.md', 'ja/guide/x.md', '../ja/guide/x.md'],
    ['guide/x.md', 'guide/ja/x.md', 'ja/x.md'],
    ['資料／全角.ja.md', '資料／全角.md', `${encodeURIComponent('資料／全角')}.md`],
    ['文書/ja/手引き.md', '文書/en/手引き.md', `../en/${encodeURIComponent('手引き')}.md`],
    ['a:b.ja.md', 'a:b.md', './a:b.md'],
  ])('are found by their names: %s has %s', async (path, twin, href) => {
    const provider = documented(memory({ [path]: 'a', [twin]: 'b' }))
    const found = (await readOne(provider, path)).meta?.[alternatesKey] as { href: string }[]
    expect(found.map((alternate) => alternate.href)).toEqual([href])
    expect(referenceTo(twin, path)).toBe(href)
  })

  test('are named with their language, if their path names one', async () => {
    const provider = documented(memory({ 'x.md': 'a', 'x.ja.md': 'b', 'x.zh-cn.md': 'c' }), {
      languages: ['ja', 'en', 'zh-CN'],
    })
    const of = async (path: string) => (await readOne(provider, path)).meta?.[alternatesKey]
    expect(await of('x.md')).toEqual([
      { href: 'x.ja.md', language: 'ja' },
      { href: 'x.zh-cn.md', language: 'zh-cn' },
    ])
    expect(await of('x.ja.md')).toEqual([{ href: 'x.md' }, { href: 'x.zh-cn.md', language: 'zh-cn' }])
  })

  test('are not looked up for files of code, nor without languages, and exclude the document itself', async () => {
    const source = memory({ 'x.ts': 'a', 'x.ja.ts': 'b', 'y.md': 'a', 'y.ja.md': 'b' })
    expect((await readOne(documented(source), 'x.ts')).meta).toBeUndefined()
    expect((await readOne(documented(source, { languages: [] }), 'y.md')).meta).toBeUndefined()
    for (const path of ['README.md', 'a/b/c.md', 'ja/x.md', 'x.ja.md'])
      expect(translationPathsOf(path, ['ja', 'en']).map((twin) => twin.path)).not.toContain(path)
  })
})

const sjis = textsOf('ja', 1, 3000)[0] ?? ''
const held: Readonly<Record<string, string | Uint8Array>> = {
  'README.md': '---\ntitle: 引き出し\npriority: 0.8\n---\n# 見出し\n',
  'README.en.md': '# Heading\n',
  '資料／設計書.docx': docx(),
  '資料／報告.pdf': japanesePdf([['引き出し', '梅雨'], ['二頁目']]),
  '頁.html': html,
  'app.log': '一\n二\n三\n',
}

describe('the wrappers for documents', () => {
  let folder: Folder
  let catalog: Catalog
  let view: View

  beforeAll(async () => {
    folder = createFolder()
    folder.write({ ...held, 'sjis.txt': encode(sjis, 'shift_jis') })
    const provider = documents(await files({ root: folder.root }), { language: 'ja', frontMatter: ['*.md'] })
    catalog = createCatalog({ mounts: [{ address: 'docs://manual', provider }] })
    view = catalog.view({ id: 'test', roles: [] })
  })
  afterAll(async () => {
    await catalog.close()
    folder.remove()
  })

  const read = async (rest: string): Promise<Content> => {
    const [content] = (await view.read(`docs://manual/${rest}`)).contents
    if (content === undefined) throw new Error('no content')
    return content
  }
  const text = async (rest: string) => {
    const content = await read(rest)
    return 'text' in content ? content.text : '(bytes)'
  }

  test('list documents with the title and priority of their front matter', async () => {
    const { items } = await view.list()
    expect(items.find(({ name }) => name === 'README.md')).toMatchObject({ title: '引き出し', priority: 0.8 })
    expect(items.find(({ name }) => name === '設計書.docx')).toBeUndefined()
    expect(items.find(({ name }) => name === '資料／設計書.docx')).toMatchObject({
      uri: `docs://manual/${encodeURIComponent('資料／設計書')}.docx`,
    })
  })

  test('read documents with links to their translations, and with their encoding', async () => {
    expect(await read('README.md')).toMatchObject({
      meta: { [alternatesKey]: [{ href: 'README.en.md', language: 'en' }] },
    })
    expect(await read('sjis.txt')).toMatchObject({ text: sjis, meta: { [encodingKey]: 'shift_jis' } })
  })

  test('read parts of converted documents, ends of logs, and parts of decoded texts', async () => {
    expect(await text('資料／報告.pdf?as=text')).toBe('Page 1\n\n引き出し\n梅雨\n\nPage 2\n\n二頁目\n')
    expect(await text('資料／報告.pdf?as=text&lines=3-4')).toBe('引き出し\n梅雨\n')
    expect(await text('資料／設計書.docx?lines=1-3&as=markdown')).toBe('# 引き出しの設計書\n\n# 第一章　はじめに\n')
    expect(await text('app.log?tail=2')).toBe('二\n三\n')
    const lines = sjis.match(/.*\n/g) ?? []
    expect(await text('sjis.txt?lines=2-3')).toBe(lines.slice(1, 3).join(''))
    expect(await text('README.en.md?as=text&lines=1')).toBe('# Heading\n')
  })

  test('declare their parameters, and refuse other parameters and invalid combinations', async () => {
    const { items } = await view.templates()
    expect(items.map(({ uriTemplate }) => uriTemplate)).toEqual([
      'docs://manual/{+path}',
      'docs://manual/{+path}{?tail}',
      'docs://manual/{+path}{?as,lines,bytes}',
    ])
    for (const query of ['tail=1&as=text', 'tail=1&lines=1', 'as=text&as=text', 'page=1'])
      await expect(read(`app.log?${query}`)).rejects.toMatchObject({ kind: 'invalid' })
    await expect(read('nothing.pdf?as=text')).rejects.toMatchObject({ kind: 'not-found' })
  })

  test('do not declare the parameter "as" if readings are turned off', async () => {
    const plain = documents(memory({ 'a.html': html }), { readings: false })
    expect(
      (await plain.templates?.({ principal: { id: 'x', roles: [] }, signal: new AbortController().signal }))?.map(
        ({ template }) => template,
      ),
    ).toEqual(['{+path}', '{+path}{?tail}', '{+path}{?lines,bytes}'])
  })

  test('pass texts through a filter before they are cut', async () => {
    const loud = (inner: Provider): Provider => ({
      ...inner,
      read: async ({ path, params }, context) =>
        (await inner.read({ path, params }, context)).map((content) =>
          'text' in content ? { ...content, size: content.text.length, text: content.text.toUpperCase() } : content,
        ),
    })
    const provider = documents(memory({ 'a.html': { text: '<p>one<p>two', mimeType: 'text/html' } }), { through: loud })
    const content = await readOne(provider, 'a.html', { params: { as: 'text', lines: '3' } })
    expect('text' in content && content.text).toBe('TWO\n')
    await provider.close?.()
  })
})

describeProvider({ describe, test }, 'the wrapper documents over files', async () => {
  const made = createFolder()
  made.write(held)
  return {
    provider: documents(await files({ root: made.root }), { language: 'ja', frontMatter: ['**/*.md'] }),
    expectation: {
      entries: Object.fromEntries(
        Object.entries(held).map(([path, content]) => [
          path,
          typeof content === 'string' ? { text: content } : { bytes: content },
        ]),
      ),
      missing: ['資料', 'README.ja.md'],
    },
    dispose: made.remove,
  }
})
