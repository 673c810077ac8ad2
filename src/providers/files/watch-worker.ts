import { type MessagePort, parentPort } from 'node:worker_threads'
import { isResourceError } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'
import { type Watched, watchFiles } from './watch-run.ts'
import type { FromThread, Request, ToThread } from './watch-thread.ts'

/**
 * The watch thread for all files mounts of a process: scanning a hundred thousand files, or handling ten thousand events at once, delays no
 * request. Each watch has its own port, and ends when the port is closed.
 */
parentPort?.on('message', ({ options, port }: ToThread) => void serve(options, port))

async function serve(options: ToThread['options'], port: MessagePort): Promise<void> {
  const ended = new AbortController()
  const send = (message: FromThread) => port.postMessage(message)
  const log: Log = (level, message, fields) => send({ log: [level, message, fields] })
  let go = () => {}
  let dues: Watched['dues'] = async () => []
  port.on('message', (request: Request) => {
    if (request === 'dues') void dues().then((found) => send({ dues: found }))
    else go()
  })
  port.on('close', () => {
    ended.abort()
    go()
  })
  try {
    const watched = await watchFiles(options, log, ended.signal, (degraded) => send({ degraded }))
    const { batches, closed } = watched
    dues = watched.dues
    send({ armed: true })
    for await (const changes of batches) {
      // Sends one batch at a time. Changes that occur meanwhile are merged here, where their amount is bounded.
      const taken = new Promise<void>((resolve) => {
        go = resolve
      })
      send({ changes })
      await taken
    }
    await closed
  } catch (error) {
    const { kind, message } = isResourceError(error) ? error : { kind: 'internal' as const, message: 'A watch failed.' }
    const cause = error instanceof Error && error.cause instanceof Error ? (error.cause.stack ?? '') : ''
    if (!ended.signal.aborted) send({ failed: { kind, message, cause } })
  } finally {
    port.close()
  }
}
