import { extname, join } from 'node:path'
import type { CleanBytes } from './bytes.ts'
import type { FindOptions } from './find.ts'
import { createHost, type Failure } from './host.ts'
import type { CleanPart, Window } from './window.ts'
import type { Answer, Job } from './worker.ts'

/** Takes secrets out of contents, in a worker. What cannot be gone through in time is not shown. */
export interface Redactor {
  window(window: Window, options: FindOptions, signal: AbortSignal): Promise<CleanPart | Failure>
  bytes(bytes: Uint8Array, options: FindOptions, signal: AbortSignal): Promise<CleanBytes | Failure>
  /** Ends the worker. It is started again when there is something to do. */
  close(): void
}

export interface RedactorOptions {
  /** How long a part of half a megabyte may take, in milliseconds. Default 5000. */
  readonly deadlineMs?: number
  /** What the worker runs; tests put one that hangs or dies in its place. */
  readonly file?: string
}

export function createRedactor(options: RedactorOptions = {}): Redactor {
  const { deadlineMs = 5000, file = join(import.meta.dirname, `worker${extname(import.meta.filename)}`) } = options
  const host = createHost<Job, Answer>({ file, deadlineMs, memoryMb: 512 })
  const run = async (job: Job, signal: AbortSignal): Promise<Answer | Failure> => {
    const outcome = await host.run(job, signal)
    return 'failure' in outcome ? outcome.failure : outcome.result
  }
  return {
    window: async (window, { path, without }, signal) => {
      const answer = await run({ window, path, ...(without === undefined ? {} : { without }) }, signal)
      if (typeof answer === 'string') return answer
      return 'part' in answer ? answer.part : 'crashed'
    },
    bytes: async (bytes, { path, without }, signal) => {
      const answer = await run({ bytes, path, ...(without === undefined ? {} : { without }) }, signal)
      if (typeof answer === 'string') return answer
      return 'clean' in answer ? answer.clean : 'crashed'
    },
    close: host.close,
  }
}

let shared: Redactor | undefined

/** The redactor of this process: its worker is started when it is first needed, and ends when it has nothing to do. */
export function sharedRedactor(): Redactor {
  shared ??= createRedactor()
  return shared
}
