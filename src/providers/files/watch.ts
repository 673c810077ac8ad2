import { MessageChannel } from 'node:worker_threads'
import { ResourceError } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'
import type { Change, Degradation, Provider } from '../../core/provider.ts'
import type { Places } from './place.ts'
import { createVouching, type Vouched, type Vouching } from './vouching.ts'
import type { WatchOptions } from './watch-run.ts'
import { beginInThread, type FromThread, type Request } from './watch-thread.ts'

export interface FilesWatch extends Required<Pick<Provider, 'watch' | 'degraded'>> {
  /** Asks a running watch for what it vouches for; see {@link Vouched}. Resolves to undefined without one. */
  vouch(files: number): Promise<Vouched | undefined>
}

/**
 * Watches the files below a root in a separate thread.
 *
 * @param closing Ends all watches.
 */
export function createWatch(
  places: Places,
  options: Omit<WatchOptions, 'root'>,
  log: Log,
  closing: AbortSignal,
): FilesWatch {
  /** The knowledge of the running watches. */
  const vouching = new Set<Vouching>()
  /** Running watches that are degraded. */
  const degraded = new Map<AbortSignal, Degradation>()
  const watch = async (caller: AbortSignal): Promise<AsyncIterable<Change>> => {
    const signal = AbortSignal.any([caller, closing])
    // The directory that is really served, even if it was renamed: descriptors belong to the process.
    const root = await places.root(signal)
    const report = (now: Degradation | undefined) => {
      if (now === undefined || signal.aborted) degraded.delete(signal)
      else degraded.set(signal, now)
    }
    try {
      const inbox = openInbox(
        { ...options, root: { real: places.real, at: root.at } },
        { log, report, vouching, signal },
      )
      await inbox.next()
      signal.throwIfAborted()
      return changesOf(inbox, signal)
    } finally {
      root.close()
    }
  }
  const vouch: FilesWatch['vouch'] = async (files) => {
    const [running] = vouching
    return running?.ask(files)
  }
  return { watch, degraded: () => degraded.values().next().value, vouch }
}

interface Inbox {
  /** Returns the next changes; none once the signal has aborted. The first, empty answer means that the watch is armed. */
  next(): Promise<readonly Change[]>
  close(): void
}

interface Surroundings {
  readonly log: Log
  readonly report: (degraded: Degradation | undefined) => void
  readonly vouching: Set<Vouching>
  readonly signal: AbortSignal
}

function openInbox(options: WatchOptions, { log, report, vouching, signal }: Surroundings): Inbox {
  const { port1: port, port2 } = new MessageChannel()
  const messages: Exclude<FromThread, { log: unknown } | { degraded: unknown } | { dues: unknown }>[] = []
  let wake = () => {}
  let closed = false
  let failure: unknown

  const mine = createVouching(() => port.postMessage('dues' satisfies Request))
  const close = () => {
    if (closed) return
    closed = true
    signal.removeEventListener('abort', close)
    vouching.delete(mine)
    mine.close()
    port.close()
    release()
    report(undefined)
    wake()
  }
  const release = begin({ options, port: port2 }, (error) => {
    failure = error
    close()
  })
  signal.addEventListener('abort', close)
  port.on('message', (message: FromThread) => {
    if ('log' in message) return log(...message.log)
    if ('degraded' in message) return report(message.degraded)
    if ('dues' in message) return mine.answered(message.dues)
    messages.push(message)
    wake()
  })

  return {
    close,
    next: async () => {
      if (messages.length === 0 && !closed)
        await new Promise<void>((resolve) => {
          wake = resolve
        })
      if (signal.aborted) return []
      const message = messages.shift()
      if (message !== undefined && 'armed' in message) {
        // A watch alone must not keep the process alive.
        port.unref()
        vouching.add(mine)
        return []
      }
      if (message !== undefined && 'changes' in message) {
        port.postMessage('more' satisfies Request)
        return message.changes
      }
      close()
      if (message === undefined) throw lost(failure)
      const { kind, message: text, cause } = message.failed
      throw new ResourceError(kind, text, {}, { cause })
    },
  }
}

function begin(...terms: Parameters<typeof beginInThread>): ReturnType<typeof beginInThread> {
  try {
    return beginInThread(...terms)
  } catch (error) {
    // The system refuses to start another thread.
    throw lost(error)
  }
}

function lost(cause: unknown): ResourceError {
  return new ResourceError('unavailable', 'The thread that watches files has ended.', {}, { cause })
}

async function* changesOf(inbox: Inbox, signal: AbortSignal): AsyncGenerator<Change> {
  try {
    while (!signal.aborted) yield* await inbox.next()
  } finally {
    inbox.close()
  }
}
