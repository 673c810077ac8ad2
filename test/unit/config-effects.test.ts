import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { settingsShape } from '../../src/config/schema.ts'
import { loadMountSchemas } from '../../src/config/schema-parts.ts'
import { settingEffects, withheldParts, withoutParts } from '../../src/config/untrusted.ts'
import { type SourceName, sources } from '../../src/providers/index.ts'
import { type EffectRules, effectsBy } from '../../src/schema/shapes.ts'
import { leadsOut } from '../../src/schema/values.ts'

const base = mkdtempSync(join(tmpdir(), 'hikidashi-effects-'))
afterAll(() => rmSync(base, { recursive: true, force: true }))
const folder = join(base, 'project')
for (const name of ['project/docs', 'project/.git', 'private']) mkdirSync(join(base, name), { recursive: true })
for (const name of ['project/a.sqlite', 'project/.env', 'project/token', 'private/token', 'private/a.sqlite'])
  writeFileSync(join(base, name), 'x')
symlinkSync(join(base, 'private'), join(folder, 'away'))
symlinkSync(join(base, 'private', 'a.sqlite'), join(folder, 'away.sqlite'))
symlinkSync(join(base, 'not-yet'), join(folder, 'dangling'))
symlinkSync('docs', join(folder, 'within'))

const schemas = await loadMountSchemas()
const common = ['title', 'description', 'link', 'access', 'scopes', 'cache', 'poll', 'limits', 'provider']

describe('the declarations of effects', () => {
  test.each(Object.keys(sources) as SourceName[])('of the provider %s cover each of its options', async (name) => {
    const { source } = await sources[name].schema()
    const options = Object.keys(source.shape).filter((key) => !common.includes(key))
    expect(Object.keys(source.effects.options).sort()).toEqual(options.sort())
  })

  test('cover every setting beside the mounts, also those of http, http.auth and store', () => {
    const http = settingsShape.http.unwrap().shape
    expect(Object.keys(settingEffects.settings).sort()).toEqual(Object.keys(settingsShape).sort())
    expect(Object.keys(settingEffects.http).sort()).toEqual(Object.keys(http).sort())
    expect(Object.keys(settingEffects.auth).sort()).toEqual(Object.keys(http.auth.unwrap().shape).sort())
    expect(Object.keys(settingEffects.store).sort()).toEqual(Object.keys(settingsShape.store.unwrap().shape).sort())
  })

  test('treat an option without a declaration as one that needs trust', () => {
    const rules = { a: 'none' } as EffectRules<{ a: string }>
    const context = { folder, address: 'x://y' }
    expect(effectsBy(rules, { a: 'x', ...({ b: 'y' } as object) }, context)).toEqual([{ kind: 'starts', what: 'b' }])
  })
})

/** The kinds of effects of one mount, as it would be written. */
function kindsOf(mount: object, address = 'x://y'): readonly string[] {
  return schemas.effectsOf(schemas.mount.parse(mount), { folder, address }).map(({ kind, what }) => `${kind} ${what}`)
}

describe('a mount that only reads its own folder', () => {
  test.each([
    { provider: 'files', root: '.' },
    { provider: 'files', root: 'docs', symlinks: 'beneath', hidden: true },
    { provider: 'files', root: 'within' },
    { provider: 'files', root: 'not-there-yet' },
    { provider: 'settings', root: '.', allow: ['*'] },
    { provider: 'prompts', root: './docs' },
    { provider: 'git', repository: '.' },
    { provider: 'sqlite', file: 'a.sqlite', rows: true },
    { provider: 'env', file: '.env', allow: ['A'] },
    { provider: 'inline', text: 'x' },
    { provider: 'results', write: ['*'] },
    { provider: 'search', over: ['file:///a'] },
    { provider: 'metrics', source: 'self' },
  ])('has no effect: %j', (mount) => expect(kindsOf(mount)).toEqual([]))
})

