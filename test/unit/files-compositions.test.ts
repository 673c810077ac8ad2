import { expect, test } from 'vitest'
import { compileAccess } from '../../src/core/access.ts'
import { createCatalog } from '../../src/core/catalog.ts'
import type { Provider } from '../../src/core/provider.ts'
import type { FilesOptions } from '../../src/providers/files/index.ts'
import { useFiles } from '../support/files.ts'
import { contextOf, listAll, listPaths, textAt } from '../support/folder.ts'

/** Names as a keyboard writes them, and as macOS writes them into folders. */
const [folderName, fileName] = ['秘密が', 'プログラム.md']
const listed = `${folderName}/${fileName}`.normalize('NFD')
const typed = `${folderName}/${fileName}`
const [listedFolder = '', typedFolder = ''] = [listed, typed].map((path) => path.slice(0, path.indexOf('/') + 1))

const { folder, open } = useFiles()

const served = async (options: Partial<FilesOptions> = {}) => {
  folder.write({ [listed]: 'text', 'open.md': 'open' })
  return open(options)
}

const viewOf = (provider: Provider, rules?: Parameters<typeof compileAccess>[0]) =>
  createCatalog({
    mounts: [{ address: 'file:///d', provider, ...(rules && { access: compileAccess(rules) }) }],
  }).view({ id: 'a', roles: ['reader'] })

const uriOf = (path: string) => `file:///d/${path.split('/').map(encodeURIComponent).join('/')}`

test.each([false, true])(
  'a file is served under its listed name if it is requested in another Unicode composition (portable: %s)',
  async (portable) => {
    folder.write({ [listed]: 'text', 'é.md': 'composed' })
    const provider = await open({}, portable)
    expect(await listPaths(provider)).toEqual(['é.md', listed])
    for (const path of [listed, typed, `${listedFolder}${fileName}`, `${typedFolder}${fileName.normalize('NFD')}`]) {
      expect(await textAt(provider, path)).toBe('text')
      expect(await provider.stat?.(path, contextOf())).toMatchObject({ path: listed })
    }
    expect(await provider.stat?.(typedFolder, contextOf())).toMatchObject({ path: listedFolder })
    expect(await textAt(provider, 'e\u0301.md')).toBe('composed')
    const view = viewOf(provider)
    expect((await view.read(uriOf(typed))).contents).toMatchObject([
      { uri: uriOf(listed), name: fileName.normalize('NFD'), text: 'text' },
    ])
    expect((await view.directory({ uri: uriOf(typedFolder) })).items).toMatchObject([{ uri: uriOf(listed) }])
    expect((await view.read(uriOf(typedFolder))).contents[0]).toMatchObject({
      text: expect.stringContaining(fileName.normalize('NFD')) as string,
    })
    expect((await view.read(uriOf(typedFolder.slice(0, -1)))).contents).toMatchObject([{ text: 'text' }])
  },
)

test('a name that is listed in several Unicode compositions is found only as it is listed', async () => {
  folder.write({ 'A\u030a.md': 'two', '\u00c5.md': 'one' })
  const provider = await open()
  expect(await textAt(provider, 'A\u030a.md')).toBe('two')
  expect(await textAt(provider, '\u00c5.md')).toBe('one')
  expect(await textAt(provider, '\u212b.md')).toBe('!not-found')
})

test('a folder is listed page by page under another Unicode composition of its name', async () => {
  const names = Array.from({ length: 12 }, (_, i) => `${listedFolder}${String(i).padStart(2, '0')}.md`)
  folder.write(Object.fromEntries(names.map((name) => [name, 'text'])))
  const catalog = createCatalog({
    mounts: [{ address: 'file:///d', provider: await open() }],
    pages: { first: 2, most: 5 },
  })
  const view = catalog.view({ id: 'a', roles: [] })
  const found: string[] = []
  let cursor: string | undefined
  do {
    const page = await view.directory({ uri: uriOf(typedFolder), ...(cursor === undefined ? {} : { cursor }) })
    found.push(...page.items.map(({ uri }) => uri))
    cursor = page.nextCursor
  } while (cursor !== undefined)
  expect(found).toEqual(names.map(uriOf))
})

test.each([
  ['deny', [{ allow: ['*'] }, { deny: ['*'], match: `${typedFolder}**` }]],
  ['allow', [{ allow: ['*'], match: 'open.md' }]],
])('an access rule with "%s" judges a name in any Unicode composition', async (_, rules) => {
  const view = viewOf(await served(), rules)
  expect((await view.list()).items.map(({ uri }) => uri)).toEqual([uriOf('open.md')])
  for (const path of [listed, typed, listedFolder, typedFolder])
    await expect(view.read(uriOf(path)), path).rejects.toMatchObject({ kind: 'not-found' })
})

test('an access function that judges only the listed name hides the file in every Unicode composition', async () => {
  const provider = await served()
  const access = (_: unknown, path: string) => path !== listed
  const view = createCatalog({ mounts: [{ address: 'file:///d', provider, access }] }).view({ id: 'a', roles: [] })
  for (const path of [listed, typed])
    await expect(view.read(uriOf(path)), path).rejects.toMatchObject({ kind: 'not-found' })
})

test.each<[string, Partial<FilesOptions>, string[]]>([
  ['include', { include: [`${typedFolder}**`] }, [listed]],
  ['include of a file', { include: [fileName] }, [listed]],
  ['include of a path with wildcards', { include: [`${folderName}/*グ*.md`] }, [listed]],
  ['exclude', { exclude: [typedFolder] }, ['open.md']],
  ['exceptions', { defaultExcludes: { except: ['*.md'] } }, ['open.md', listed].sort()],
])('the option "%s" judges a name in any Unicode composition', async (_, options, wanted) => {
  expect(await listPaths(await served(options))).toEqual(wanted)
})

test('a rule about files judges a name in any Unicode composition', async () => {
  const provider = await served({ rules: [{ match: typed, title: 'Ruled' }] })
  expect(await listAll(provider)).toMatchObject([{ path: 'open.md' }, { path: listed, title: 'Ruled' }])
})

test.each([
  ['プロ', ''],
  ['プロ', folderName],
])(
  'completion finds names in another Unicode composition than the typed %s, in the folder "%s"',
  async (stem, directory) => {
    folder.write({ [`${directory}/${fileName}`.normalize('NFD')]: '', [`${directory}/あ.md`.normalize('NFD')]: '' })
    const view = viewOf(await open())
    const head = directory === '' ? '' : `${directory}/`
    const { values } = await view.complete({
      uriTemplate: 'file:///d/{+path}',
      argument: { name: 'path', value: `${head}${stem}` },
    })
    expect(values.map((value) => decodeURIComponent(value).normalize('NFC'))).toEqual([`${head}${fileName}`])
  },
)

test('a subscription to a URI in another Unicode composition is notified of changes of the file', async () => {
  const provider = await served({ reconcile: 100 })
  const view = viewOf(provider)
  const heard: string[] = []
  const subscription = view.subscribe?.(({ uris }) => heard.push(...uris))
  expect(await subscription?.add([uriOf(typed)])).toEqual([uriOf(typed)])
  folder.write({ [listed]: 'changed' })
  await expect.poll(() => heard).toContain(uriOf(typed))
  subscription?.close()
})
