import * as fs from 'node:fs'
import { afterEach, expect, test } from 'vitest'
import { compileAccess } from '../../src/core/access.ts'
import { createCatalog } from '../../src/core/catalog.ts'
import type { ResourceError } from '../../src/core/errors.ts'
import type { Provider } from '../../src/core/provider.ts'
import { createFiles, type FilesTestOptions } from '../../src/providers/files/index.ts'
import { createPool } from '../../src/providers/files/place.ts'
import { openRoot } from '../../src/providers/files/root.ts'
import { useFiles } from '../support/files.ts'
import { contextOf, listPaths, textAt } from '../support/folder.ts'

const { folder } = useFiles()
const opened: Provider[] = []
afterEach(async () => {
  for (const provider of opened.splice(0)) await provider.close?.()
})

const fold = (name: string) =>
  name
    .normalize('NFD')
    .replace(/\u00ad/g, '')
    .toLowerCase()
/** The name in a directory that any of its spellings leads to, where the file system folds them; a short name for long ones. */
const resolve = (directory: string, name: string) => {
  const short = (one: string) =>
    `${fold(one).replace(/\..*/, '').slice(0, 6)}~1${/\.[^.]{3}$/.exec(fold(one))?.[0] ?? ''}`
  const names = fs.readdirSync(directory)
  return names.find((one) => fold(one) === fold(name)) ?? names.find((one) => short(one) === fold(name)) ?? name
}
const folding: FilesTestOptions = {
  places: (places) => ({
    ...places,
    child: (parent, name, steps, signal) => places.child(parent, resolve(parent.at, name), steps, signal),
  }),
  look: async (place, name) =>
    fs.lstatSync(`${place.at}/${resolve(place.at, name)}`, { bigint: true, throwIfNoEntry: false }),
}

async function open(portable: boolean) {
  folder.write({
    'secret/plan.md': 'CANARY', 'pub/open.md': 'open', 'pub/が.md': 'composed', '123': 'CANARY 123', 'a~1': 'tilde',
    'confidential.txt': 'CANARY long', 'ignored.txt': 'CANARY ignored', '.gitignore': 'ignored.txt\n',
  }) // biome-ignore format: a tree
  const provider = await createFiles({ root: folder.root, exclude: ['123'] }, { ...folding, portable })
  opened.push(provider)
  return provider
}

const aliases = [
  ...['SECRET/plan.md', 'Secret/plan.md', 'secret/PLAN.MD', 'PUB/open.md', 'pub/OPEN.md', 'pub/Open.md'],
  ...['123\u00ad', 'pub/open\u00ad.md', 'CONFID~1.TXT', 'confid~1.txt', 'IGNORED.txt'],
  ...['ignore~1.txt', 'Confidential.txt'],
]

test.each([false, true])(
  'on a file system that ignores letter case, only the listed name and its Unicode equivalents are found (without directory descriptors: %s) (PT36)',
  async (portable) => {
    const provider = await open(portable)
    // The file system itself knows them all.
    for (const path of aliases) {
      let at: string = folder.root
      for (const segment of path.split('/')) at = `${at}/${resolve(at, segment)}`
      expect(fs.existsSync(at), path).toBe(true)
    }
    const listed = ['.gitignore', 'a~1', 'confidential.txt', 'pub/open.md', 'pub/が.md', 'secret/plan.md']
    expect(await listPaths(provider)).toEqual(listed)
    for (const path of listed) expect(await textAt(provider, path), path).not.toMatch(/^!/)
    for (const path of aliases) {
      expect(await textAt(provider, path), path).toBe('!not-found')
      await expect(provider.stat?.(path, contextOf()), path).rejects.toMatchObject({ kind: 'not-found' })
    }
    for (const prefix of ['SECRET/', 'PUB/']) expect(await listPaths(provider, { prefix })).toEqual([])
    expect(await textAt(provider, 'pub/が.md'.normalize('NFD'))).toBe('composed')
  },
)

test.each([false, true])(
  'another spelling of a path does not bypass an access rule (without directory descriptors: %s) (PT36)',
  async (portable) => {
    const access = compileAccess([{ allow: ['*'] }, { deny: ['*'], match: ['secret/**', 'confidential.txt'] }])
    const catalog = createCatalog({ mounts: [{ address: 'file:///docs', provider: await open(portable), access }] })
    const view = catalog.view({ id: 'guest', roles: [] })
    for (const path of ['secret/plan.md', 'confidential.txt', ...aliases])
      await expect(view.read(`file:///docs/${encodeURI(path)}`), path).rejects.toMatchObject({ kind: 'not-found' })
    expect((await view.read('file:///docs/pub/open.md')).contents).toMatchObject([{ text: 'open' }])
    await catalog.close()
  },
)