describe('the effects that need trust', () => {
  const env = { env: 'X' }
  test.each([
    [{ provider: 'files', root: '..' }, 'reads ..'],
    [{ provider: 'files', root: '../private' }, 'reads ../private'],
    [{ provider: 'files', root: '~/' }, 'reads ~/'],
    [{ provider: 'files', root: 'away' }, 'reads away'],
    [{ provider: 'files', root: 'dangling' }, 'reads dangling'],
    [{ provider: 'files', root: 'dangling/x' }, 'reads dangling/x'],
    [
      { provider: 'files', root: '.', hardlinks: true },
      'reads files that have a second name (a hard link) outside the folder',
    ],
    [{ provider: 'files', root: '.', allowMounts: true }, 'reads other file systems that are mounted in the folder'],
    [{ provider: 'settings', root: '/etc' }, 'reads /etc'],
    [{ provider: 'prompts', root: '/etc' }, 'reads /etc'],
    [
      { provider: 'packages', root: '.' },
      'reads files of packages that have a second name (a hard link) outside the folder',
    ],
    [{ provider: 'packages', root: '/etc' }, 'reads /etc'],
    [{ provider: 'git', repository: '.', git: './git' }, 'starts ./git'],
    [{ provider: 'files', root: '.', readings: { ocr: { languages: ['eng'] } } }, 'starts tesseract'],
    [{ provider: 'git', repository: '.', alternates: ['../private'] }, 'reads ../private'],
    [{ provider: 'git', repository: 'away' }, 'reads away'],
    [{ provider: 'sqlite', file: '../private/a.sqlite' }, 'reads ../private/a.sqlite'],
    [{ provider: 'sqlite', file: 'away.sqlite' }, 'reads away.sqlite'],
    [{ provider: 'env' }, 'reads the environment of the process'],
    [{ provider: 'env', file: '../private/token' }, 'reads ../private/token'],
    [{ provider: 'screen' }, 'reads what the displays of this machine show'],
    [{ provider: 'remote', command: 'sh', args: ['-c', 'x'] }, 'starts sh -c x'],
    [{ provider: 'remote', url: 'https://e.example/mcp' }, 'sends https://e.example/mcp'],
    [
      { provider: 'remote', url: 'https://e.example/mcp', bearer: { file: '../private/token' } },
      'reads ../private/token',
    ],
    [{ provider: 'web', url: 'https://e.example', pages: ['a'] }, 'sends https://e.example'],
    [{ provider: 'web', pages: ['a'] }, 'sends https://address.example'],
    [{ provider: 'api', url: 'https://e.example', routes: [{ template: 'a' }] }, 'sends https://e.example'],
    [{ provider: 'metrics', url: 'http://127.0.0.1:9090' }, 'sends http://127.0.0.1:9090'],
    [{ provider: 's3', bucket: 'b' }, 'sends Amazon S3'],
    [{ provider: 'gcs', bucket: 'b', keyFile: '/k' }, 'reads /k'],
    [{ provider: 'gdrive' }, 'sends Google Drive'],
    [{ provider: 'postgres', url: env }, 'sends the database that the variable X names'],
    [{ provider: 'mysql', url: env, tls: { ca: '../private/token' } }, 'reads ../private/token'],
    [
      { provider: 'search', over: ['a://b'], embeddings: { model: 'm', ollama: { url: 'http://127.0.0.1:1' } } },
      'sends http://127.0.0.1:1',
    ],
    [
      { provider: 'search', over: ['a://b'], embeddings: { model: 'm', local: {} } },
      'sends the server that local models are downloaded from',
    ],
  ])('of the mount %j include: %s', (mount, effect) =>
    expect(kindsOf(mount, 'https://address.example')).toContain(effect),
  )
})

describe('parts that are left out of an untrusted configuration', () => {
  const files = { provider: 'files', root: '.' }
  const remote = { provider: 'remote', command: 'sh' }

  test.each([
    [{ audit: { file: 'log' } }, 'audit'],
    [{ store: { sqlite: 'store.sqlite' } }, 'store'],
    [{ store: { postgres: { env: 'X' } } }, 'store'],
    [{ cursorSecret: { file: '../private/token' } }, 'cursorSecret'],
    [{ http: { listen: '0.0.0.0:80' } }, 'http'],
    [{ http: { allowedHosts: ['evil.example'] } }, 'http'],
    [{ http: { allowedOrigins: ['https://evil.example'] } }, 'http'],
    [{ http: { auth: { tokens: '../private/token' } } }, 'http'],
    [{ http: { auth: { issuers: [{ issuer: 'https://e.example', jwks: 'https://e.example/k' }] } } }, 'http'],
    [{ instructions: 5 }, 'instructions'],
  ])('include %j', (settings, name) => {
    const withheld = withheldParts({ mounts: { 'file:///a': files }, ...settings }, folder, schemas)
    expect(withheld.map((one) => [one.part, one.name])).toEqual([['setting', name]])
  })

  test.each([
    { http: { listen: '127.0.0.1:8787', auth: { tokens: 'token' }, explorer: true } },
    { name: 'x', instructions: 'y', roles: ['z'], pages: { first: 1 }, cursorSecret: { file: 'token' } },
  ])('do not include any of %j', (settings) => {
    expect(withheldParts({ mounts: { 'file:///a': files }, ...settings }, folder, schemas)).toEqual([])
  })

  test('reduce a search to its remaining mounts, and remove it if none remains', () => {
    const document = {
      mounts: {
        'file:///a': files,
        'mcp://b': remote,
        'search://some': { provider: 'search', over: ['file:///a', 'mcp://b'] },
        'search://none': { provider: 'search', over: ['mcp://b'] },
      },
    }
    const withheld = withheldParts(document, folder, schemas)
    expect(withheld.map(({ name }) => name)).toEqual(['mcp://b', 'search://none'])
    expect(withheld[1]?.effects).toEqual([{ kind: 'needs', what: 'mcp://b' }])
    expect(withoutParts(document, withheld)).toEqual({
      mounts: { 'file:///a': files, 'search://some': { provider: 'search', over: ['file:///a'] } },
    })
  })

  test('include a mount whose data would be kept in a store that is left out', () => {
    const document = {
      mounts: { 'file:///a': files, 'r://a': { provider: 'results' } },
      store: { sqlite: '/var/lib/x' },
    }
    expect(withheldParts(document, folder, schemas)).toEqual([
      { name: 'store', part: 'setting', effects: [{ kind: 'writes', what: '/var/lib/x' }] },
      { name: 'r://a', part: 'mount', effects: [{ kind: 'needs', what: 'store' }] },
    ])
  })

  test('include a mount of an unknown provider, whose effects cannot be judged', () => {
    expect(withheldParts({ mounts: { 'x://y': { provider: 'new', command: 'x' } } }, folder, schemas)).toHaveLength(1)
  })
})

test('a path leads out of its folder if a link at any segment leads elsewhere', () => {
  expect(leadsOut(join(folder, 'docs'), folder)).toBe(false)
  expect(leadsOut(folder, folder)).toBe(false)
  expect(leadsOut(join(folder, 'away', 'token'), folder)).toBe(true)
  expect(leadsOut(`${folder}-beside`, folder)).toBe(true)
})
