import type { Writable } from 'node:stream'

/** Writes texts to a stream one after the other, with back-pressure. */
export interface Writer {
  /** Calls `make` when its turn comes, so that a waiting text is not held twice. Rejects when the reader is gone. */
  write(make: () => string): Promise<void>
  /** Resolves when the reader is gone. */
  readonly failed: Promise<void>
  /** From now on, a reader that takes nothing for `patience` milliseconds counts as gone. */
  hurry(patience: number): void
  /** Resolves when everything was handed to the reader, or the reader is gone. */
  end(): Promise<void>
}

export function createWriter(output: Writable): Writer {
  let tail: Promise<void> = Promise.resolve()
  let gone = output.destroyed
  let announce = () => {}
  let timer: NodeJS.Timeout | undefined
  const failed = new Promise<void>((resolve) => {
    announce = resolve
  })
  const fail = () => {
    gone = true
    announce()
  }
  // Keep the listener: a write that fails late must not end the process.
  output.on('error', fail).on('close', fail)
  if (gone) announce()

  let corked = false
  const uncork = () => {
    if (corked) output.uncork()
    corked = false
  }

  const writeNow = async (make: () => string): Promise<void> => {
    if (gone) throw new Error('the reader of the output is gone')
    // Messages of the same turn go out in one call of the system: with 32 reads in flight that saves a tenth of their time.
    if (!corked) {
      corked = true
      output.cork()
      process.nextTick(uncork)
    }
    if (output.write(make())) return
    uncork()
    await Promise.race([failed, new Promise<void>((resolve) => output.once('drain', resolve))])
    if (gone) throw new Error('the reader of the output is gone')
  }

  return {
    failed,
    write: (make) => {
      const written = tail.then(() => writeNow(make))
      tail = written.catch(() => {})
      return written
    },
    hurry: (patience) => {
      timer ??= setTimeout(fail, patience)
      output.on('drain', () => timer?.refresh())
    },
    end: async () => {
      await tail
      if (!gone && output.writableLength > 0)
        await Promise.race([failed, new Promise<void>((resolve) => output.write('', () => resolve()))])
      clearTimeout(timer)
    },
  }
}
