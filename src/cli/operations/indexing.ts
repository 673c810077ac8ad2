import type { FeedStatus, MountProgress } from '../../providers/search/index.ts'
import type { Io } from '../terminal/io.ts'
import { createProgress, type ProgressOptions } from '../terminal/progress.ts'

/** Shows the progress of an index to a waiting person. */
export interface Indexing {
  /** Resolves when every mount is indexed, or does not answer. */
  wait(status: () => Promise<FeedStatus | undefined>): Promise<void>
}

/** Interval of the checks, in milliseconds. */
const interval = 100
/** If no process feeds the index for this long, the existing index is searched. In milliseconds. */
const longest = 20_000

export function createIndexing(
  io: Pick<Io, 'saysToTerminal' | 'say' | 'out'>,
  options: Pick<ProgressOptions, 'line' | 'now' | 'env'> = {},
): Indexing {
  return {
    wait: async (status) => {
      const start = performance.now()
      const what = 'Waiting for the index'
      const progress = createProgress(io, { ...options, what, besideOutput: true, writeLine: io.say })
      try {
        for (;;) {
          const now = await status()
          if (now?.mounts.every(isDone)) return
          if (now === undefined && performance.now() - start > longest) return
          if (now !== undefined) progress.set(progressOf(now.mounts))
          await new Promise((resolve) => setTimeout(resolve, interval))
        }
      } finally {
        progress.end()
      }
    },
  }
}

export function isDone({ state }: MountProgress): boolean {
  return state === 'current' || state === 'unavailable'
}

/** The progress of the indexing of mounts, as text. */
export function progressOf(mounts: readonly MountProgress[]) {
  const done = mounts.reduce((sum, mount) => sum + mount.looked, 0)
  const isCounted = mounts.every((mount) => mount.of !== undefined || isDone(mount))
  const total = mounts.reduce((sum, mount) => sum + (mount.of ?? mount.looked), 0)
  return { done, total: isCounted ? total : undefined, what: 'documents indexed' }
}
