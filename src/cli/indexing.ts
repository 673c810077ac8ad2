import type { FeedStatus, MountProgress } from '../providers/search/index.ts'
import type { Io } from './io.ts'

/** Tells a waiting person how far an index is. */
export interface Indexing {
  /** Resolves when every mount is indexed, or does not answer. */
  wait(status: () => Promise<FeedStatus | undefined>): Promise<void>
}

/** How often it is looked, and from when on it is told. */
const interval = 100
const patience = 1000
/** After so long without anybody who indexes, what is there is searched. */
const longest = 20_000

export function createIndexing(
  io: Pick<Io, 'saysToTerminal' | 'say'>,
  write = (text: string) => void process.stderr.write(text),
): Indexing {
  let told = false
  const tell = (text: string): void => {
    // Where nobody watches, one line is enough.
    if (io.saysToTerminal) write(`\r${text} …\u001b[K`)
    else if (!told) io.say(`${text} …`)
    told = true
  }
  return {
    wait: async (status) => {
      const start = performance.now()
      try {
        for (;;) {
          const now = await status()
          if (now?.mounts.every(isDone)) return
          const waited = performance.now() - start
          if (now === undefined && waited > longest) return
          if (waited > patience) tell(now === undefined ? 'Waiting for the index' : formatIndexing(now.mounts))
          await new Promise((resolve) => setTimeout(resolve, interval))
        }
      } finally {
        if (told && io.saysToTerminal) write('\r\u001b[K')
      }
    },
  }
}

function isDone({ state }: MountProgress): boolean {
  return state === 'current' || state === 'unavailable'
}

function formatIndexing(mounts: readonly MountProgress[]): string {
  const looked = mounts.reduce((sum, mount) => sum + mount.looked, 0)
  const isCounted = mounts.every((mount) => mount.of !== undefined || isDone(mount))
  const of = mounts.reduce((sum, mount) => sum + (mount.of ?? mount.looked), 0)
  const number = (value: number) => value.toLocaleString('en')
  return `Indexing: ${number(looked)}${isCounted ? ` of ${number(of)}` : ''} documents`
}
