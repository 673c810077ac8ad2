import * as fs from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { LateAbort, WithLateSignal } from '../../src/core/call.ts'
import { createCatalog } from '../../src/core/catalog.ts'
import type { Context, Provider } from '../../src/core/provider.ts'
import type { Place } from '../../src/providers/files/access.ts'
import { createFiles, type FilesOptions } from '../../src/providers/files/index.ts'
import { addTo, createKept } from '../../src/providers/files/kept.ts'
import { documents } from '../../src/wrap/documents.ts'
import { limited } from '../../src/wrap/limited.ts'
import { sliced } from '../../src/wrap/sliced.ts'
import { createFolder, type Folder, openBelow } from '../support/folder.ts'

const context: Context = { principal: { id: 'someone', roles: [] }, signal: new AbortController().signal }

/** Waits until the clock of the file system has moved on, so that the next change has another time than the last one. */
function nextTick(folder: Folder): void {
  const probe = join(folder.outside, 'probe')
  const timeOf = () => {
    fs.writeFileSync(probe, '')
    return fs.lstatSync(probe, { bigint: true }).ctimeNs
  }
  for (const before = timeOf(); timeOf() === before; );
}

describe.runIf(process.platform === 'linux')('an answer that is asked for many times a second', () => {
  let folder: Folder
  let nowMs = 0
  /** Number of walks, each of which begins at the root. */
  let walks = 0
  const opened: Provider[] = []
  beforeEach(() => {
    folder = createFolder()
    // As if everything had been written some time ago. The clock stands still, so that nothing becomes too old on a busy machine.
    nowMs = Date.now() + 600_000
    walks = 0
  })
  afterEach(async () => {
    for (const provider of opened.splice(0)) await provider.close?.()
    await expect.poll(() => openBelow(folder.root), { message: 'no descriptor is left open' }).toEqual([])
    folder.remove()
  })

  const open = async (options: Partial<FilesOptions> = {}): Promise<Provider> => {
    const provider = await createFiles(
      { root: folder.root, gitignore: true, ...options },
      {
        clock: { now: () => nowMs },
        places: (places) => ({
          ...places,
          root: (signal) => {
            walks++
            return places.root(signal)
          },
        }),
      },
    )
    opened.push(provider)
    return provider
  }

  const readOf = (provider: Provider, path: string) =>
    provider.read({ path, params: new Map() }, context).catch((error: Error) => error.message)
  const statOf = async (provider: Provider, path: string) =>
    provider.stat?.(path, context).catch((error: Error) => error.message)

  /** Asks until the answer is kept. */
  const keepAnswers = async (provider: Provider, path: string) => {
    for (let time = 0; time < 2; time++) {
      await readOf(provider, path)
      await statOf(provider, path)
    }
    const before = walks
    await readOf(provider, path)
    await statOf(provider, path)
    return walks - before
  }

  /** What a provider answers that has kept nothing. */
  const plainly = async (path: string, options: Partial<FilesOptions> = {}) => {
    const plain = await open(options)
    return [await readOf(plain, path), await statOf(plain, path)]
  }

  const path = 'a/b/note.md'
  const tree = { [path]: '# One\n', 'a/.gitignore': 'other.md\n', 'a/b/other.md': '# Other\n' }

  test('takes no further walk, and is the answer of a walk', async () => {
    folder.write(tree)
    const provider = await open()
    expect(await keepAnswers(provider, path)).toBe(0)
    expect([await readOf(provider, path), await statOf(provider, path)]).toEqual(await plainly(path))
    await expect(provider.read({ path: 'a/b/other.md', params: new Map() }, context)).rejects.toMatchObject({
      kind: 'not-found',
    })
  })

  const inFolder = (name: string) => join(folder.root, name)
  const changes: readonly (readonly [string, () => void])[] = [
    ['its file is written to', () => fs.writeFileSync(inFolder(path), '# Two\n')],
    ['its file is removed', () => fs.unlinkSync(inFolder(path))],
    [
      'another file takes its place',
      () => {
        fs.writeFileSync(inFolder('new'), '# New\n')
        const { atime, mtime } = fs.statSync(inFolder(path))
        fs.utimesSync(inFolder('new'), atime, mtime)
        fs.renameSync(inFolder('new'), inFolder(path))
      },
    ],
    [
      'another folder takes the place of one on its way',
      () => {
        fs.cpSync(inFolder('a'), inFolder('c'), { recursive: true, preserveTimestamps: true })
        fs.writeFileSync(inFolder('c/b/note.md'), '# New\n')
        fs.renameSync(inFolder('a'), inFolder('old'))
        fs.renameSync(inFolder('c'), inFolder('a'))
      },
    ],
    [
      'a link takes the place of a folder on its way',
      () => {
        fs.renameSync(inFolder('a'), inFolder('old'))
        fs.symlinkSync('old', inFolder('a'))
      },
    ],
    ['it gets a second name', () => fs.linkSync(inFolder(path), inFolder('second'))],
    ['ignore rules appear on its way', () => fs.writeFileSync(inFolder('.gitignore'), '*.md\n')],
    ['ignore rules on its way change', () => fs.writeFileSync(inFolder('a/.gitignore'), 'note*.md\n')],
    ['ignore rules on its way are removed', () => fs.unlinkSync(inFolder('a/.gitignore'))],
  ]

  test('is not for a caller that is gone', async () => {
    folder.write(tree)
    const provider = await open()
    expect(await keepAnswers(provider, path)).toBe(0)
    const abort = new LateAbort()
    abort.abort(new Error('gone'))
    const late = Object.assign(new WithLateSignal(abort), { principal: context.principal })
    for (const gone of [{ ...context, signal: AbortSignal.abort(new Error('gone')) }, late]) {
      await expect(provider.read({ path, params: new Map() }, gone)).rejects.toThrow('gone')
      await expect(provider.stat?.(path, gone)).rejects.toThrow('gone')
    }
  })

  test('passes the wrappers and the view without a promise', async () => {
    folder.write({ 'guide/a.md': 'A text' })
    const files = await open()
    const provider = limited(sliced(documents(files, { languages: ['ja'], readings: {} })))
    const catalog = createCatalog({ mounts: [{ address: 'docs://here', provider }] })
    const view = catalog.view(context.principal)
    const uri = 'docs://here/guide/a.md'
    const plain = await view.read(uri)
    const abort = new LateAbort()
    // A caller of the protocol, whose signal is made when somebody asks for it.
    const read = () => soonOf(view, view.read)(uri, Object.assign(new WithLateSignal(abort), {}))
    for (let time = 0; time < 3; time++) await read()
    const kept = read()
    expect(kept).not.toBeInstanceOf(Promise)
    expect(kept).toEqual(plain)
    folder.write({ 'guide/a.md': 'Another text' })
    expect((await read()).contents).toMatchObject([{ text: 'Another text' }])
  })

  test.each(changes)('is made anew when %s', async (_, change) => {
    folder.write(tree)
    const provider = await open()
    expect(await keepAnswers(provider, path)).toBe(0)
    nextTick(folder)
    change()
    const before = walks
    const answers = [await readOf(provider, path), await statOf(provider, path)]
    expect(walks - before).toBeGreaterThanOrEqual(2)
    expect(answers).toEqual(await plainly(path))
  })

  test('is made anew after half a second', async () => {
    folder.write(tree)
    const provider = await open()
    expect(await keepAnswers(provider, path)).toBe(0)
    nowMs += 501
    const before = walks
    await readOf(provider, path)
    expect(walks - before).toBe(1)
  })

  test('is not kept of what has just changed, of a long file, nor behind a link', async () => {
    folder.write({ ...tree, 'long.txt': 'x'.repeat(70_000) })
    fs.symlinkSync('a', inFolder('link'))
    const provider = await open({ symlinks: 'beneath' })
    nowMs = Date.now()
    expect(await keepAnswers(provider, path)).toBe(2)
    nowMs = Date.now() + 600_000
    const before = walks
    for (let time = 0; time < 3; time++) await readOf(provider, 'long.txt')
    expect(walks - before).toBe(3)
    const linked = walks
    for (let time = 0; time < 3; time++) await readOf(provider, 'link/b/note.md')
    expect(walks - linked).toBeGreaterThanOrEqual(3)
  })

  test('is compared once for the requests that had arrived before, and again for the next', async () => {
    folder.write(tree)
    const provider = await open()
    await keepAnswers(provider, path)
    const arrival = {}
    const textFor = async (own: object) => {
      const [content] = await provider.read({ path, params: new Map() }, { ...context, arrival: own })
      return content !== undefined && 'text' in content ? content.text : undefined
    }
    const before = await textFor(arrival)
    nextTick(folder)
    folder.write({ [path]: 'changed meanwhile' })
    expect(await textFor(arrival)).toBe(before)
    expect(await textFor({})).toBe('changed meanwhile')
    expect(await textFor(arrival)).toBe('changed meanwhile')
  })

  test('does not outlive its provider', async () => {
    folder.write(tree)
    const provider = await open()
    expect(await keepAnswers(provider, path)).toBe(0)
    await provider.close?.()
    expect(await readOf(provider, path)).toMatch(/closed/)
  })
})

