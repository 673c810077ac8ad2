/** Where the lines of `src/` come from: the code of a commit, the same code written again, and what came later. By `git blame`. */
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { root } from './source.ts'

const run = promisify(execFile)

/** Why a later commit wrote a line: the same behaviour, the same with less time or memory, or a feature or a mended fault. */
type Cause = 'same' | 'faster' | 'feature'
/** Lines of `src/` by origin. `old` is unchanged since the commit. */
export type Origins = Record<'old' | Cause, number>

/**
 * Counts the lines of `src/` by origin. Moved and copied lines keep their origin, and white space does not count.
 *
 * @param commit An ancestor of the current state.
 * @param causes Causes of later commits, by the first eight digits of their ids. A commit without one added a feature or mended a fault.
 * @returns `found`: as `git blame` tells. `shared`: lines with the cause `same` are shared out within each file, in proportion to its other
 * lines, since such a commit wrote old and new code again.
 */
export async function countOrigins(
  commit: string,
  files: readonly string[],
  { folder = root, causes = readCauses() }: { folder?: string; causes?: ReadonlyMap<string, Cause> } = {},
): Promise<{ found: Origins; shared: Origins }> {
  const before = new Set((await git(folder, 'rev-list', commit)).split('\n'))
  const found = none()
  const shared = none()
  const waiting = [...files]
  const work = async () => {
    for (let file = waiting.pop(); file !== undefined; file = waiting.pop()) {
      const origins = none()
      // Header lines of the format: the commit, then two or three numbers. Lines of the file begin with a tab.
      const blamed = await git(folder, 'blame', '-w', '-M', '-C', '-C', '--line-porcelain', 'HEAD', '--', `src/${file}`)
      for (const [, id = ''] of blamed.matchAll(/^([0-9a-f]{40})(?: \d+){2,3}$/gm))
        origins[before.has(id) ? 'old' : (causes.get(id.slice(0, 8)) ?? 'feature')]++
      add(found, origins)
      add(shared, shareOut(origins))
    }
  }
  await Promise.all(Array.from({ length: availableParallelism() }, work))
  return { found, shared }
}

function shareOut({ old, same, faster, feature }: Origins): Origins {
  const others = old + faster + feature
  // Every line was written again: nothing tells where they come from, so they count as old.
  if (others === 0) return { ...none(), old: same }
  const scale = 1 + same / others
  return { old: old * scale, same: 0, faster: faster * scale, feature: feature * scale }
}

function none(): Origins {
  return { old: 0, same: 0, faster: 0, feature: 0 }
}

function add(sum: Origins, more: Origins): void {
  for (const key of ['old', 'same', 'faster', 'feature'] as const) sum[key] += more[key]
}

function readCauses(): ReadonlyMap<string, Cause> {
  const lines = readFileSync(join(import.meta.dirname, 'causes.txt'), 'utf8').split('\n')
  return new Map(
    lines.flatMap((line) => {
      const [, id, cause] = /^([0-9a-f]{8}) (same|faster) /.exec(line) ?? []
      return id !== undefined && (cause === 'same' || cause === 'faster') ? [[id, cause]] : []
    }),
  )
}

async function git(cwd: string, ...args: readonly string[]): Promise<string> {
  const { stdout } = await run('git', args, { cwd, maxBuffer: 64 * 1024 * 1024 })
  return stdout
}
