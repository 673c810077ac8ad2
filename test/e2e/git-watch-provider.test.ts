import { linkSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createCatalog } from '../../src/core/catalog.ts'
import type { Provider } from '../../src/core/provider.ts'
import { createGit, type GitOptions } from '../../src/providers/git/index.ts'
import {
  type Asked,
  ask,
  createGitFolder,
  type GitRepository,
  hasReftable,
  makeReftable,
  openTestRepository,
} from '../support/git.ts'
import { requires } from '../support/require.ts'
import { countNotified, eventually, startWatching, type Watching } from '../support/watching.ts'

let folder: ReturnType<typeof createGitFolder>
let repository: GitRepository
let provider: Provider
let asked: Asked
let logged: string[]
const opened: Provider[] = []
const watches: Watching[] = []

beforeEach(() => {
  folder = createGitFolder()
  repository = folder.repository('repository')
  logged = []
})

afterEach(async () => {
  for (const watch of watches.splice(0)) await watch.stop()
  for (const one of opened.splice(0)) await one.close?.()
  folder.dispose()
})

async function open(options: Partial<GitOptions> = {}): Promise<Provider> {
  const log: GitOptions['log'] = (level, message) => void logged.push(`${level}: ${message}`)
  // A table of refs is good for a minute: what is read after a change is told has to be fresh for another reason.
  provider = await createGit({ repository: repository.dir, log, ...options }, { maxAgeMs: 60_000 })
  opened.push(provider)
  asked = ask(provider)
  return provider
}

/** Watches without help from comparisons: they come once an hour. */
async function begin(options: Partial<GitOptions> = {}): Promise<Watching> {
  await open({ reconcile: 3_600_000, ...options })
  const watch = await startWatching(provider)
  watches.push(watch)
  return watch
}

/**
 * Does something, waits until all of it was told, and answers what else was. The state of the working tree is not counted: it
 * can be told late, and twice.
 */
async function beside(watch: Watching, expected: readonly string[], act: () => unknown): Promise<readonly string[]> {
  watch.clear()
  await act()
  const left = () => expected.filter((path) => !watch.summary().includes(path))
  await eventually(() => left().length === 0, `told of ${expected}; got ${watch.summary()}`)
  await watch.quiet(80)
  return watch.summary().filter((path) => path !== 'status' && !expected.includes(path))
}

/** What is told of a ref that moves, apart from its files. */
const about = (...names: readonly string[]) => names.flatMap((name) => [`blame/${name}/`, `commits/${name}`])

/** A commit on `main` that holds two files. */
function fill() {
  repository.write('a.txt', 'one\n')
  repository.write('src/b.txt', 'b\n')
  return repository.commit('first')
}