/** The names that Windows takes for something else than a file in the folder: other folders, streams, devices, names without their ends. */
const windowsAliases = [
  ...[
    '2024\\plan.md',
    '..\\outside\\f',
    'a.md::$DATA',
    'a.md:stream',
    'C:',
    'a.md.',
    'a.md ',
    'a.md. .',
    '2024./plan.md',
  ],
  ...[
    '2024 /plan.md',
    'CON',
    'con',
    'NUL',
    'nul.txt',
    'NUL .txt',
    'COM1',
    'com¹.log',
    'LPT9.md',
    'CONIN$',
    'a.m?',
    'a.*',
  ],
]

test('on Windows, names that the system takes for other files, streams or devices are absent (PT36)', async () => {
  folder.write({
    '2024/plan.md': 'CANARY',
    'a.md': 'open',
    'console.md': 'console',
    'com10.md': 'com',
    'nul-1.md': 'nul',
  })
  /** Opens what Windows opens: a backslash is a separator, streams and ends are dropped, wildcards and devices lead to `a.md`. */
  const opens = (name: string) => {
    const plain = name.replace(/:.*/s, '').replace(/[. ]+$/, '')
    if (/^(?:con|nul|com.|lpt.|conin\$)(?: *\..*)?$/i.test(plain) || /[?*]/.test(plain) || plain === '') return 'a.md'
    return plain.replaceAll('\\', '/')
  }
  for (const portable of [false, true]) {
    const provider = await createFiles(
      { root: folder.root, exclude: ['2024/**'] },
      {
        portable,
        platform: 'win32',
        places: (places) => ({
          ...places,
          child: (parent, name, steps, signal) => places.child(parent, opens(name), steps, signal),
        }),
        look: async () => undefined,
      },
    )
    opened.push(provider)
    expect(await listPaths(provider)).toEqual(['a.md', 'com10.md', 'console.md', 'nul-1.md'])
    for (const path of windowsAliases) {
      expect(await textAt(provider, path), path).toBe('!not-found')
      await expect(provider.stat?.(path, contextOf()), path).rejects.toMatchObject({ kind: 'not-found' })
      expect(await listPaths(provider, { prefix: `${path}/` }), path).toEqual([])
    }
    const access = compileAccess([{ allow: ['*'] }, { deny: ['*'], match: '2024/**' }])
    const catalog = createCatalog({ mounts: [{ address: 'file:///C:/docs', provider, access }] })
    const view = catalog.view({ id: 'guest', roles: [] })
    for (const path of windowsAliases) {
      const uri = `file:///C:/docs/${path.split('/').map(encodeURIComponent).join('/')}`
      await expect(view.read(uri), uri).rejects.toMatchObject({ kind: 'not-found' })
      await expect(view.directory({ uri: `${uri}/` }), uri).rejects.toMatchObject({ kind: 'not-found' })
    }
  }
})

test('without directory descriptors, names that Windows would split are not opened on Windows, and are opened elsewhere (PT36)', async () => {
  folder.write({ 'a\\b.md': 'CANARY', 'a.md': 'open' })
  for (const [platform, kind] of [
    ['win32', 'not-found'],
    ['darwin', undefined],
    ['linux', undefined],
  ] as const) {
    // biome-ignore format: a table
    const places = await openRoot({ root: folder.root, allowMounts: false, portable: true, platform, servesPrivate: () => true }, createPool(), () => {})
    const { signal } = new AbortController()
    const child = places.child(await places.root(signal), 'a\\b.md', { directory: false }, signal)
    const found = await child.then(() => undefined, (error: unknown) => (error as ResourceError).kind) // biome-ignore format: short
    expect(found, platform).toBe(kind)
  }
})

test.each(['linux', 'darwin'] as const)(
  'on %s, names that are special to Windows are ordinary (PT36)',
  async (platform) => {
    const names = ['2024\\plan.md', 'a.md.', 'a.md:stream', 'con', 'nul.txt']
    folder.write(Object.fromEntries(names.map((name) => [name, name])))
    const provider = await createFiles({ root: folder.root }, { platform })
    opened.push(provider)
    expect(await listPaths(provider)).toEqual([...names].sort())
    for (const path of names) expect(await textAt(provider, path), path).toBe(path)
  },
)
