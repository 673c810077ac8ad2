import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { openCatalog } from '../../src/config/build.ts'
import { type LoadOptions, loadConfig } from '../../src/config/load.ts'
import { methodsOf, mountSource, planConfig } from '../../src/config/plan.ts'
import { kindIn } from '../../src/core/mount-kind.ts'
import { createFolder, type Folder } from '../support/folder.ts'

/** Sources from outside: a configuration names a module, by its path or as a package, as the provider of a mount. */

let folder: Folder
beforeEach(() => {
  folder = createFolder()
})
afterEach(() => folder.remove())

/** A module that exports a source of one text. Its code says that it has run. */
const moduleOf = (more = '') => `
globalThis.ranOutside = (globalThis.ranOutside ?? 0) + 1
export const source = {
  name: 'sample',
  about: 'A sample.',
  open: () => ({
    async *list({ prefix = '', after = '' }) { if ('a.md'.startsWith(prefix) && after < 'a.md') yield { path: 'a.md' } },
    async read({ path }) { return [{ text: path }] },
  }),
  ${more}
}`
const ranOutside = () => (globalThis as { readonly ranOutside?: number }).ranOutside ?? 0

async function load(mounts: object, options: LoadOptions = {}) {
  folder.write({ 'hikidashi.json': JSON.stringify({ mounts }) })
  return loadConfig(folder.at('hikidashi.json'), options)
}

async function problems(provider: string): Promise<readonly string[]> {
  const loaded = await load({ 'x://y': { provider } })
  return 'problems' in loaded ? loaded.problems.map(({ message, fix }) => `${message} ${fix}`) : []
}

async function configOf(mounts: object) {
  const loaded = await load(mounts)
  if ('problems' in loaded) throw new Error(JSON.stringify(loaded.problems))
  return loaded.config
}

test('a source is loaded from the path of its module, and its mount is listed and read', async () => {
  folder.write({ 'sample.mjs': moduleOf() })
  const planned = planConfig(await configOf({ 'x://y': { provider: './sample.mjs', title: 'Y' } }))
  const catalog = await openCatalog(planned, { log: () => {}, lazily: true })
  const view = catalog.view({ id: 'x', roles: [] })
  expect((await view.list()).items.map(({ uri }) => uri)).toEqual(['x://y/a.md'])
  expect((await view.read('x://y/a.md')).contents).toMatchObject([{ text: 'a.md' }])
  await catalog.close()
})

test.each([
  ['by "exports"', { exports: './main.js' }],
  ['by "main"', { main: './main.js' }],
  ['by "exports" for import only', { exports: { '.': { import: './main.js' } } }],
])('a source is loaded from an installed package, %s', async (_, fields) => {
  const name = '@sample/source'
  folder.write({
    [`node_modules/${name}/package.json`]: JSON.stringify({ name, type: 'module', ...fields }),
    [`node_modules/${name}/main.js`]: moduleOf(),
  })
  const { mounts } = await configOf({ 'x://y': { provider: name } })
  expect(Object.values(mounts).map((mount) => mountSource(mount).name)).toEqual(['sample'])
})

test('an untrusted configuration does not run the code of a source, and reports that it is left out', async () => {
  folder.write({
    'sample.mjs': moduleOf(),
    'node_modules/sample/package.json': '{ "name": "sample", "type": "module", "exports": "./main.js" }',
    'node_modules/sample/main.js': moduleOf(),
  })
  const before = ranOutside()
  const mounts = { 'x://y': { provider: './sample.mjs', any: 1 }, 'x://z': { provider: 'sample' } }
  const loaded = await load(mounts, { isTrusted: async () => false })
  expect(ranOutside()).toBe(before)
  expect(loaded).toMatchObject({
    config: {
      mounts: {},
      withheld: [
        { name: 'x://y', effects: [{ kind: 'runs', what: './sample.mjs' }] },
        { name: 'x://z', effects: [{ kind: 'runs', what: 'sample' }] },
      ],
    },
  })
})

test('the declaration of a source is known before the source is opened', async () => {
  folder.write({
    'sample.mjs': moduleOf(`abilities: () => ({ watch: true, parts: true }), noun: 'samples', isDerived: true`),
  })
  const [mount] = Object.values((await configOf({ 'x://y': { provider: './sample.mjs' } })).mounts)
  if (mount === undefined) expect.fail('there is no mount')
  expect(methodsOf(mount)).toMatchObject({ watch: true, parts: true, prompts: false })
  expect(mountSource(mount)).toMatchObject({ noun: 'samples', isDerived: true })
})

