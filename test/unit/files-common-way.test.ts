import { renameSync, symlinkSync } from 'node:fs'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { isResourceError } from '../../src/core/errors.ts'
import type { Arrival, Context, Provider } from '../../src/core/provider.ts'
import { createFiles, type FilesOptions, type FilesSystem } from '../../src/providers/files/index.ts'
import { createFolder, type Folder, openBelow } from '../support/folder.ts'

describe.each([false, true])('reads that arrive together (portable: %s)', (portable) => {
  let folder: Folder
  /** The names that were opened, each below its directory. */
  let entered: string[] = []
  /** Called before a name is opened. */
  let before: (name: string) => Promise<void> | undefined = () => undefined
  /** Called when it is open. */
  let after = before
  const opened: Provider[] = []
  beforeEach(() => {
    folder = createFolder()
    entered = []
    before = () => undefined
    after = before
  })
  afterEach(async () => {
    for (const provider of opened.splice(0)) await provider.close?.()
    await expect.poll(() => openBelow(folder.root), { message: 'no descriptor is left open' }).toEqual([])
    folder.remove()
  })

  const open = async (options: Partial<FilesOptions> = {}, system: FilesSystem = {}) => {
    const provider = await createFiles(
      { root: folder.root, ...options },
      {
        ...system,
        portable,
        places: (places) => ({
          ...places,
          child: async (parent, name, steps, signal) => {
            entered.push(name)
            await before(name)
            signal.throwIfAborted()
            const place = await places.child(parent, name, steps, signal)
            await after(name)
            return place
          },
        }),
      },
    )
    opened.push(provider)
    return provider
  }
  /** Returns a function that reads a file for one arrival: its text, or the kind of the error. */
  const reader =
    (provider: Provider, arrival: Arrival) =>
    async (path: string, more: Partial<Context> = {}) => {
      const signal = new AbortController().signal
      const context = { principal: { id: 'someone', roles: [] }, signal, arrival, ...more }
      try {
        const [content] = await provider.read({ path, params: new Map() }, context)
        return content !== undefined && 'text' in content ? content.text : undefined
      } catch (error) {
        return isResourceError(error) ? error.kind : error
      }
    }

  const names = ['one.md', 'two.md', 'three.md', 'four.md']
  const tree = Object.fromEntries(names.map((name) => [`a/b/${name}`, `${name} of b`] as const))
  const texts = names.map((name) => `${name} of b`)

  test('open each directory on their way once', async () => {
    folder.write({ ...tree, 'a/five.md': 'of a' })
    const read = reader(await open(), {})
    expect(await Promise.all([...names.map((name) => read(`a/b/${name}`)), read('a/five.md')])).toEqual([
      ...texts,
      'of a',
    ])
    expect(entered.sort()).toEqual([...names, 'a', 'b', 'five.md'].sort())
  })

  test('see the state of their own arrival', async () => {
    folder.write({ ...tree, 'c/b/one.md': 'of another b' })
    const provider = await open()
    expect(await reader(provider, {})('a/b/one.md')).toBe('one.md of b')
    renameSync(folder.at('a'), folder.at('old'))
    renameSync(folder.at('c'), folder.at('a'))
    expect(await reader(provider, {})('a/b/one.md')).toBe('of another b')
  })

  test('do not fail when the one that opens a directory for all is aborted', async () => {
    folder.write(tree)
    const read = reader(await open(), {})
    const abort = new AbortController()
    let isFirst = true
    before = async (name) => {
      if (name !== 'b' || !isFirst) return
      isFirst = false
      abort.abort('enough')
    }
    const [first, ...others] = names
    const all = [read(`a/b/${first}`, { signal: abort.signal }), ...others.map((name) => read(`a/b/${name}`))]
    expect(await Promise.all(all)).toEqual(['enough', ...texts.slice(1)])
  })

  test('leave nothing open when the last of them is aborted while a directory is opened', async () => {
    folder.write({ ...tree, 'a/five.md': 'of a', 'a/b/c/six.md': 'of c' })
    // Nothing notices the abort but the walk itself.
    const provider = await open({ gitignore: false }, { look: async () => undefined })
    const read = reader(provider, {})
    const abort = new AbortController()
    let isReached = () => {}
    const reached = new Promise<void>((resolve) => {
      isReached = resolve
    })
    let goOn = () => {}
    const waiting = new Promise<void>((resolve) => {
      goOn = resolve
    })
    after = (name) => {
      if (name === 'b') isReached()
      return name === 'b' ? waiting : undefined
    }
    const first = read('a/five.md')
    const second = read('a/b/c/six.md', { signal: abort.signal })
    await reached
    expect(await first).toBe('of a')
    abort.abort('enough')
    expect(await second).toBe('enough')
    goOn()
    after = () => undefined
    await expect.poll(() => openBelow(folder.root).filter((path) => path !== folder.root)).toEqual([])
    expect(entered).not.toContain('c')
    expect(await reader(provider, {})('a/b/one.md')).toBe('one.md of b')
  })

  test('get the same answer for what is missing, excluded, or no directory', async () => {
    folder.write({ ...tree, 'secret/plan.md': 'CANARY', file: 'text' })
    const provider = await open({ exclude: ['secret/**'] })
    const read = reader(provider, {})
    const paths = ['none/x.md', 'none/y.md', 'secret/plan.md', 'secret/none.md', 'file/x', 'a/b/none.md', 'a', 'a/b/']
    const answers = await Promise.all([...paths.map((path) => read(path)), read('a/b/one.md')])
    expect(answers).toEqual([...paths.map(() => 'not-found'), 'one.md of b'])
  })

  test('are judged for each caller when a link is on their way', async () => {
    folder.write({ ...tree, 'open/note.md': 'note' })
    symlinkSync('a/b', folder.at('link'))
    const provider = await open({ symlinks: 'beneath' })
    const read = reader(provider, {})
    const allows = (path: string) => !path.startsWith('a/')
    const answers = await Promise.all([
      ...[read('link/one.md'), read('link/two.md', { allows }), read('link/three.md')],
      ...[read('link/four.md', { allows }), read('open/note.md', { allows })],
    ])
    expect(answers).toEqual(['one.md of b', 'not-found', 'three.md of b', 'not-found', 'note'])
  })

  test('hold a bounded number of directories open', async () => {
    const deep = (name: string) => `${`${name}/`.repeat(100)}note.md`
    const paths = ['p', 'q', 'r', 's', 't'].map(deep)
    folder.write(Object.fromEntries(paths.map((path) => [path, path])))
    const provider = await open()
    let most = 0
    before = async (name) => {
      if (name === 'note.md') most = Math.max(most, openBelow(folder.root).length)
    }
    const read = reader(provider, {})
    expect(await Promise.all(paths.map((path) => read(path)))).toEqual(paths)
    expect(most).toBeLessThan(270)
  })
})
