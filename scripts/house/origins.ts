/** Counts the lines of `src/` by origin, with `git blame`: the code of a commit, code that was rewritten since, and new code. */
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { root } from './source.ts'

const run = promisify(execFile)

/** Why a later commit wrote a line: a rewrite with the same behaviour, one that saves time or memory, or a feature or fix. */
type Cause = 'same' | 'faster' | 'feature'
/** Numbers of lines of `src/` by origin. `old` lines are unchanged since the commit. */
export type Origins = Record<'old' | Cause, number>

/**
 * Counts the lines of `src/` by origin. Moved and copied lines keep their origin, and white space does not count.
 *
 * @param commit An ancestor of the current state.
 * @param causes Causes of later commits, by the first eight digits of their ids. The default cause is `feature`.
 * @returns `found`: the numbers of `git blame`. `shared`: the lines with the cause `same` are distributed over the other origins of each
 * file in proportion, because such a commit rewrote both old and new code.
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
  // Every line was rewritten, so their origins are unknown. They count as old.
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
