import { execFileSync } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Provider } from '../../src/core/provider.ts'
import { createGit } from '../../src/providers/git/index.ts'
import { type Asked, ask, createGitFolder, type GitFolder, type GitRepository } from '../support/git.ts'
import { fillPlainly } from '../support/git-hostile.ts'
import { hasTurn, volumeOf } from '../support/volume.ts'
import { canSwap, startSwapping, swapWays } from './harness/swapper.ts'

// Symbolic links that come into a repository after it was opened, or are there for moments only: nothing of the repository that
// they lead to is answered.

const canary = 'canary of another repository'

let folder: GitFolder
let repository: GitRepository
let other: GitRepository
/** The ids of another repository, which its owner keeps for himself. */
let secret: { readonly commit: string; readonly blob: string }
const opened: Provider[] = []

beforeEach(() => {
  folder = createGitFolder()
  repository = folder.repository('repository')
  fillPlainly(repository)
  other = folder.repository('other')
  secret = other.fillAs('canaries', () => {
    other.write('a.txt', `${canary}\n`)
    other.write('dir/canary.txt', `${canary}\n`)
    const commit = other.commit(`${canary}\n\nin a message`)
    other.git('branch', 'canary-branch')
    other.write('canary-untracked.txt', canary)
    return { commit, blob: other.git('rev-parse', 'HEAD:a.txt') }
  })
})

afterEach(async () => {
  for (const provider of opened.splice(0)) await provider.close?.()
  folder.dispose()
})

async function open(maxAgeMs = 0): Promise<Asked> {
  const provider = await createGit({ repository: repository.dir, watch: false }, { maxAgeMs })
  opened.push(provider)
  return ask(provider)
}

/** Everything that is answered to some questions, and every error. */
async function answers(asked: Asked, refs: readonly string[] = ['HEAD', 'main']): Promise<string> {
  const questions = [
    () => asked.paths(),
    () => asked.text('branches'),
    () => asked.text('log'),
    () => asked.text('status'),
    ...refs.flatMap((ref) => [
      () => asked.text(`${ref}/a.txt`),
      () => asked.text(`${ref}/dir/canary.txt`),
      () => asked.text(`commits/${ref}`),
      () => asked.text('log', { ref }),
    ]),
  ]
  const said = await Promise.all(
    questions.map(async (question) => {
      try {
        return JSON.stringify(await question())
      } catch (error) {
        return String(error)
      }
    }),
  )
  return said.join('\n')
}

/** Whether something of the other repository is in a text. */
function leaks(text: string): boolean {
  return text.includes('canary') && /canary(?: of|-branch|-untracked)/.test(text)
}

/** Puts a link into the place of something, which is put aside. */
function replaceByLink(path: string, target: string): () => void {
  renameSync(path, `${path}.aside`)
  symlinkSync(target, path)
  return () => {
    rmSync(path)
    renameSync(`${path}.aside`, path)
  }
}

/** Makes refs of the repository lead to what only the other one has. */
function pointAtSecret(): void {
  for (const name of ['main', 'secret'])
    writeFileSync(join(repository.gitDir, 'refs/heads', name), `${secret.commit}\n`)
}

const swaps: Readonly<Record<string, () => readonly [path: string, target: string]>> = {
  'the .git directory': () => [repository.gitDir, other.gitDir],
  'the folder of the repository': () => [repository.dir, other.dir],
  'the objects': () => [join(repository.gitDir, 'objects'), join(other.gitDir, 'objects')],
  'the refs': () => [join(repository.gitDir, 'refs'), join(other.gitDir, 'refs')],
  'the branches': () => [join(repository.gitDir, 'refs/heads'), join(other.gitDir, 'refs/heads')],
}

describe('symbolic links in a git repository:', () => {
  test.each(Object.keys(swaps))(
    'nothing of the target of a link in the place of %s is served, while the link is there or later (GT18)',
    async (name) => {
      const asked = await open()
      expect(await asked.text('HEAD/a.txt')).toBe('one\ntwo\n')
      const [path, target] = swaps[name]?.() ?? ['', '']
      const putBack = replaceByLink(path, target)
      for (let round = 0; round < 2; round++) {
        const text = await answers(asked, ['HEAD', 'main', 'canary-branch', secret.commit])
        expect(leaks(text), text).toBe(false)
      }
      putBack()
      expect(await asked.text('HEAD/a.txt')).toBe('one\ntwo\n')
      const text = await answers(asked, ['HEAD', 'main', 'canary-branch'])
      expect(leaks(text), text).toBe(false)
    },
  )

  test('a branch that is a link to the branches of another repository is absent (GT18)', async () => {
    symlinkSync(join(other.gitDir, 'refs/heads'), join(repository.gitDir, 'refs/heads/evil'))
    symlinkSync(join(other.gitDir, 'refs/heads/main'), join(repository.gitDir, 'refs/heads/file'))
    expect(repository.git('for-each-ref', '--format=%(refname)')).toContain('refs/heads/evil/canary-branch')
    const asked = await open()
    for (let round = 0; round < 2; round++) {
      const text = await answers(asked, ['HEAD', 'evil/canary-branch', 'evil/main', 'file'])
      expect(leaks(text), text).toBe(false)
    }
    expect(await asked.text('branches')).not.toMatch(/evil|file/)
    expect(await asked.text('HEAD/a.txt')).toBe('one\ntwo\n')
  })

  test('a link in the place of an object gives nothing of the object that it leads to (GT16)', async () => {
    const objects = join(repository.gitDir, 'objects')
    const ids = other.git('rev-list', '--objects', 'HEAD').split('\n')
    for (const line of ids) {
      const id = line.split(' ')[0] ?? ''
      mkdirSync(join(objects, id.slice(0, 2)), { recursive: true })
      symlinkSync(
        join(other.gitDir, 'objects', id.slice(0, 2), id.slice(2)),
        join(objects, id.slice(0, 2), id.slice(2)),
      )
    }
    pointAtSecret()
    expect(repository.git('cat-file', '-p', secret.blob)).toContain(canary)
    const text = await open().then(
      (asked) => answers(asked, ['main', 'secret', secret.commit]),
      (error: unknown) => String(error),
    )
    expect(leaks(text), text).toBe(false)
  })
})

