import * as fs from 'node:fs'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import type { Provider } from '../../src/core/provider.ts'
import { createFiles, files } from '../../src/providers/files/index.ts'
import { contextOf, createFolder, type Folder, listAll, openBelow, readOne } from '../support/folder.ts'
import { requires } from '../support/require.ts'
import { volumeOf } from '../support/volume.ts'
import { canSwap, type SwapWay, startSwapping, swapWays } from './harness/swapper.ts'

const canary = 'CANARY-0d9f27'
const plain = 'inside'

let folder: Folder
let provider: Provider | undefined

beforeEach(() => {
  folder = createFolder()
  folder.write({ 'd/f.md': plain, 'd/sub/g.md': plain, 'leaf.md': plain })
  fs.mkdirSync(`${folder.outside}/sub`)
  for (const name of ['f.md', 'sub/g.md', `only-${canary}.md`, `sub/only-${canary}.md`])
    fs.writeFileSync(`${folder.outside}/${name}`, `# ${canary}\n`)
  fs.symlinkSync(folder.outside, folder.at('to-directory'))
  fs.symlinkSync(`${folder.outside}/f.md`, folder.at('to-file'))
})
afterEach(async () => {
  await provider?.close?.()
  await expect.poll(() => openBelow(folder.root), { message: 'no descriptor is left open' }).toEqual([])
  expect(openBelow(folder.outside)).toEqual([])
  folder.remove()
})

interface Tally {
  good: number
  absent: number
  leaks: string[]
}

const patience = 20_000

/**
 * Does something over and over while two names are swapped, and counts what comes of it: for so long, and on a machine
 * that is busy for longer, until it was swapped and tried often enough to mean something.
 */
async function underAttack(
  way: SwapWay,
  names: [string, string],
  ms: number,
  attempt: () => Promise<unknown>,
  enough = (tally: Tally) => tally.good > 50,
) {
  const swapper = await startSwapping(way, folder.at(names[0]), folder.at(names[1]))
  const tally: Tally = { good: 0, absent: 0, leaks: [] }
  try {
    const start = Date.now()
    const goesOn = () => {
      const passed = Date.now() - start
      return passed < ms || (passed < patience && !(enough(tally) && swapper.swaps() > 500))
    }
    const one = async () => {
      while (goesOn())
        try {
          const seen = JSON.stringify(await attempt())
          if (seen.includes(canary)) tally.leaks.push(seen)
          else tally.good++
        } catch (error) {
          tally.absent++
          // Nothing but absence, whatever the moment.
          if (!(error instanceof Error && 'kind' in error && error.kind === 'not-found')) throw error
        }
    }
    await Promise.all([one(), one(), one(), one()])
    expect(swapper.swaps(), 'the names were swapped').toBeGreaterThan(500)
  } finally {
    await swapper.stop()
  }
  expect(tally.leaks).toEqual([])
  return tally
}

/** What many servers do: resolve, compare, read. */
async function naiveRead(name: string): Promise<string> {
  const real = await fs.promises.realpath(folder.at(name))
  if (!real.startsWith(`${folder.root}/`)) return 'refused'
  return fs.promises.readFile(folder.at(name), 'utf8')
}

const textOf = async (path: string) => {
  if (provider === undefined) throw new Error('no provider')
  const content = await readOne(provider, path)
  return 'text' in content ? content.text : content
}

