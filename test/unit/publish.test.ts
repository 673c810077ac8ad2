import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { Ajv } from 'ajv'
import addFormats from 'ajv-formats'
import { afterAll, describe, expect, test } from 'vitest'
import { readBundledConfig } from '../../src/cli/operations/publish/curated.ts'
import {
  bundleManifest,
  localizedTexts,
  type OwnPackage,
  ownPackage,
  serverJson,
} from '../../src/cli/operations/publish/manifest.ts'
import { placePackages, runtimeFilesOf } from '../../src/cli/operations/publish/mcpb.ts'

const data = join(import.meta.dirname, '../data')
function validatorOf(file: string) {
  const ajv = new Ajv({ strict: false, allErrors: true })
  addFormats.default(ajv)
  const { $schema: _, ...schema } = JSON.parse(readFileSync(join(data, file), 'utf8')) as Record<string, unknown>
  const validate = ajv.compile(schema)
  return (value: unknown) => (validate(value) ? [] : validate.errors)
}

const own: OwnPackage = ownPackage()
const webMount = { provider: 'web', url: 'https://www.example.org/docs', pages: [{ path: 'a' }] }

describe('the file server.json', () => {
  const faults = validatorOf('registry/server-2025-12-11.schema.json')
  const name = 'io.github.someone/hikidashi'

  test('follows the schema of the registry', () => {
    const described = serverJson(own, {
      name,
      repository: 'https://github.com/someone/hikidashi',
      website: 'https://hikidashi.example',
      remotes: ['https://context.example.org/mcp'],
    })
    expect(faults(described)).toEqual([])
    expect(faults({ ...described, name: 'x' })).not.toEqual([])
    expect(described).toMatchObject({
      version: own.version,
      packages: [{ identifier: own.name, version: own.version }],
    })
    expect(described.$schema).toBe(
      JSON.parse(readFileSync(join(data, 'registry/server-2025-12-11.schema.json'), 'utf8')).$id,
    )
  })

  test('has the name and the repository of package.json, and no repository if it names none', () => {
    const described = serverJson(own, { name })
    expect(faults(described)).toEqual([])
    expect(Object.keys(described)).not.toContain('repository')
    const known = { ...own, mcpName: name, repository: { url: 'git+https://github.com/someone/hikidashi.git' } }
    expect(serverJson(known, {})).toMatchObject({
      name,
      repository: { url: 'https://github.com/someone/hikidashi', source: 'github' },
    })
  })

  test.each<[object, RegExp]>([
    [{}, /--name io\.github\.USER/],
    [{ name: 'hikidashi' }, /not a name for the registry/],
    [{ name, description: 'x'.repeat(101) }, /101 characters/],
    [{ name, title: '' }, /0 characters/],
    [{ name, repository: 'https://git.example.org/x' }, /github\.com and gitlab\.com/],
    [{ name, repository: 'someone/hikidashi' }, /--repository must be a URL/],
    [{ name, remotes: ['ftp://x'] }, /--remote must be a URL/],
    [{ name, website: 'https://me:secret@x.example' }, /--website must be a URL/],
  ])('is refused with the options %j', (options, message) => expect(() => serverJson(own, options)).toThrow(message))

  test('is refused if its name differs from that in package.json', () =>
    expect(() => serverJson({ ...own, mcpName: 'a/b' }, { name })).toThrow(/"mcpName": "a\/b"/))
})

describe('the manifest of a bundle', () => {
  const manifest = bundleManifest(own, { author: 'Somebody', platforms: ['linux'] })

  test('follows the schema of MCP bundles', () => {
    const faults = validatorOf('mcpb/manifest-0.4.schema.json')
    expect(faults(manifest)).toEqual([])
    expect(faults({ ...manifest, resources: [] })).not.toEqual([])
  })

  test('has its name, descriptions and keywords in Japanese too', () => {
    for (const key of ['display_name', 'description', 'long_description', 'keywords'])
      expect(localizedTexts.ja?.[key]).toEqual(expect.anything())
    expect(Object.keys(localizedTexts.ja ?? {}).every((key) => key in manifest)).toBe(true)
  })
})