describe('the watch of a git mount', () => {
  test('reports the files that a commit changed, at HEAD and at the branch, and the generated pages such as the log', async () => {
    fill()
    const watch = await begin()
    const names = ['HEAD', 'main', 'refs/heads/main']
    const files = names.map((name) => `${name}/a.txt`)
    const expected = [...about(...names), ...files, 'branches', 'diff/', 'log', 'status']
    const others = await beside(watch, expected, () => {
      repository.write('a.txt', 'two\n')
      repository.commit('second')
    })
    expect(others).toEqual([])
    expect(await asked.text('HEAD/a.txt')).toBe('two\n')
    expect(await asked.text('log')).toContain('second')
  })

  test('reports listed files that appear and disappear at HEAD', async () => {
    fill()
    const watch = await begin()
    const expected = ['+HEAD/a.txt', '+HEAD/new.txt', 'main/a.txt', 'main/new.txt', 'refs/heads/main/new.txt']
    const others = await beside(watch, expected, () => {
      rmSync(join(repository.dir, 'a.txt'))
      repository.write('new.txt', 'new\n')
      repository.commit('second')
    })
    expect(others.filter((path) => path.startsWith('+') || path.endsWith('/b.txt'))).toEqual([])
    expect(await asked.paths()).toEqual(['HEAD/new.txt', 'HEAD/src/b.txt', 'branches', 'log', 'status', 'tags'])
  })

  test('reports commits that replace others by force, in a bare repository', async () => {
    const first = fill()
    repository.write('a.txt', 'two\n')
    const second = repository.commit('second')
    const bare = join(folder.path, 'bare.git')
    repository.git('clone', '-q', '--bare', repository.dir, bare)
    const watch = await begin({ repository: bare })
    repository.git('reset', '-q', '--hard', first)
    repository.write('src/b.txt', 'forced\n')
    repository.commit('forced')
    const expected = ['HEAD/a.txt', 'HEAD/src/b.txt', 'main/a.txt', 'main/src/b.txt']
    await beside(watch, expected, () => repository.git('push', '-q', '--force', bare, 'main'))
    expect(watch.summary()).not.toContain('status')
    expect(await asked.text('main/src/b.txt')).toBe('forced\n')
    expect(await asked.text('HEAD/a.txt')).toBe('one\n')
    await expect(asked.read(`commits/${second}`)).rejects.toMatchObject({ kind: 'not-found' })
    repository.git('commit', '-q', '--amend', '-m', 'amended')
    const others = await beside(watch, ['log', 'commits/main'], () => repository.git('push', '-q', '-f', bare, 'main'))
    expect(others.filter((path) => path.endsWith('.txt'))).toEqual([])
    expect(await asked.text('log')).toContain('amended')
  })

  test('reports the directory of a branch or tag that is created or deleted, and no other', async () => {
    fill()
    const watch = await begin()
    const [branch, tag] = [
      ['feature/x', 'refs/heads/feature/x'],
      ['v1', 'refs/tags/v1'],
    ]
    const ofBranch = [...about(...branch), ...branch.map((name) => `${name}/`), 'branches', 'diff/', 'log']
    const ofTag = [...about(...tag), ...tag.map((name) => `${name}/`), 'diff/', 'log', 'tags']
    expect(await beside(watch, ofBranch, () => repository.git('branch', 'feature/x'))).toEqual([])
    expect(await asked.text('feature/x/a.txt')).toBe('one\n')
    expect(await beside(watch, ofTag, () => repository.git('tag', '-a', 'v1', '-m', 'one'))).toEqual([])
    expect(await beside(watch, ofBranch, () => repository.git('branch', '-D', 'feature/x'))).toEqual([])
    await expect(asked.read('feature/x/a.txt')).rejects.toMatchObject({ kind: 'not-found' })
    // Its directory was removed with it, and is another one now.
    expect(await beside(watch, ofBranch, () => repository.git('branch', 'feature/x'))).toEqual([])
    await beside(watch, ['feature/y/z/'], () => repository.git('branch', 'feature/y/z'))
    expect(await beside(watch, ofTag, () => repository.git('tag', '-d', 'v1'))).toEqual([])
  })

  test('survives the packing of refs, and reports nothing for it', async () => {
    fill()
    for (const name of ['one', 'two/x', 'two/y']) repository.git('branch', name)
    const watch = await begin()
    repository.git('pack-refs', '--all')
    repository.git('gc', '-q', '--prune=now')
    await watch.quiet(300)
    expect(watch.summary()).toEqual([])
    await beside(watch, ['two/x/'], () => repository.git('branch', '-D', 'two/x'))
    await beside(watch, ['commits/two/y'], () => repository.git('branch', '-f', 'two/y', repository.commit('more')))
    expect(await asked.text('log', { ref: 'two/y' })).toContain('more')
  })

  test('reports a checkout, and a detached HEAD', async () => {
    const first = fill()
    repository.git('branch', 'same')
    repository.git('checkout', '-q', '-b', 'other')
    repository.write('a.txt', 'other\n')
    repository.commit('other')
    const watch = await begin()
    const checkout = [...about('HEAD'), 'HEAD/a.txt', 'branches', 'diff/', 'log', 'status']
    expect(await beside(watch, checkout, () => repository.git('checkout', '-q', 'main'))).toEqual([])
    expect(await asked.text('HEAD/a.txt')).toBe('one\n')
    const sameCommit = ['branches', 'log', 'status']
    expect(await beside(watch, sameCommit, () => repository.git('checkout', '-q', 'same'))).toEqual([])
    await beside(watch, sameCommit, () => repository.git('checkout', '-q', '--detach', first))
    expect(await asked.text('status')).toContain('detached')
  })

  test('follows a rebase of many commits to its end', async () => {
    fill()
    repository.git('checkout', '-q', '-b', 'topic')
    for (let i = 0; i < 15; i++) {
      repository.write(`topic-${i}.txt`, `${i}\n`)
      repository.commit(`topic ${i}`)
    }
    repository.git('checkout', '-q', 'main')
    repository.write('a.txt', 'main moved\n')
    repository.commit('main moved')
    repository.git('checkout', '-q', 'topic')
    const watch = await begin()
    await beside(watch, ['HEAD/a.txt', 'topic/a.txt', 'log'], () => repository.git('rebase', '-q', 'main'))
    await watch.quiet()
    expect(await asked.text('topic/a.txt')).toBe('main moved\n')
    expect(await asked.text('log', { limit: '1' })).toContain('topic 14')
    expect(await asked.text('branches')).toContain('* topic')
  })

  test('reports changes that another process fetches, if remote refs are served', async () => {
    fill()
    const clone = join(folder.path, 'clone')
    repository.git('clone', '-q', repository.dir, clone)
    const all = await begin({ repository: clone, refs: ['HEAD', 'refs/**'] })
    const usual = await begin({ repository: clone })
    repository.write('a.txt', 'fetched\n')
    repository.commit('second')
    const others = await beside(all, ['refs/remotes/origin/main/a.txt'], () =>
      repository.git('-C', clone, 'fetch', '-q'),
    )
    expect(others).not.toContain('HEAD/a.txt')
    expect(usual.summary()).toEqual([])
  })

  test('reports nothing about refs that are not served', async () => {
    fill()
    const watch = await begin({ refs: ['HEAD', 'refs/heads/main', 'refs/tags/v*'] })
    const expected = [...about('v2', 'refs/tags/v2'), 'v2/', 'refs/tags/v2/', 'diff/', 'log', 'tags']
    const others = await beside(watch, expected, () => {
      repository.git('branch', 'secret')
      repository.git('tag', 'internal')
      repository.git('update-ref', 'refs/pull/1', 'HEAD')
      repository.git('tag', 'v2')
    })
    expect(others).toEqual([])
  })

  test('reports changes of the working tree: of the index at once, of files by comparing', async () => {
    fill()
    repository.write('a.txt', 'edited\n')
    const prompt = await begin()
    await beside(prompt, ['status'], () => repository.git('add', 'a.txt'))
    const watch = await begin({ reconcile: 150 })
    await beside(watch, ['status'], () => repository.write('b.txt', 'untracked\n'))
    expect(await asked.text('status')).toContain('b.txt')
    await beside(watch, ['status'], () => rmSync(join(repository.dir, 'b.txt')))
    await watch.quiet(300)
    watch.clear()
    // The index is written anew, and says the same.
    repository.git('update-index', '--really-refresh', '--force-write-index')
    await watch.quiet(400)
    expect(watch.summary()).toEqual([])
  })

  test('reports the HEAD of a linked working tree only for commits made there, and branches wherever they are moved', async () => {
    fill()
    const linked = join(folder.path, 'linked')
    repository.git('worktree', 'add', '-q', '-b', 'topic', linked)
    const watch = await begin({ repository: linked })
    const there = openTestRepository(linked)
    await beside(watch, ['HEAD/a.txt', 'topic/a.txt', 'status'], () => {
      there.write('a.txt', 'linked\n')
      there.commit('linked')
    })
    const elsewhere = await beside(watch, ['main/src/b.txt'], () => {
      repository.write('src/b.txt', 'main\n')
      repository.commit('on main')
    })
    expect(elsewhere).not.toContain('HEAD/src/b.txt')
  })

  test('starts in a repository without commits, and reports the first one', async () => {
    const watch = await begin()
    const expected = ['+HEAD/', 'main/', 'refs/heads/main/', 'log', 'branches', 'status']
    await beside(watch, expected, () => fill())
    expect(await asked.text('HEAD/a.txt')).toBe('one\n')
  })

  test('reports the directory instead of very many files', async () => {
    fill()
    const watch = await begin()
    const others = await beside(watch, ['+HEAD/', 'main/', 'refs/heads/main/'], () => {
      for (let i = 0; i < 1100; i++) repository.write(`many/${i}.txt`, '')
      repository.commit('many')
    })
    expect(others.filter((path) => path.endsWith('.txt'))).toEqual([])
  })

  test('reports that everything may have changed when a shallow history is deepened', async () => {
    fill()
    repository.write('a.txt', 'two\n')
    repository.commit('second')
    const clone = join(folder.path, 'clone')
    repository.git('clone', '-q', '--depth=1', `file://${repository.dir}`, clone)
    const watch = await begin({ repository: clone })
    expect((await asked.stat('HEAD/src/b.txt')).modified).toBeUndefined()
    const { version } = await asked.stat('log')
    await beside(watch, ['*'], () => repository.git('-C', clone, 'fetch', '-q', '--unshallow'))
    expect(await asked.text('log')).toContain('first')
    expect((await asked.stat('HEAD/src/b.txt')).modified).toBeGreaterThan(0)
    expect((await asked.stat('log')).version).not.toBe(version)
  })

  test('survives the deletion of the repository, and follows a new one at its place', async () => {
    fill()
    const watch = await begin()
    await beside(watch, ['*'], () => rmSync(repository.dir, { recursive: true }))
    await eventually(() => provider.degraded?.() === 'unavailable', 'it is missed')
    expect(logged.filter((line) => line.includes('cannot be read now'))).toHaveLength(1)
    await expect(asked.read('HEAD/a.txt')).rejects.toMatchObject({ kind: 'unavailable' })
    repository = folder.repository('repository')
    repository.write('a.txt', 'another repository\n')
    repository.commit('another')
    await eventually(() => provider.degraded?.() === undefined, 'it is found again')
    await watch.until('HEAD/a.txt')
    await watch.quiet()
    expect(await asked.text('HEAD/a.txt')).toBe('another repository\n')
    // It listens to the new one.
    await beside(watch, ['HEAD/a.txt'], () => {
      repository.write('a.txt', 'changed\n')
      repository.commit('change')
    })
    renameSync(repository.dir, `${repository.dir}-away`)
    await eventually(() => provider.degraded?.() === 'unavailable', 'it is missed')
    renameSync(`${repository.dir}-away`, repository.dir)
    await eventually(() => provider.degraded?.() === undefined, 'it is found again')
  })

  test('finds changes without events by comparing', async () => {
    const first = fill()
    repository.write('a.txt', 'second\n')
    const second = repository.commit('second')
    repository.git('branch', 'topic', first)
    const ref = join(repository.gitDir, 'refs', 'heads', 'topic')
    const elsewhere = join(folder.path, 'topic')
    // What is written by another name of the file is not heard.
    linkSync(ref, elsewhere)
    const deaf = await begin()
    const watch = await begin({ reconcile: 150 })
    writeFileSync(elsewhere, `${second}\n`)
    await watch.until('topic/a.txt')
    expect(deaf.changes).toEqual([])
    expect(await asked.text('topic/a.txt')).toBe('second\n')
  })

  test('reports changes from the moment when it says that it is ready, and a read after a report has the change', async () => {
    fill()
    await open({ reconcile: 3_600_000 })
    for (let round = 0; round < 8; round++) {
      await asked.text('HEAD/a.txt')
      const watch = await startWatching(provider)
      watches.push(watch)
      repository.write('a.txt', `round ${round}\n`)
      repository.commit(`round ${round}`)
      await watch.until('HEAD/a.txt', 'main/a.txt', 'log')
      expect(await asked.text('HEAD/a.txt')).toBe(`round ${round}\n`)
      expect(await asked.text('log')).toContain(`round ${round}`)
      await watch.stop()
    }
  })

  test('ends with its signal or with the provider, and leaves nothing open', async () => {
    fill()
    await open()
    const before = countNotified()
    const first = await startWatching(provider)
    const second = await startWatching(provider)
    expect(countNotified()).toBeGreaterThan(before)
    await first.stop()
    expect(first.error).toBeUndefined()
    await provider.close?.()
    await second.ended
    expect(second.error).toBeUndefined()
    await eventually(() => countNotified() === before, 'nothing is listened to')
    await expect(startWatching(provider)).rejects.toThrow()
  })

  test('cannot start while the repository is gone', async () => {
    fill()
    await open()
    rmSync(repository.dir, { recursive: true })
    await expect(startWatching(provider)).rejects.toMatchObject({ kind: 'unavailable' })
  })

  test('can be switched off, and refuses an interval of comparisons below 100 ms', async () => {
    fill()
    expect((await open({ watch: false })).watch).toBeUndefined()
    await expect(open({ reconcile: 99 })).rejects.toMatchObject({ kind: 'invalid' })
  })

  test('notifies the subscribers of a new file and of each directory above the file', async () => {
    fill()
    await open({ reconcile: 3_600_000 })
    const catalog = createCatalog({ mounts: [{ address: 'git://app', provider }] })
    const told = new Set<string>()
    const view = catalog.view({ id: 'test', roles: [] })
    const subscription = view.subscribe?.(({ uris }) => {
      for (const uri of uris) told.add(uri)
    })
    try {
      const uris = ['topic/src/b.txt', 'topic', 'topi/src/b.txt', 'main/a.txt', ''].map((path) => `git://app/${path}`)
      await subscription?.add(uris)
      repository.git('branch', 'topic')
      await eventually(() => told.has('git://app/topic/src/b.txt') && told.has('git://app/topic'), 'both are told')
      expect([...told].sort()).toEqual(['git://app/', 'git://app/topic', 'git://app/topic/src/b.txt'])
    } finally {
      subscription?.close()
      await catalog.close()
    }
  })
})

requires(
  'reftable',
  hasReftable(),
  'needs git 2.45 or newer',
)('with refs in the reftable format,', () => {
  test('the watch of a git mount reports commits and new branches', async () => {
    repository = makeReftable(join(folder.path, 'tables'))
    fill()
    const watch = await begin()
    const expected = [...about('HEAD', 'main', 'refs/heads/main'), 'HEAD/a.txt', 'branches', 'log']
    await beside(watch, expected, () => {
      repository.write('a.txt', 'two\n')
      repository.commit('second')
    })
    expect(await asked.text('HEAD/a.txt')).toBe('two\n')
    await beside(watch, about('new', 'refs/heads/new'), () => repository.git('branch', 'new'))
    expect(await asked.text('new/a.txt')).toBe('two\n')
  })
})
