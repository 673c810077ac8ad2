import { linkSync, mkdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Provider } from '../../src/core/provider.ts'
import { packages } from '../../src/providers/packages/index.ts'
import { lockFiles } from '../../src/providers/packages/lock-file.ts'
import { contextOf, createFolder, type Folder, listPaths } from '../support/folder.ts'

// Hostile lock files, and hostile packages.

let folder: Folder
const opened: Provider[] = []

beforeEach(() => {
  folder = createFolder()
})
afterEach(async () => {
  for (const provider of opened.splice(0)) await provider.close?.()
  folder.remove()
})

async function open(globs?: readonly string[]): Promise<Provider> {
  const provider = await packages({ root: folder.root, ...(globs === undefined ? {} : { packages: globs }) })
  opened.push(provider)
  return provider
}

const manifest = (version: string) => JSON.stringify({ version })

/** Installs a package: its package.json and a README. */
function install(at: string, version: string): void {
  folder.write({ [`${at}/package.json`]: manifest(version), [`${at}/README.md`]: `# ${at}\n` })
}

const npmLock = (entries: Readonly<Record<string, unknown>>) =>
  folder.write({ 'package-lock.json': JSON.stringify({ packages: { '': {}, ...entries } }) })

async function read(provider: Provider, path: string): Promise<string> {
  const [content] = await provider.read({ path, params: new Map() }, contextOf())
  return content !== undefined && 'text' in content ? content.text : ''
}

describe('lock files of packages:', () => {
  const canary = 'outside canary'
  beforeEach(() => {
    for (const [name, text] of [
      ['package.json', manifest('1.0.0')],
      ['README.md', canary],
    ] as const)
      writeFileSync(join(folder.outside, name), text)
    install('node_modules/good', '1.0.0')
    folder.write({ 'package.json': manifest('1.0.0'), 'README.md': canary })
  })

  const names = [
    '..',
    '../..',
    '../../outside',
    '/etc',
    '//etc',
    'a/../../../outside',
    '.',
    '.hidden',
    '@../x',
    '@s/..',
    '@s/../..',
  ]
  const others = [
    '__proto__',
    'node_modules',
    '@s/node_modules',
    'a b',
    'a\\..\\b',
    'a\u0000b',
    'x'.repeat(300),
    'C:',
    '%2e%2e',
    '@',
    '@s/',
    '',
  ]

  test.each([...names, ...others])('a package with the name %j in a lock file of npm is not listed', async (name) => {
    npmLock({
      [`node_modules/${name}`]: { version: '1.0.0' },
      'node_modules/good': { version: '1.0.0' },
      [name]: { version: '1.0.0' },
    })
    expect(await listPaths(await open())).toEqual(['good@1.0.0/README.md', 'good@1.0.0/package.json'])
  })

  test.each([...names, ...others].filter((name) => !name.includes('\0')))(
    'a package with the name %j in a lock file of pnpm or yarn is not listed',
    async (name) => {
      folder.write({ 'pnpm-lock.yaml': `packages:\n\n  '${name}@1.0.0':\n    resolution: {}\n  /${name}/1.0.0:\n` })
      install('node_modules/.pnpm/good@1.0.0/node_modules/good', '1.0.0')
      expect(await listPaths(await open())).toEqual([])
      renameSync(folder.at('pnpm-lock.yaml'), folder.at('old'))
      folder.write({
        'yarn.lock': `"${name}@^1":\n  version "1.0.0"\n  dependencies:\n    "${name}" "1"\n\ngood@1:\n  version "1.0.0"\n`,
      })
      expect(await listPaths(await open())).toEqual(['good@1.0.0/README.md', 'good@1.0.0/package.json'])
    },
  )

  test.each([
    '..',
    '1/../../..',
    '1.0.0/../../..',
    '',
    '/',
    '1 0',
    '1\u0000',
    'x'.repeat(200),
    `1${'0'.repeat(200)}`,
    {},
    null,
    1,
  ])('a package with the version %j in a lock file is not listed', async (version) => {
    npmLock({ 'node_modules/good': { version } })
    expect(await listPaths(await open())).toEqual([])
  })

  test('a member named __proto__ is ignored, and a package named constructor is served', async () => {
    install('node_modules/constructor', '1.0.0')
    folder.write({
      'package-lock.json':
        '{"__proto__":{"packages":{"node_modules/good":{"version":"1.0.0"}}},"packages":{"node_modules/constructor":{"version":"1.0.0"},"__proto__":{"version":"1.0.0"},"node_modules/good":{"__proto__":{"version":"1.0.0"}}}}',
    })
    const provider = await open()
    expect(await listPaths(provider)).toEqual(['constructor@1.0.0/README.md', 'constructor@1.0.0/package.json'])
    for (const path of ['__proto__@1.0.0/README.md', 'toString/README.md', 'constructor/README.md'])
      await expect(read(provider, path)).rejects.toMatchObject({ kind: 'not-found' })
  })

  test.each(Object.keys(lockFiles))('%s of 100 MB is refused, and is read again once it is small', async (name) => {
    folder.write({ [name]: `{"packages":{}}${' '.repeat(100 * 1024 * 1024)}` })
    const provider = await open()
    await expect(listPaths(provider)).rejects.toMatchObject({ kind: 'unavailable' })
    folder.write({ [name]: '{"packages":{}}' })
    expect(await listPaths(provider)).toEqual([])
  })

  test.each([
    [
      'package-lock.json',
      `{"packages":{${Array.from({ length: 400_000 }, (_, i) => `"node_modules/p${i}":{"version":"1"}`).join()}}}`,
    ],
    ['pnpm-lock.yaml', `packages:\n${Array.from({ length: 1_000_000 }, (_, i) => `  p${i}@1:\n`).join('')}`],
    ['yarn.lock', Array.from({ length: 700_000 }, (_, i) => `p${i}@1:\n  version 1\n`).join('')],
  ])('%s with too many packages is refused, and other work runs meanwhile', async (name, text) => {
    folder.write({ [name]: text })
    const provider = await open()
    let turns = 0
    const turn = setInterval(() => turns++, 0)
    await expect(listPaths(provider)).rejects.toMatchObject({ kind: 'unavailable' })
    clearInterval(turn)
    expect(turns).toBeGreaterThan(2)
  })

  test('a lock file of npm 6 is refused, because it does not name the folders of packages', async () => {
    folder.write({ 'package-lock.json': '{"lockfileVersion":1,"dependencies":{"zod":{"version":"4.0.0"}}}' })
    await expect(listPaths(await open())).rejects.toThrow('npm 7 or later')
  })

  test.each([
    '',
    '[',
    'null',
    '[]',
    '{"packages":null}',
    '{"packages":[1]}',
    '\u0000',
    '{"packages":{"node_modules/good":null}}',
  ])('a package-lock.json with %j gives no package', async (text) => {
    folder.write({ 'package-lock.json': text })
    const outcome = await listPaths(await open()).catch((error: { kind: string }) => error.kind)
    expect([[], 'unavailable']).toContainEqual(outcome)
  })

  test('a symbolic link or a directory in the place of a lock file is ignored', async () => {
    writeFileSync(
      join(folder.outside, 'package-lock.json'),
      JSON.stringify({ packages: { 'node_modules/good': { version: '1.0.0' } } }),
    )
    symlinkSync(join(folder.outside, 'package-lock.json'), folder.at('package-lock.json'))
    mkdirSync(folder.at('yarn.lock'))
    await expect(open()).rejects.toMatchObject({
      kind: 'invalid',
      message: expect.stringContaining('has none of'),
      detail: { reason: 'configuration' },
    })
  })
})

