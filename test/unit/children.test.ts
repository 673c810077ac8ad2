import * as fs from 'node:fs'
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type AccessRule, compileAccess } from '../../src/core/access.ts'
import { createMount } from '../../src/core/mount.ts'
import type { Entry, ListQuery, Provider } from '../../src/core/provider.ts'
import { iterateChildren } from '../../src/core/tree.ts'
import { settings } from '../../src/providers/settings/index.ts'
import { redacted } from '../../src/wrap/redacted.ts'
import { useFiles } from '../support/files.ts'
import { contextOf } from '../support/folder.ts'
import { memory } from '../support/memory.ts'
import { volumeOf } from '../support/volume.ts'

const { folder, open } = useFiles()

async function childrenOf(
  provider: Provider,
  rules: readonly AccessRule[] | undefined,
  directory = '',
  after?: string,
) {
  const access = rules === undefined ? {} : { access: compileAccess(rules) }
  const mount = createMount({ address: 'x://y', provider, ...access })
  const found: string[] = []
  for await (const child of iterateChildren(mount.list(contextOf()), directory, after)) found.push(child.path)
  return found
}

/** Counts what a source is asked for, and what it answers. */
function counted(provider: Provider) {
  const seen = { queries: [] as ListQuery[], paths: [] as string[] }
  const list = async function* (query: ListQuery, context: ReturnType<typeof contextOf>): AsyncGenerator<Entry> {
    seen.queries.push(query)
    for await (const entry of provider.list(query, context)) {
      seen.paths.push(entry.path)
      yield entry
    }
  }
  return { seen, provider: { ...provider, list } }
}

const hideSevens: readonly AccessRule[] = [{ allow: ['*'] }, { deny: ['*'], match: '**/*7.txt' }]

describe('the children of a directory that a principal may see in part', () => {
  test('are the visible files and the directories that contain one, and the source lists only one entry for each', async () => {
    const names = Array.from({ length: 40 }, (_, i) => String(i).padStart(2, '0'))
    const tree = names.flatMap((dir) => names.map((name) => `in/d${dir}/sub/f${name}.txt`))
    const hidden = ['in/none/a7.txt', 'in/none/deep/b7.txt', 'in/vault/x.txt', 'in/later/17.txt', 'in/later/z/seen.txt']
    folder.write(Object.fromEntries([...tree, ...hidden, 'in/7.txt', 'in/file.txt'].map((path) => [path, ''])))
    const { seen, provider } = counted(await open())
    const rules = [...hideSevens, { deny: ['*'], match: 'in/vault/**' }]
    const wanted = [...names.map((dir) => `in/d${dir}/`), 'in/file.txt', 'in/later/']
    expect(await childrenOf(provider, rules, 'in/')).toEqual(wanted)
    expect(seen.queries).toHaveLength(1)
    // One entry of each: nothing that is hidden, and no second one.
    expect(seen.paths).toHaveLength(wanted.length)
    expect(seen.paths.filter((path) => /7\.txt|vault/.test(path))).toEqual([])
    expect(await childrenOf(provider, rules, 'in/', 'in/d39/')).toEqual(['in/file.txt', 'in/later/'])
    expect(await childrenOf(provider, rules, 'in/none/')).toEqual([])
  })

  test('are the same whether the source lists directories itself or not', async () => {
    const segment = fc.constantFrom('a', 'b', 'b7', 'a-b', 'ｱ', '𠮷')
    const paths = fc.array(fc.array(segment, { minLength: 1, maxLength: 4 }), { minLength: 1, maxLength: 16 })
    const glob = fc.constantFrom('**/*7', 'a/**', 'b/*', '**/a-b/**', '*/b7/**', '**/𠮷', 'b7')
    const rules = fc.record({ allow: fc.array(glob, { maxLength: 3 }), deny: fc.array(glob, { maxLength: 3 }) })
    await fc.assert(
      fc.asyncProperty(paths, rules, async (tree, { allow, deny }) => {
        fs.rmSync(folder.root, { recursive: true })
        fs.mkdirSync(folder.root)
        for (const parts of tree) {
          try {
            folder.write({ [parts.join('/')]: 'x' })
          } catch {
            // A file is where a directory is wanted, or the other way round.
          }
        }
        const found = fs.readdirSync(folder.root, { withFileTypes: true, recursive: true })
        const pathOf = ({ parentPath, name }: fs.Dirent) => `${parentPath}/${name}`.slice(folder.root.length + 1)
        const all = found.filter((entry) => entry.isFile()).map(pathOf)
        const plain = memory(Object.fromEntries(all.map((path) => [path, ''])))
        const access = [
          { allow: ['*'], ...(allow.length === 0 ? {} : { match: allow }) },
          { deny: ['*'], match: deny.length === 0 ? 'none' : deny },
        ]
        const source = await open()
        for (const directory of ['', ...found.filter((entry) => entry.isDirectory()).map((one) => `${pathOf(one)}/`)])
          for (const after of [undefined, `${directory}a`, `${directory}a/`, `${directory}b7/`, `${directory}zz`])
            expect(await childrenOf(source, access, directory, after), `${directory} ${after}`).toEqual(
              await childrenOf(plain, access, directory, after),
            )
      }),
      { numRuns: volumeOf(20, 4) },
    )
  }, 60_000)

  test('leave out a directory in which the wrapper of the source hides every entry', async () => {
    const token = `ghp_${'0123456789abcdefghijklmnopqrstuvwxyz'}`
    folder.write({
      'a/readme.md': '',
      'b/x.json': '{}',
      'b/x.md': '',
      'c/d/e7.txt': '',
      'c/f.yaml': '',
      [`d/${token}`]: '',
    })
    for (const rules of [undefined, hideSevens]) {
      expect(await childrenOf(settings({ source: await open() }), rules)).toEqual(['b/', 'c/'])
      expect(await childrenOf(settings({ source: await open() }), rules, 'c/')).toEqual(['c/f.yaml'])
    }
    expect(await childrenOf(redacted(await open()), hideSevens)).toEqual(['a/', 'b/', 'c/'])
  })
})