for (const way of swapWays) {
  requires(
    'python3',
    canSwap(way),
    'python3 with ctypes is needed for renameat2',
  )(`swapping two names by ${way}:`, () => {
    test.each(['deny', 'beneath'] as const)(
      'replacing a directory by a link to outside while its files are read discloses nothing (links: %s) (PT22)',
      async (symlinks) => {
        provider = await files({ root: folder.root, symlinks })
        let i = 0
        const paths = ['d/f.md', 'd/sub/g.md', 'to-directory/f.md', 'to-directory/sub/g.md']
        // The strongest attack that there is here goes on for ten seconds in full, the others for less.
        const time = way === swapWays.findLast(canSwap) && symlinks === 'deny' ? volumeOf(10_000) : 800
        const tally = await underAttack(way, ['d', 'to-directory'], time, () => textOf(paths[i++ % paths.length]!))
        expect(tally.good).toBeGreaterThan(50)
      },
    )

    test.each(['deny', 'beneath'] as const)(
      'replacing a file by a link to outside while it is read discloses nothing (links: %s) (PT23)',
      async (symlinks) => {
        provider = await files({ root: folder.root, symlinks, rules: [{ match: '*', title: 'heading' }] })
        let i = 0
        const tally = await underAttack(way, ['leaf.md', 'to-file'], 800, () =>
          i++ % 4 === 0 ? provider!.stat!('leaf.md', contextOf()) : textOf(i % 2 === 0 ? 'leaf.md' : 'to-file'),
        )
        expect(tally.good).toBeGreaterThan(50)
      },
    )

    test('replacing a directory by a link to outside while it is listed discloses nothing (PT24)', async () => {
      provider = await files({ root: folder.root, rules: [{ match: '*', title: 'heading' }] })
      let i = 0
      const queries = [{}, { prefix: 'd/' }, { prefix: 'd/sub/' }, { after: 'd/f' }, { prefix: 'to-directory/' }]
      let entries = 0
      const attempt = async () => {
        const found = await listAll(provider!, queries[i++ % queries.length])
        entries += found.length
        return found
      }
      const tally = await underAttack(way, ['d', 'to-directory'], 800, attempt, () => entries > 50)
      expect(tally.absent, 'a listing is not refused').toBe(0)
      expect(entries).toBeGreaterThan(50)
    })

    test('without /proc, replacing a directory by a link to outside while it is read and listed discloses nothing (PT22, PT24)', async () => {
      // A directory that something else changed a moment ago is waited for, and one that changes all the time is unavailable.
      provider = await createFiles({ root: folder.root }, { portable: true })
      const refused = (error: unknown) => {
        if (error instanceof Error && 'kind' in error && error.kind === 'unavailable') return 'refused'
        throw error
      }
      const attempts = [
        () => textOf('d/f.md'),
        () => textOf('d/sub/g.md'),
        () => listAll(provider!, { prefix: 'd/' }),
        () => listAll(provider!, { prefix: 'd/sub/' }),
        () => textOf('leaf.md'),
      ]
      let i = 0
      const attempt = () => attempts[i++ % attempts.length]!().catch(refused)
      await underAttack(way, ['d', 'to-directory'], volumeOf(10_000), attempt)
      // The last swap is waited for, after which the name may mean the link.
      await vi.waitFor(async () => {
        const found = await textOf('d/f.md').catch((error: { kind: string }) => error.kind)
        expect(found, 'answered once nothing is swapped').toMatch(/inside|not-found/)
      })
    })

    test('replacing a directory or file by a link deceives a reader that checks only the path (PT22, PT23)', async () => {
      let leaks = 0
      for (const [names, path] of [
        [['d', 'to-directory'], 'd/f.md'],
        [['leaf.md', 'to-file'], 'leaf.md'],
      ] as const) {
        const swapper = await startSwapping(way, folder.at(names[0]), folder.at(names[1]))
        for (const end = Date.now() + patience; Date.now() < end && leaks === 0; )
          if ((await naiveRead(path).catch(() => '')).includes(canary)) leaks++
        await swapper.stop()
      }
      expect(leaks).toBeGreaterThan(0)
    })
  })
}

describe('files that change during a read:', () => {
  test('a file that grows endlessly is refused at the limit, and never truncated silently (PT31)', async () => {
    provider = await files({ root: folder.root, maxBytes: 1_000_000 })
    fs.writeFileSync(folder.at('log'), '')
    const { spawn } = await import('node:child_process')
    const writer = spawn('sh', ['-c', `while :; do printf '%01000d' 7; done >> "$0"`, folder.at('log')])
    try {
      const sizes: number[] = []
      for (let refused = false; !refused; ) {
        try {
          const content = await readOne(provider, 'log')
          if (!('text' in content)) throw new Error('bytes')
          expect(content.text).toHaveLength(content.size ?? -1)
          sizes.push(content.text.length)
        } catch (error) {
          expect((error as { kind: string }).kind).toMatch(/too-large|unavailable/)
          refused = (error as { kind: string }).kind === 'too-large'
          if (refused) expect(error).toMatchObject({ detail: { limit: 1_000_000, reason: 'too-large' } })
        }
      }
      expect(Math.max(0, ...sizes)).toBeLessThanOrEqual(1_000_000)
    } finally {
      writer.kill('SIGKILL')
    }
  })

  test('a read of a file that is deleted and replaced all the time gives one complete version, or "not found" (PT42)', async () => {
    provider = await files({ root: folder.root })
    const versions = Array.from({ length: 8 }, (_, i) => String(i).repeat(200_000))
    fs.writeFileSync(folder.at('v'), versions[0]!)
    let stopped = false
    const replacing = (async () => {
      for (let i = 0; !stopped; i++) {
        fs.writeFileSync(folder.at('v.new'), versions[i % 8]!)
        if (i % 3 === 0) fs.rmSync(folder.at('v'), { force: true })
        await new Promise((resolve) => setTimeout(resolve, i % 4))
        fs.renameSync(folder.at('v.new'), folder.at('v'))
        await new Promise((resolve) => setTimeout(resolve, i % 5))
      }
    })()
    const seen = { whole: 0, absent: 0 }
    for (const end = Date.now() + 1500; Date.now() < end || seen.whole <= 10; ) {
      const listed = await listAll(provider)
      const content = await textOf('v').catch((error: { kind: string }) => `!${error.kind}`)
      if (content === '!not-found') seen.absent++
      else {
        expect(versions.includes(content as string), String(content).slice(0, 20)).toBe(true)
        seen.whole++
      }
      expect(listed.every(({ path }) => path !== '')).toBe(true)
    }
    stopped = true
    await replacing
  })
})
