import { mkdirSync, rmSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { notFound, ResourceError } from '../../src/core/errors.ts'
import type { Context, Entry, ListQuery } from '../../src/core/provider.ts'
import { files } from '../../src/providers/files/index.ts'
import { createAlternates, documented } from '../../src/wrap/documented.ts'
import { createFolder } from '../support/folder.ts'

const context: Context = { principal: { id: 'a', roles: [] }, signal: new AbortController().signal }

const numbered = Array.from({ length: 60 }, (_, at) => String(at))

/** Folders with the names in them, of which each change makes a new version. */
function folders(paths: readonly string[]) {
  const files = new Set(paths)
  const versions = new Map<string, number>()
  const faults = new Map<string, ResourceError>()
  const asked: string[] = []
  let clock = 0
  let change = 0
  const isFolder = (path: string) => path === '' || [...files].some((file) => file.startsWith(path))
  const touch = (path: string) => {
    versions.set(path.slice(0, path.replace(/\/$/, '').lastIndexOf('/') + 1), ++change)
  }
  const stat = async (path: string): Promise<Entry> => {
    asked.push(path)
    const fault = faults.get(path)
    if (fault !== undefined) throw fault
    if (path !== '' && !path.endsWith('/')) {
      if (files.has(path)) return { path }
      throw notFound()
    }
    if (!isFolder(path)) throw notFound()
    const version = versions.get(path) ?? 0
    return version < 0 ? { path } : { path, version: `v${version}` }
  }
  const lists: string[] = []
  const list = async function* ({ prefix = '' }: ListQuery): AsyncGenerator<Entry> {
    lists.push(prefix)
    const below = [...files].filter((file) => file.startsWith(prefix))
    const direct = below.map((file) => /^[^/]*\/?/.exec(file.slice(prefix.length))?.[0] ?? '')
    for (const name of new Set(direct)) yield { path: `${prefix}${name}` }
  }
  const find = createAlternates({ stat, list }, ['ja', 'en'], () => clock)
  return {
    lists,
    faults,
    hideVersion: (path: string) => versions.set(path, -1),
    wait: (ms: number) => {
      clock += ms
    },
    add: (path: string) => {
      const parts = path.split('/')
      // The first folder above it that was there has a new name in it.
      const above = parts.map((_, at) => parts.slice(0, at + 1).join('/')).find((at) => !isFolder(`${at}/`)) ?? path
      files.add(path)
      touch(above)
    },
    remove: (path: string) => {
      files.delete(path)
      touch(path)
    },
    of: async (path: string) => {
      asked.length = 0
      const found = await find(path, context)
      return { found: found.map(({ href }) => href), asked: [...asked].sort() }
    },
  }
}

describe('the same document in other languages', () => {
  test('is looked up by name until the list of its folder is known', async () => {
    const source = folders(['README.md', 'README.ja.md'])
    for (const _ of numbered.slice(0, 15)) {
      const { found, asked } = await source.of('README.md')
      expect(found).toEqual(['README.ja.md'])
      expect(asked.length).toBeGreaterThan(10)
    }
    await source.of('README.md')
    expect(await source.of('README.md')).toEqual({ found: ['README.ja.md'], asked: ['', 'README.ja.md'] })
    expect(source.lists).toEqual([''])
  })

  test('appears and disappears with the next read', async () => {
    const source = folders(['guide/setup.md'])
    for (const _ of numbered.slice(0, 16)) expect((await source.of('guide/setup.md')).found).toEqual([])
    expect(await source.of('guide/setup.md')).toEqual({ found: [], asked: ['', 'guide/'] })
    source.add('guide/setup.ja.md')
    expect((await source.of('guide/setup.md')).found).toEqual(['setup.ja.md'])
    source.remove('guide/setup.ja.md')
    expect((await source.of('guide/setup.md')).found).toEqual([])
  })

  test('is found in a folder that was just created', async () => {
    const source = folders(['guide/a/setup.md'])
    expect((await source.of('guide/a/setup.md')).found).toEqual([])
    source.add('guide/ja/a/setup.md')
    expect((await source.of('guide/a/setup.md')).found).toEqual(['../ja/a/setup.md'])
    // The folder is there now: what comes into it is seen too.
    source.remove('guide/ja/a/setup.md')
    source.add('guide/ja/a/other.md')
    expect((await source.of('guide/a/setup.md')).found).toEqual([])
    source.add('guide/ja/a/setup.md')
    expect((await source.of('guide/a/setup.md')).found).toEqual(['../ja/a/setup.md'])
  })

  test('is looked up again after a while in missing folders, since rules may have changed', async () => {
    const source = folders(['README.md'])
    for (const _ of numbered.slice(0, 16)) await source.of('README.md')
    expect((await source.of('README.md')).asked).toEqual([''])
    source.wait(2000)
    expect((await source.of('README.md')).asked).toEqual([''])
    source.wait(1)
    expect((await source.of('README.md')).asked).toEqual(['', 'en/', 'ja/'])
  })

  test('is looked up each time if a folder has no version, or cannot be read', async () => {
    const source = folders(['README.md', 'README.ja.md', 'ja/README.md'])
    source.hideVersion('')
    for (const _ of numbered) {
      const { found, asked } = await source.of('README.md')
      expect(found).toEqual(['README.ja.md', 'ja/README.md'])
      expect(asked.length).toBeGreaterThan(10)
    }
    const other = folders(['README.md', 'README.ja.md'])
    other.faults.set('ja/', new ResourceError('unavailable', 'it hangs'))
    other.faults.set('ja/README.md', new ResourceError('unavailable', 'it hangs'))
    for (const _ of [1, 2]) {
      const { found, asked } = await other.of('README.md')
      expect(found).toEqual(['README.ja.md'])
      expect(asked.length).toBeGreaterThan(10)
    }
  })

  test('is found in the list of a folder when many of its documents are read', async () => {
    const source = folders(numbered.map((name) => `docs/${name}.md`).concat('docs/7.ja.md', 'docs/en/30.md'))
    let asked = 0
    for (const name of numbered) {
      const of = await source.of(`docs/${name}.md`)
      expect(of.found).toEqual(name === '7' ? ['7.ja.md'] : name === '30' ? ['en/30.md'] : [])
      if (Number(name) >= 20)
        asked = Math.max(asked, of.asked.filter((path) => !path.endsWith('/') && path !== '').length)
    }
    // Of the last ones, only the folders are asked for, and twins in the folders without a list.
    expect(asked).toBeLessThan(3)
    expect(new Set(source.lists).size).toBe(source.lists.length)

    source.add('docs/25.ja.md')
    expect((await source.of('docs/25.md')).found).toEqual(['25.ja.md'])
    source.remove('docs/7.ja.md')
    expect((await source.of('docs/7.md')).found).toEqual([])
  })

  test('is found in the list of a large folder when more of its documents are read', async () => {
    const many = Array.from({ length: 3000 }, (_, i) => String(i))
    const source = folders(many.map((name) => `${name}.md`).concat('100.ja.md'))
    const asked: number[] = []
    for (const name of many.slice(0, 40)) asked.push((await source.of(`${name}.md`)).asked.length)
    // The first list ends at 2,048 entries, and the second one comes after twice as many questions.
    expect(source.lists).toEqual(['', ''])
    expect(asked[30]).toBeGreaterThan(10)
    // The folder alone.
    expect(asked[35]).toBe(1)
    expect((await source.of('100.md')).found).toEqual(['100.ja.md'])
  })

  test('is found for other callers while one waits for a list, and after it has left', async () => {
    const gone = new AbortController()
    const stat = async (path: string): Promise<Entry> => {
      if (path === '' || path === 'a.ja.md') return { path, version: 'v' }
      throw notFound()
    }
    let listed = () => {}
    const isListed = new Promise<void>((resolve) => {
      listed = resolve
    })
    const list = async function* (_: ListQuery, { signal }: Context): AsyncGenerator<Entry> {
      listed()
      await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
    }
    const find = createAlternates({ stat, list }, ['ja'])
    for (const name of numbered.slice(0, 15)) await find(`${name}.md`, context)
    const first = Promise.resolve(find('b.md', { ...context, signal: gone.signal })).catch(() => [])
    await isListed
    const second = find('a.md', context)
    expect(await second).toEqual([{ href: 'a.ja.md', language: 'ja' }])
    gone.abort(new Error('gone'))
    await first
    expect(await find('a.md', context)).toEqual([{ href: 'a.ja.md', language: 'ja' }])
  })

  test('is ignored if its source has an error', async () => {
    const source = folders(['README.md'])
    const find = createAlternates(
      {
        stat: async () => {
          throw new TypeError('a fault of ours')
        },
        list: async function* () {},
      },
      ['ja'],
    )
    await expect(find('README.md', context)).rejects.toThrow('a fault of ours')
    expect((await source.of('logo.png')).asked).toEqual([])
  })

  test('appears and disappears with the files of a folder', async () => {
    const folder = createFolder()
    folder.write({ 'README.md': '# Read me' })
    const source = await files({ root: folder.root, log: () => {} })
    const provider = documented(source)
    const twins = async () => {
      const [content] = await provider.read({ path: 'README.md', params: new Map() }, context)
      return (content?.meta?.['dev.hikidashi/alternates'] ?? []) as readonly { readonly href: string }[]
    }
    try {
      for (let round = 0; round < 3; round++) {
        // Folders that have just changed have no version yet: one round is within that time, the others behind it.
        if (round > 0) await new Promise((resolve) => setTimeout(resolve, 50))
        expect(await twins()).toEqual([])
        expect(await twins()).toEqual([])
        folder.write({ 'ja/README.md': '# 読んで' })
        expect(await twins()).toEqual([{ href: 'ja/README.md', language: 'ja' }])
        folder.write({ 'README.en.md': '# Read me' })
        expect((await twins()).map(({ href }) => href).sort()).toEqual(['README.en.md', 'ja/README.md'])
        rmSync(folder.at('ja'), { recursive: true })
        rmSync(folder.at('README.en.md'))
        expect(await twins()).toEqual([])
      }
      // No list has an empty folder, and what comes into it does not change the folder above it.
      mkdirSync(folder.at('ja'))
      await new Promise((resolve) => setTimeout(resolve, 50))
      for (const _ of numbered) expect(await twins()).toEqual([])
      folder.write({ 'ja/README.md': '# 読んで' })
      expect(await twins()).toEqual([{ href: 'ja/README.md', language: 'ja' }])
    } finally {
      await source.close?.()
      folder.remove()
    }
  })
})
