import type { Change } from '../core/provider.ts'

/** Pending work for a mount: documents to read again, and directories (`''`: everything) to compare. */
export interface Tasks {
  hear(changes: readonly Change[]): void
  /** Takes so many documents at most. */
  take(most: number): readonly string[]
  /** Takes a directory: the widest first, which stands for those in it. */
  nextDirectory(): string | undefined
  /** A document that could not be read: it is looked at again once that is `due`. */
  later(path: string): void
  hasLater(): boolean
  /** Puts off no longer what was to be done later, and everything where nobody tells of changes. */
  due(everything: boolean): void
  /** Resolves to `true` after so long, and to `false` as soon as something is heard. */
  wait(signal: AbortSignal, ms: number | undefined): Promise<boolean>
}

/** Maximum number of pending documents. Beyond it, everything is compared. */
const mostPaths = 20_000

export function createTasks(): Tasks {
  const paths = new Set<string>()
  const directories = new Set<string>()
  const put = new Set<string>()
  let wake = () => {}

  return {
    hear: (changes) => {
      for (const { path } of changes) {
        if (path === undefined || paths.size >= mostPaths) directories.add('')
        else if (path.endsWith('/')) directories.add(path)
        else paths.add(path)
      }
      wake()
    },
    take: (most) => {
      const taken: string[] = []
      for (const path of paths) {
        if (taken.length === most) break
        taken.push(path)
      }
      for (const path of taken) paths.delete(path)
      return taken
    },
    nextDirectory: () => {
      const [next] = [...directories].sort((a, b) => a.length - b.length)
      if (next === undefined) return undefined
      for (const directory of directories) if (directory.startsWith(next)) directories.delete(directory)
      return next
    },
    later: (path) => void put.add(path),
    hasLater: () => put.size > 0,
    due: (everything) => {
      for (const path of put) paths.add(path)
      put.clear()
      if (everything) directories.add('')
    },
    wait: (signal, ms) =>
      new Promise((resolve) => {
        if (paths.size > 0 || directories.size > 0 || signal.aborted) return resolve(false)
        const settle = (isDue: boolean) => {
          clearTimeout(timer)
          signal.removeEventListener('abort', stop)
          wake = () => {}
          resolve(isDue)
        }
        const stop = () => settle(false)
        const timer = ms === undefined ? undefined : setTimeout(settle, ms, true)
        timer?.unref()
        signal.addEventListener('abort', stop)
        wake = stop
      }),
  }
}
