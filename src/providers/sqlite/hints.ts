import { lstat } from 'node:fs/promises'
import { sleep } from '../../core/kit/sleep.ts'

/** How often it is looked whether anybody touched the file, in milliseconds. */
const interval = 500

/** Yields whenever the file, its log or its journal was touched or replaced. */
export async function hintsOf(file: string, signal: AbortSignal): Promise<AsyncIterable<void>> {
  const first = await traceOf(file)
  return (async function* () {
    for (let before = first; ; ) {
      await sleep(interval, signal)
      if (signal.aborted) return
      const now = await traceOf(file)
      if (now === before) continue
      before = now
      yield
    }
  })()
}

async function traceOf(file: string): Promise<string> {
  const traces = await Promise.all(
    ['', '-wal', '-journal'].map(async (end) => {
      const found = await lstat(`${file}${end}`, { bigint: true }).catch(() => undefined)
      return found === undefined ? '' : `${found.dev}:${found.ino}:${found.size}:${found.mtimeNs}`
    }),
  )
  return traces.join(' ')
}
