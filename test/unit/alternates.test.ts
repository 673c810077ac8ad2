import { mkdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { notFound, ResourceError } from '../../src/core/errors.ts'
import type { Context, Entry, Provider } from '../../src/core/provider.ts'
import { createFiles } from '../../src/providers/files/index.ts'
import { documented } from '../../src/wrap/documented.ts'
import { createFolder, type Folder } from '../support/folder.ts'

const context: Context = { principal: { id: 'a', roles: [] }, signal: new AbortController().signal }

async function hrefsIn(provider: Provider, path: string): Promise<readonly string[]> {
  const [content] = await provider.read({ path, params: new Map() }, context)
  const alternates = (content?.meta?.['dev.hikidashi/alternates'] ?? []) as readonly { readonly href: string }[]
  return alternates.map(({ href }) => href).sort()
}

describe('a translation of a document in a folder', () => {
  let folder: Folder
  let outside: Folder
  let provider: Provider
  let opened = 0

  beforeEach(async () => {
    folder = createFolder()
    outside = createFolder()
    provider = await createFiles(
      { root: folder.root, languages: ['ja', 'EN'] },
      {
        places: (places) => ({
          ...places,
          child: (...args) => {
            opened++
            return places.child(...args)
          },
        }),
      },
    )
  })
  afterEach(async () => {
    vi.restoreAllMocks()
    await provider.close?.()
    folder.remove()
    outside.remove()
  })

  /** Sets the clock of this process ahead, so that all folders have been unchanged for a while. */
  const settle = () => {
    const now = Date.now() + 10_000
    vi.spyOn(Date, 'now').mockImplementation(() => now)
  }

  /** Waits until a change of a folder gives it another time. */
  const clockTick = (path: string) => {
    const before = statSync(folder.at(path), { bigint: true }).ctimeNs
    const probe = outside.at('probe')
    do writeFileSync(probe, '')
    while (statSync(probe, { bigint: true }).ctimeNs <= before)
  }

  test.each(['has just changed', 'has not changed for a while'])(
    'appears and disappears with its file in a folder that %s',
    async (state) => {
      folder.write({ 'README.md': '# Read me' })
      if (state !== 'has just changed') settle()
      const hrefs = () => hrefsIn(provider, 'README.md')
      expect(await hrefs()).toEqual([])
      expect(await hrefs()).toEqual([])
      clockTick('')
      folder.write({ 'ja/README.md': '# 読んで' })
      expect(await hrefs()).toEqual(['ja/README.md'])
      clockTick('')
      folder.write({ 'README.en.md': '# Read me' })
      expect(await hrefs()).toEqual(['README.en.md', 'ja/README.md'])
      clockTick('')
      rmSync(folder.at('ja'), { recursive: true })
      rmSync(folder.at('README.en.md'))
      expect(await hrefs()).toEqual([])
    },
  )

  test('is found in a folder of its language, as soon as it is there', async () => {
    folder.write({ 'guide/a/setup.md': '# Set-up' })
    mkdirSync(folder.at('guide/ja'))
    settle()
    const hrefs = () => hrefsIn(provider, 'guide/a/setup.md')
    expect(await hrefs()).toEqual([])
    // What comes into a folder does not change the folder above it.
    folder.write({ 'guide/ja/a/other.md': '# 他' })
    expect(await hrefs()).toEqual([])
    folder.write({ 'guide/ja/a/setup.md': '# 設定' })
    expect(await hrefs()).toEqual(['../ja/a/setup.md'])
  })

  test('is named by a read only while .gitignore does not hide it', async () => {
    folder.write({ 'README.md': '# Read me', 'README.ja.md': '# 読んで', '.gitignore': '*.ja.md\n' })
    settle()
    expect(await hrefsIn(provider, 'README.md')).toEqual([])
    clockTick('.gitignore')
    // The folder itself does not change.
    writeFileSync(folder.at('.gitignore'), '*.log\n')
    expect(await hrefsIn(provider, 'README.md')).toEqual(['README.ja.md'])
  })

  test('is not looked for again while the folders of its path stay the same', async () => {
    folder.write({ 'guide/setup.md': '# Set-up' })
    settle()
    await hrefsIn(provider, 'guide/setup.md')
    opened = 0
    expect(await hrefsIn(provider, 'guide/setup.md')).toEqual([])
    // The folder and the document.
    expect(opened).toBe(2)
  })

  test('is not looked for when a part of a document, or a file of another kind, is read', async () => {
    folder.write({ 'a.md': '# a', 'a.ja.md': '# a', 'logo.png': 'a', 'logo.ja.png': 'a' })
    expect(await hrefsIn(provider, 'a.md')).toEqual(['a.ja.md'])
    expect(await hrefsIn(provider, 'logo.png')).toEqual([])
    const [part] = await provider.read({ path: 'a.md', params: new Map(), range: { start: 0, end: 1 } }, context)
    expect(part?.meta).toBeUndefined()
  })
})

describe('a translation of a document in a source that is no folder', () => {
  const sourceOf = (stat: (path: string) => Promise<Entry>): Provider =>
    documented({
      list: async function* () {},
      read: async () => [{ text: 'a' }],
      stat,
    })

  test('is found by its path, even if another path fails, and is not looked for beside an image', async () => {
    const asked: string[] = []
    const provider = sourceOf(async (path) => {
      asked.push(path)
      if (path === 'README.ja.md') return { path }
      throw path.startsWith('en/') ? new ResourceError('unavailable', 'it hangs') : notFound()
    })
    expect(await hrefsIn(provider, 'README.md')).toEqual(['README.ja.md'])
    asked.length = 0
    expect(await hrefsIn(provider, 'logo.png')).toEqual([])
    expect(asked).toEqual([])
  })

  test('makes the read fail if the source throws an unexpected error', async () => {
    const provider = sourceOf(async () => {
      throw new TypeError('a bug')
    })
    await expect(hrefsIn(provider, 'README.md')).rejects.toThrow('a bug')
  })
})
