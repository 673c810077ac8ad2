import type { ServerSettings } from '../relational/server.ts'
import { channel } from './channel.ts'
import { openSession } from './session.ts'
import type { Target } from './target.ts'

/** How often a connection that only listens is asked whether it is still there, in milliseconds. */
const pulse = 30_000

/**
 * Listens for notifications over a separate connection; resolves once it listens. `undefined` when a proxy between this process
 * and the server would lose notifications. Every role that can connect can notify, so the payload is ignored.
 */
export async function listen(
  target: Target,
  settings: ServerSettings,
  signal: AbortSignal,
): Promise<AsyncIterable<void> | undefined> {
  const session = await openSession(target, settings, signal)
  if (session.shared) {
    session.close()
    return undefined
  }
  let told = false
  let ended = false
  let wake = () => {}
  const awake = () => wake()
  session.onNotification(
    () => {
      told = true
      awake()
    },
    () => {
      ended = true
      awake()
    },
  )
  try {
    await session.query({ text: `LISTEN ${channel}` }, [])
  } catch (error) {
    session.close()
    throw error
  }
  // A connection that is lost without a word is found out by asking.
  const timer = setInterval(() => void session.query({ text: 'SELECT 1' }, []).catch(() => session.close()), pulse)
  timer.unref()
  const stop = () => session.close()
  signal.addEventListener('abort', stop, { once: true })
  if (signal.aborted) stop()

  return (async function* () {
    try {
      while (!ended) {
        if (!told)
          await new Promise<void>((resolve) => {
            wake = resolve
            if (told || ended) resolve()
          })
        if (told) {
          told = false
          yield
        }
      }
    } finally {
      clearInterval(timer)
      signal.removeEventListener('abort', stop)
      session.close()
    }
  })()
}