describe('an answer about what lies on a network', () => {
  let folder: Folder
  beforeEach(() => {
    folder = createFolder()
  })
  afterEach(() => folder.remove())

  /** Asks often for an answer from these places. Returns how often it was made, and whose ignore rules were looked at. */
  const askOften = async (opened: readonly Place[]) => {
    const looked: string[] = []
    // Nothing but a look at the rules needs the path.
    const places = opened.map(({ at, ...rest }) => ({
      ...rest,
      get at() {
        looked.push(at)
        return at
      },
    }))
    const nowMs = Date.now() + 600_000
    let made = 0
    const make: Parameters<typeof createKept<string>>[0] = async (_request, _context, route) => {
      made++
      for (const place of places) if (route !== undefined) addTo(route, { place, links: 0 })
      return 'answer'
    }
    const kept = createKept(make, '.gitignore', { now: () => nowMs })
    for (let time = 0; time < 4; time++) await kept.answer({ path: 'a/note.md' }, context)
    kept.close()
    return { made, looked }
  }

  const placesOf = (statNow: { readonly root: boolean; readonly below: boolean }): readonly Place[] => {
    folder.write({ 'a/note.md': '# One\n' })
    return ['', 'a', 'a/note.md'].map((name) => {
      const at = join(folder.root, name)
      const look = () => fs.lstatSync(at, { bigint: true })
      const isLocal = name === '' ? statNow.root : statNow.below
      const rest = { at, stats: look(), local: isLocal, mount: undefined, keep: () => {}, close: () => {} }
      return isLocal ? { ...rest, statNow: look } : rest
    })
  }

  test('is kept with the ignore rules of its directories when all of them are local', async () => {
    const { made, looked } = await askOften(placesOf({ root: true, below: true }))
    // The first question is answered plainly, the second one's answer is kept.
    expect(made).toBe(2)
    expect(new Set(looked)).toEqual(new Set([folder.root, join(folder.root, 'a')]))
  })

  test.each([
    ['its root', { root: false, below: false }],
    ['a folder below a local root', { root: true, below: false }],
  ])('is made anew each time, and no ignore rules are looked at on this thread: %s', async (_, statNow) => {
    expect(await askOften(placesOf(statNow))).toEqual({ made: 4, looked: [] })
  })

  describe('is made once for the requests that arrived together', () => {
    /** Asks for an answer twice, so that the next one is kept, and returns a question that notes each answer that is begun. */
    const start = async () => {
      const places = placesOf({ root: true, below: true })
      let nowMs = Date.now() + 600_000
      const begun: ((outcome: string | Error) => void)[] = []
      const make: Parameters<typeof createKept<string>>[0] = async (_, { signal }, route) => {
        signal.throwIfAborted()
        for (const place of places) if (route !== undefined) addTo(route, { place, links: 0 })
        const outcome = await new Promise<string | Error>((resolve) => begun.push(resolve))
        if (outcome instanceof Error) throw outcome
        return outcome
      }
      const kept = createKept(make, undefined, { now: () => nowMs })
      const ask = (arrival: object | undefined, signal = context.signal) =>
        kept.answer({ path: 'a/note.md' }, { ...context, signal, arrival })
      for (let time = 0; time < 2; time++) {
        const asked = ask(undefined)
        begun.at(-1)?.('old')
        await asked
      }
      // It is too old now, and a first request of its arrival makes another one.
      nowMs += 600
      begun.length = 0
      return { ask, begun, close: () => kept.close() }
    }

    test('and not for those that arrived later, or without an arrival', async () => {
      const { ask, begun, close } = await start()
      const [one, two] = [{}, {}]
      const first = [ask(one), ask(one), ask(one)]
      expect(begun).toHaveLength(1)
      const later = [ask(two), ask(two), ask(undefined)]
      expect(begun).toHaveLength(3)
      begun[0]?.('answer 0')
      expect(await Promise.all(first)).toEqual(['answer 0', 'answer 0', 'answer 0'])
      for (const [i, answered] of begun.entries()) answered(`answer ${i}`)
      expect(new Set(await Promise.all(later))).not.toContain('answer 0')
      close()
    })

    test('by each of them when the first fails', async () => {
      const { ask, begun, close } = await start()
      const arrival = {}
      const [first, second, third] = [ask(arrival), ask(arrival), ask(arrival)]
      begun[0]?.(new Error('not now'))
      await expect(first).rejects.toThrow('not now')
      await expect.poll(() => begun.length).toBe(3)
      for (const answered of begun) answered('mine')
      expect(await Promise.all([second, third])).toEqual(['mine', 'mine'])
      close()
    })

    test('and a request that is cancelled does not wait for it', async () => {
      const { ask, begun, close } = await start()
      const arrival = {}
      const first = ask(arrival)
      const cancelled = new AbortController()
      const second = ask(arrival, cancelled.signal)
      cancelled.abort(new Error('cancelled'))
      await expect(second).rejects.toThrow('cancelled')
      begun[0]?.('answer')
      expect(await first).toBe('answer')
      close()
    })
  })
})
