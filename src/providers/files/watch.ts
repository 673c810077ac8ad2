import { MessageChannel } from 'node:worker_threads'
import { ResourceError } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'
import type { Change, Degradation, Provider } from '../../core/provider.ts'
import type { Places } from './place.ts'
import type { WatchOptions } from './watch-run.ts'
import { beginInThread, type FromThread } from './watch-thread.ts'

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
): Required<Pick<Provider, 'watch' | 'degraded'>> {
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
      const inbox = openInbox({ ...options, root: { real: places.real, at: root.at } }, { log, report, signal })
      await inbox.next()
      signal.throwIfAborted()
      return changesOf(inbox, signal)
    } finally {
      root.close()
    }
  }
  return { watch, degraded: () => degraded.values().next().value }
}

interface Inbox {
  /** Returns the next changes; none once the signal has aborted. The first, empty answer means that the watch is armed. */
  next(): Promise<readonly Change[]>
  close(): void
}

interface Surroundings {
  readonly log: Log
  readonly report: (degraded: Degradation | undefined) => void
  readonly signal: AbortSignal
}

function openInbox(options: WatchOptions, { log, report, signal }: Surroundings): Inbox {
  const { port1: port, port2 } = new MessageChannel()
  const messages: Exclude<FromThread, { log: unknown } | { degraded: unknown }>[] = []
  let wake = () => {}
  let closed = false
  let failure: unknown

  const close = () => {
    if (closed) return
    closed = true
    signal.removeEventListener('abort', close)
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
        return []
      }
      if (message !== undefined && 'changes' in message) {
        port.postMessage('more')
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