/** The ways that this machine has. */
const ways = swapWays.filter((way) => canSwap(way))

describe.runIf(process.platform === 'linux').each(swapWays)(
  'a link that is created and removed repeatedly by %s',
  (way) => {
    /** Rounds of all questions, of 16 questions or more. */
    const rounds = 20

    // In a tenth of the volume each of them comes and goes in one way.
    const isTried = (row: number) => hasTurn(row, ways.indexOf(way), ways.length)

    test.runIf(ways.includes(way)).each(Object.keys(swaps).filter((_, row) => isTried(row)))(
      'in the place of %s discloses nothing of its target (GT18)',
      async (name) => {
        const [path, target] = swaps[name]?.() ?? ['', '']
        // Whatever ids the refs name, the objects are elsewhere.
        if (name === 'the objects') pointAtSecret()
        const asked = await open()
        symlinkSync(target, `${path}.link`)
        const swapper = await startSwapping(way, path, `${path}.link`)
        let refused = 0
        try {
          const before = swapper.swaps()
          for (let round = 0; round < volumeOf(rounds) || (refused === 0 && round < rounds); round++) {
            const text = await answers(asked, ['HEAD', 'main', 'canary-branch', 'secret', secret.commit])
            expect(leaks(text), text).toBe(false)
            if (text.includes('ResourceError')) refused++
          }
          expect(swapper.swaps()).toBeGreaterThan(before)
          expect(refused).toBeGreaterThan(0)
        } finally {
          await swapper.stop()
        }
      },
      300_000,
    )

    test.runIf(ways.includes(way) && isTried(Object.keys(swaps).length))(
      'in the place of the packs discloses nothing of its target (GT16)',
      async () => {
        other.git('gc', '-q')
        repository.git('gc', '-q')
        pointAtSecret()
        const asked = await open()
        const packs = join(repository.gitDir, 'objects/pack')
        const link = `${packs}.link`
        symlinkSync(join(other.gitDir, 'objects/pack'), link)
        const swapper = await startSwapping(way, packs, link)
        try {
          for (let round = 0; round < volumeOf(rounds); round++) {
            const text = await answers(asked, ['HEAD', 'main', 'secret', secret.commit])
            expect(leaks(text), text).toBe(false)
          }
        } finally {
          await swapper.stop()
        }
      },
      300_000,
    )
  },
)

/** The paths of the folder that this process holds open. A path that was removed ends in `(deleted)`. */
function openPaths(): readonly string[] {
  const own = readdirSync('/proc/self/fd').flatMap((fd) => {
    try {
      return [readlinkSync(`/proc/self/fd/${fd}`)]
    } catch {
      return []
    }
  })
  return own.filter((path) => path.startsWith(folder.path))
}

test.runIf(process.platform === 'linux')(
  'descriptors of git directories do not accumulate while packs are replaced, and are closed with the provider (GT18)',
  { timeout: 180_000 },
  async () => {
    const count = () => openPaths().length
    expect(count()).toBe(0)
    const asked = await open()
    await answers(asked)
    const one = count()
    expect(one).toBeGreaterThan(0)
    repository.git('gc', '-q')
    for (let round = 0; round < 6; round++) {
      await answers(asked, ['HEAD'])
      repository.write('a.txt', `${round}\n`)
      repository.commit(`${round}`)
      repository.git('repack', '-a', '-d', '-q')
    }
    await answers(asked)
    await expect.poll(count, { timeout: 20_000 }).toBeLessThan(one + 5)
    await opened.pop()?.close?.()
    await expect.poll(count, { timeout: 20_000 }).toBe(0)
  },
)

test.runIf(process.platform === 'linux')(
  'git processes release a deleted pack after the next read (GT18)',
  async () => {
    repository.git('gc', '-q')
    const asked = await open()
    expect(await asked.text('HEAD/a.txt')).toBe('one\ntwo\n')
    expect(await mapped()).not.toEqual([])
    repository.write('a.txt', 'three\n')
    repository.commit('three')
    repository.git('repack', '-a', '-d', '-q')
    const deleted = async () => (await mapped()).filter((line) => line.endsWith('(deleted)'))
    expect(await deleted()).not.toEqual([])
    expect(await asked.text('HEAD/a.txt')).toBe('three\n')
    await expect.poll(deleted, { timeout: 20_000 }).toEqual([])
  },
)

/** The files of the folder that are mapped into the memory of child processes of this one. */
async function mapped(): Promise<readonly string[]> {
  const children = execFileSync('ps', ['-o', 'pid=', '--ppid', String(process.pid)], { encoding: 'utf8' })
  const maps = children
    .split('\n')
    .map((pid) => `/proc/${pid.trim()}/maps`)
    .filter((path) => existsSync(path) && path !== '/proc//maps')
    .map((path) => readFileSync(path, 'utf8'))
  return maps.flatMap((text) => text.split('\n').filter((line) => line.includes(folder.path)))
}
