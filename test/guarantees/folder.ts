import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { History } from './history.ts'
import { textOf } from './sources.ts'

/** A folder that a server serves, and every way in which it changes. A write replaces a file in one step. */
export interface WrittenFolder {
  /** A configuration that serves it at `file:///files`. */
  readonly config: string
  readonly home: string
  readonly uris: readonly string[]
  write(uri: string, absent?: boolean): void
  has(uri: string): boolean
  /** Removes the folder itself, with all that is in it. */
  removeRoot(): void
  /** Changes something that is not served, so often that the system forgets to tell of what comes behind it. */
  overflow(): void
  delete(): void
}

export const address = 'file:///files'

export function createWrittenFolder(history: History): WrittenFolder {
  const home = mkdtempSync(join(tmpdir(), 'hikidashi-guarantees-'))
  const root = join(home, 'root')
  const config = join(home, 'hikidashi.json')
  const versions = new Map<string, number>()
  const present = new Set<string>()
  const many = (prefix: string, count: number) =>
    Array.from({ length: count }, (_, i) => `${address}/${prefix}/${i}.txt`)
  const uris = [...many('open/hot', 10), ...many('open/calm', 10), ...many('deep/down/below', 6), ...many('secret', 4)]
  const pathOf = (uri: string) => join(root, uri.slice(address.length))

  /** The fact of a write, which has just happened: nothing else can have happened in between. */
  const tell = (uri: string, absent: boolean): void => {
    const version = (versions.get(uri) ?? -1) + 1
    versions.set(uri, version)
    const listed = absent || !present.has(uri)
    if (absent) present.delete(uri)
    else present.add(uri)
    history.add({ kind: 'write', uri, version, listed, absent })
  }

  const write: WrittenFolder['write'] = (uri, absent = false) => {
    const path = pathOf(uri)
    if (absent) {
      if (!present.has(uri)) return
      rmSync(path)
    } else {
      const beside = join(home, 'next')
      writeFileSync(beside, textOf(uri, (versions.get(uri) ?? -1) + 1))
      mkdirSync(dirname(path), { recursive: true })
      renameSync(beside, path)
    }
    tell(uri, absent)
  }

  const access = [
    { allow: ['*'], match: ['open/**', 'deep/**', 'come/**', 'own/**'] },
    { allow: ['chief'], match: 'secret/**' },
  ]
  // Rounds are too far away to help.
  const mount = { provider: 'files', root: './root', exclude: ['unserved-*'], reconcile: '1h', access }
  writeFileSync(config, JSON.stringify({ mounts: { [address]: mount } }))
  for (const uri of uris) write(uri)

  return {
    config,
    home,
    uris,
    write,
    has: (uri) => present.has(uri),
    removeRoot: () => {
      rmSync(root, { recursive: true })
      for (const uri of [...present]) tell(uri, true)
    },
    overflow: () => {
      const names = ['unserved-1', 'unserved-2'].map((name) => join(root, 'open', 'hot', name))
      const [one = '', other = ''] = names
      writeFileSync(one, '')
      // Each tells twice, and no two in a row tell the same.
      for (let i = 0; i < 10_000; i++) renameSync(i % 2 === 0 ? one : other, i % 2 === 0 ? other : one)
    },
    delete: () => rmSync(home, { recursive: true, force: true }),
  }
}