describe('an installed package', () => {
  test('is served only if the lock file names the version in its own package.json', async () => {
    npmLock({ 'node_modules/a': { version: '2.0.0' }, 'node_modules/b': { version: '1.0.0' } })
    install('node_modules/a', '1.0.0')
    install('node_modules/b', '1.0.0')
    const provider = await open()
    expect(await listPaths(provider)).toEqual(['b@1.0.0/README.md', 'b@1.0.0/package.json'])
    for (const path of ['a@1.0.0/README.md', 'a@2.0.0/README.md'])
      await expect(read(provider, path)).rejects.toMatchObject({ kind: 'not-found' })
    install('node_modules/a', '2.0.0')
    expect(await read(provider, 'a@2.0.0/README.md')).toBe('# node_modules/a\n')
  })

  test.each(['{', 'null', '[]', '{"version":1}', '{"__proto__":{"version":"1.0.0"}}', ''])(
    'with the package.json %j is absent',
    async (text) => {
      npmLock({ 'node_modules/a': { version: '1.0.0' } })
      install('node_modules/a', '1.0.0')
      folder.write({ 'node_modules/a/package.json': text })
      expect(await listPaths(await open())).toEqual([])
    },
  )

  test('of npm serves nothing through symbolic or hard links', async () => {
    writeFileSync(join(folder.outside, 'secret.md'), 'outside canary')
    writeFileSync(join(folder.outside, 'package.json'), manifest('1.0.0'))
    npmLock({
      'node_modules/a': { version: '1.0.0' },
      'node_modules/b': { version: '1.0.0' },
      'node_modules/linked': { version: '1.0.0' },
    })
    install('node_modules/a', '1.0.0')
    install('node_modules/b', '1.0.0')
    symlinkSync(join(folder.outside, 'secret.md'), folder.at('node_modules/a/link.md'))
    symlinkSync('../b/README.md', folder.at('node_modules/a/within.md'))
    symlinkSync(folder.outside, folder.at('node_modules/a/docs'))
    symlinkSync(folder.outside, folder.at('node_modules/linked'))
    linkSync(join(folder.outside, 'secret.md'), folder.at('node_modules/a/hard.md'))
    const provider = await open()
    expect(await listPaths(provider)).toEqual(
      ['a', 'b'].flatMap((name) => [`${name}@1.0.0/README.md`, `${name}@1.0.0/package.json`]),
    )
    for (const path of [
      'a@1.0.0/link.md',
      'a@1.0.0/within.md',
      'a@1.0.0/docs/secret.md',
      'a@1.0.0/hard.md',
      'linked@1.0.0/secret.md',
      'a@1.0.0/../../README.md',
    ])
      await expect(read(provider, path)).rejects.toMatchObject({
        kind: expect.stringMatching(/^(?:not-found|invalid)$/),
      })
  })

  test('of pnpm is read in node_modules/.pnpm, with and without peers, and not through symbolic links', async () => {
    folder.write({
      'pnpm-lock.yaml': `lockfileVersion: '9.0'\n\nimporters:\n\n  .:\n    dependencies:\n      zod@1.0.0:\n\npackages:\n\n  '@s/peer@2.0.0':\n    resolution: {}\n\n  zod@4.6.7:\n    resolution: {}\n\n  gone@1.0.0:\n    resolution: {}\n\nsnapshots:\n\n  '@s/peer@2.0.0(zod@4.6.7)': {}\n`,
    })
    const places = [
      'node_modules/.pnpm/zod@4.6.7/node_modules/zod',
      'node_modules/.pnpm/@s+peer@2.0.0_zod@4.6.7/node_modules/@s/peer',
    ] as const
    install(places[0], '4.6.7')
    install(places[1], '2.0.0')
    mkdirSync(join(folder.outside, 'gone'))
    writeFileSync(join(folder.outside, 'gone/package.json'), manifest('1.0.0'))
    mkdirSync(dirname(folder.at('node_modules/.pnpm/gone@1.0.0/node_modules/x')), { recursive: true })
    symlinkSync(join(folder.outside, 'gone'), folder.at('node_modules/.pnpm/gone@1.0.0/node_modules/gone'))
    symlinkSync(folder.at(places[0]), folder.at('node_modules/zod'))
    linkSync(folder.at(`${places[0]}/README.md`), join(folder.outside, 'in the store'))
    const provider = await open()
    expect(await listPaths(provider)).toEqual(
      ['@s/peer@2.0.0', 'zod@4.6.7'].flatMap((id) => [`${id}/README.md`, `${id}/package.json`]),
    )
    expect(await read(provider, 'zod@4.6.7/README.md')).toBe(`# ${places[0]}\n`)
  })

  test('of yarn, in both formats of its lock file, is found in the node_modules of the project or of the package that needs it', async () => {
    install('node_modules/zod', '4.6.7')
    install('node_modules/old', '1.0.0')
    install('node_modules/old/node_modules/zod', '3.0.0')
    const zod = ['zod@4.6.7/README.md', 'zod@4.6.7/package.json']
    const all = [
      'old@1.0.0/README.md',
      'old@1.0.0/package.json',
      'zod@3.0.0/README.md',
      'zod@3.0.0/package.json',
      ...zod,
    ]
    folder.write({
      'yarn.lock': `# yarn lockfile v1\n\nold@^1:\n  version "1.0.0"\n  resolved "x"\n  dependencies:\n    zod "^3"\n\nzod@^3:\n  version "3.0.0"\n\n"zod@^4", zod@^4.6:\n  version "4.6.7"\n`,
    })
    expect(await listPaths(await open())).toEqual(all)
    folder.write({
      'yarn.lock': `__metadata:\n  version: 8\n\n"old@npm:^1":\n  version: 1.0.0\n  resolution: "old@npm:1.0.0"\n  dependencies:\n    zod: "npm:^3"\n  languageName: node\n\n"zod@npm:^3":\n  version: 3.0.0\n\n"zod@npm:^4, zod@npm:^4.6":\n  version: 4.6.7\n`,
    })
    expect(await listPaths(await open())).toEqual(all)
    expect(await listPaths(await open(['z*']))).toEqual(all.filter((path) => path.startsWith('zod')))
  })
})