describe('a bundle with a configuration', () => {
  const folder = mkdtempSync(join(tmpdir(), 'hikidashi-curated-'))
  afterAll(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'shop-data.json')
  const read = (config: object) => {
    const text = JSON.stringify(config)
    writeFileSync(file, text)
    return readBundledConfig(file, text)
  }
  const shop = { provider: 'postgres', url: { env: 'SHOP_URL' }, title: 'Orders' }

  test('asks for each secret, and serves the configuration', async () => {
    const curated = await read({
      mounts: { 'db://shop': shop, 'api://shop': { ...shop, title: undefined }, 'web://docs': webMount },
    })
    const manifest = bundleManifest(own, { author: 'Somebody', platforms: ['linux'], curated })
    expect(validatorOf('mcpb/manifest-0.4.schema.json')(manifest)).toEqual([])
    expect(manifest).toMatchObject({
      ...{ name: 'shop-data', display_name: 'shop-data' },
      server: {
        mcp_config: {
          args: [expect.any(String), 'serve', '--config', '${__dirname}/hikidashi.json', '--stdio'],
          env: { SHOP_URL: '${user_config.SHOP_URL}' },
        },
      },
      user_config: {
        SHOP_URL: {
          ...{ type: 'string', sensitive: true, required: true },
          description: 'The secret for "url" of db://shop, "url" of api://shop.',
        },
      },
    })
    expect(manifest).not.toHaveProperty('user_config.folders')
    expect(manifest).not.toHaveProperty('localization')
    const both = bundleManifest(own, { author: 'Somebody', platforms: ['linux'], curated, folders: true })
    expect(both).toHaveProperty('user_config.folders')
    expect(both).toHaveProperty('server.mcp_config.args[2]', '${user_config.folders}')
  })

  test.each<[string, object, RegExp]>([
    ['a folder', { 'a://b': { provider: 'files', root: './docs' } }, /a:\/\/b reads root "\.\/docs" of this machine/],
    ['a database file', { 'a://b': { provider: 'sqlite', file: 'shop.db' } }, /reads file "shop\.db" of this machine/],
    ['an environment', { 'a://b': { provider: 'env' } }, /reads the environment of the process of this machine/],
    ['a secret in a file', { 'a://b': { ...shop, url: { file: 'url' } } }, /secret in the file url\. Write \{ "env"/],
  ])('is refused with %s of this machine', (_, mounts, message) => expect(read({ mounts })).rejects.toThrow(message))

  test('is refused with settings of an HTTP server, with a secret, and with an unknown provider', async () => {
    const mounts = { 'db://shop': shop }
    await expect(read({ mounts, http: { listen: 8787 } })).rejects.toThrow(/"http" is for a server/)
    const token = `ghp_${'k8QzT2'.repeat(6)}`
    const described = { ...webMount, description: `Authorization: Bearer ${token}` }
    await expect(read({ mounts: { 'web://docs': described } })).rejects.toThrow(/Line 1 of .* looks like a secret/)
    await expect(read({ mounts: { 'db://shop': { provider: 'nothing' } } })).rejects.toThrow(/provider/)
  })
})

test('the page, the README and the header of the explorer have the same logo, and the icon of a bundle is a PNG of 512 by 512 pixels', () => {
  const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url))
  const mark = read('src/explorer/web/icon.svg').toString()
  expect(read('docs/images/mark.svg').toString()).toBe(mark)
  const shapes = (text: string) =>
    [...text.matchAll(/ (?:d|x|y|width|height|rx|fill|stroke)="([^"{]+)"/g)].map(([one]) => one.trim())
  const component = /function Mark[\s\S]*?<svg[^>]*>([\s\S]*?)<\/svg>/.exec(
    read('src/explorer/web/shell/icons.tsx').toString(),
  )
  expect(shapes(component?.[1] ?? '')).toEqual(shapes(/<svg[^>]*>([\s\S]*)<\/svg>/.exec(mark)?.[1] ?? ''))
  const picture = read('src/explorer/web/icon.png')
  expect([picture.toString('latin1', 1, 4), picture.readUInt32BE(16), picture.readUInt32BE(20)]).toEqual([
    'PNG',
    512,
    512,
  ])
  expect(bundleManifest(own, { author: 'Somebody', platforms: ['linux'] }).icon).toBe('icon.png')
})