test('the noun, icon and label of a source are sent with its mount', async () => {
  folder.write({
    'sample.mjs': moduleOf(`noun: 'samples', icon: 'chart', label: { en: 'Samples' }, purpose: { en: 'To try' }`),
  })
  const config = await configOf({ 'x://y': { provider: './sample.mjs' } })
  const catalog = await openCatalog(planConfig(config), { log: () => {}, lazily: true })
  const [mount] = await catalog.view({ id: 'x', roles: [] }).mounts()
  expect(kindIn(mount?.meta)).toEqual({
    noun: 'samples',
    icon: 'chart',
    label: { en: 'Samples' },
    purpose: { en: 'To try' },
    isSingle: false,
  })
  await catalog.close()
})

describe('an error in the module of a source gives one sentence', () => {
  test.each([
    ['there is no module', undefined, 'The module ./bad.mjs does not exist. Correct the path.'],
    ['its code throws', 'throw new Error("boom")', 'The module ./bad.mjs cannot be loaded: boom.'],
    ['its code does not parse', 'let x =', 'The module ./bad.mjs cannot be loaded: '],
    ['it imports a missing package', 'import "nope"', "cannot be loaded: Cannot find package 'nope'"],
    [
      'it exports nothing',
      'export const a = 1',
      'The module ./bad.mjs exports no valid source. It needs: export const source',
    ],
    ['it has a bad name', 'export const source = { name: "A b" }', 'Its "name" must be a word'],
    [
      'it has the name of another source',
      'export const source = { name: "git" }',
      'Its name "git" is the name of a source of hikidashi. Choose another one.',
    ],
    ['it does not say what it serves', 'export const source = { name: "a" }', 'Its "about" must describe'],
    ['it cannot be opened', 'export const source = { name: "a", about: "A." }', 'Its "open" must be a function'],
    [
      'its icon is markup',
      'export const source = { name: "a", about: "A.", open() {}, icon: "<svg onload=x>" }',
      'Its "icon" must be one of box, chart,',
    ],
    [
      'its noun is not a text',
      'export const source = { name: "a", about: "A.", open() {}, noun: {} }',
      'Its "noun" must be a string of at most 60 characters that is not blank.',
    ],
    [
      'its label is not a text in two languages',
      'export const source = { name: "a", about: "A.", open() {}, label: "A" }',
      'Its "label" must be { en, ja }',
    ],
    [
      'an option has no schema',
      'export const source = { name: "a", about: "A.", open() {}, options: { x: "text" } }',
      'Its option "x" must be a schema, such as option.text().',
    ],
  ])('if %s', async (_, code, message) => {
    if (code !== undefined) folder.write({ 'bad.mjs': code })
    const found = await problems('./bad.mjs')
    expect(found).toHaveLength(1)
    expect(found[0]).toContain(message)
  })

  test.each([
    ['flies', 'There is no provider "flies". Did you mean "files"?'],
    ['no-such-package', 'write the path of its module, such as "./my-source.js", or the name of its package.'],
    ['fs', 'There is no provider "fs".'],
    ['data:text/javascript,1', 'There is no provider "data:text/javascript,1".'],
  ])('for the provider %s, which is not a source', async (name, message) => {
    expect((await problems(name)).join()).toContain(message)
  })
})

test.each([
  ['throws', '() => { throw new Error("no way") }', 'The source sample failed: no way'],
  ['opens nothing', '() => undefined', 'it is missing'],
])('a source that %s fails its own mount only', async (_, open, message) => {
  folder.write({ 'sample.mjs': moduleOf(`open: ${open}`), 'docs/a.md': '# A' })
  const config = await configOf({
    'x://y': { provider: './sample.mjs' },
    'file:///docs': { provider: 'files', root: 'docs' },
  })
  const logged: string[] = []
  const log = (_: string, message: string, fields: object = {}) =>
    void logged.push(`${message} ${Object.values(fields)}`)
  const catalog = await openCatalog(planConfig(config), { log, lazily: true })
  const view = catalog.view({ id: 'x', roles: [] })
  await expect(view.read('x://y/a.md')).rejects.toMatchObject({ kind: 'unavailable' })
  expect((await view.read('file:///docs/a.md')).contents).toHaveLength(1)
  expect(logged.join('\n')).toContain(message)
  await catalog.close()
})