describe('the packages in a bundle', () => {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'hikidashi-packages-')))
  afterAll(() => rmSync(root, { recursive: true }))
  const put = (path: string, content: object | string) => {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), typeof content === 'string' ? content : JSON.stringify(content))
  }
  const pack = (path: string, name: string, dependencies: Record<string, string> = {}, more: object = {}) =>
    put(`${path}/package.json`, { name, dependencies, ...more })
  const placed = async (path: string) =>
    (await placePackages(join(root, path))).map(({ at, folder }) => [at, folder.slice(root.length + 1)])

  test('are included once each, and in a second version where one is needed', async () => {
    pack('npm', 'own', { a: '1', b: '1' })
    pack(
      'npm/node_modules/a',
      'a',
      { c: '1' },
      { optionalDependencies: { missing: '1' }, peerDependencies: { b: '1' } },
    )
    pack('npm/node_modules/b', 'b', { c: '2' })
    pack('npm/node_modules/c', 'c', { a: '1' })
    pack('npm/node_modules/b/node_modules/c', 'c')
    pack('npm/node_modules/unused', 'unused')
    expect(await placed('npm')).toEqual([
      ['node_modules/own', 'npm'],
      ['node_modules/a', 'npm/node_modules/a'],
      ['node_modules/b', 'npm/node_modules/b'],
      ['node_modules/c', 'npm/node_modules/c'],
      ['node_modules/b/node_modules/c', 'npm/node_modules/b/node_modules/c'],
    ])
  })

  test('are found where pnpm links them', async () => {
    const store = 'pnpm/node_modules/.pnpm'
    pack(`${store}/own@1/node_modules/own`, 'own', { '@s/a': '1' })
    pack(`${store}/a@1/node_modules/@s/a`, '@s/a', { c: '1' })
    pack(`${store}/c@1/node_modules/c`, 'c')
    const link = (from: string, to: string) => {
      mkdirSync(dirname(join(root, from)), { recursive: true })
      symlinkSync(join(root, to), join(root, from))
    }
    link(`${store}/own@1/node_modules/@s/a`, `${store}/a@1/node_modules/@s/a`)
    link(`${store}/a@1/node_modules/c`, `${store}/c@1/node_modules/c`)
    link('pnpm/node_modules/own', `${store}/own@1/node_modules/own`)
    expect((await placed('pnpm/node_modules/own')).map(([at]) => at)).toEqual([
      'node_modules/own',
      'node_modules/@s/a',
      'node_modules/c',
    ])
  })

  test('are refused if one of them is missing', async () => {
    pack('broken', 'own', { gone: '1' })
    await expect(placed('broken')).rejects.toThrow(/own needs gone/)
  })

  test('have the files that are needed to run, and licences: no types, maps and C sources', async () => {
    for (const file of [
      'index.js',
      'index.d.ts',
      'index.js.map',
      'README.md',
      'LICENSE.md',
      'a.c',
      'a.node',
      'node_modules/x/i.js',
      'lib/x.wasm',
    ])
      put(`one/${file}`, '')
    const one = { name: 'one', folder: join(root, 'one'), at: 'node_modules/one' }
    expect(await runtimeFilesOf(one)).toEqual(['LICENSE.md', 'a.node', 'index.js', 'lib/x.wasm'])
    expect(await runtimeFilesOf(one, ['lib', 'index.js'])).toEqual(['index.js', 'lib/x.wasm'])
  })
})
