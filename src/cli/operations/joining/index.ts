import { dirname } from 'node:path'
import type { Sharing } from '../../terminal/io.ts'
import { createSession } from './session.ts'
import { connect, isPrivate, listen, patience, removeStale } from './socket.ts'
import { socketOf } from './socket-path.ts'

/** How often, and after which pause in milliseconds, a place is tried that another process takes or leaves at this moment. */
const trial = { times: 40, pauseMs: 25 }

/**
 * Joins the process that serves the same to another host, or lets others join this one (`serve --stdio`). Processes serve the same if
 * they have the same program, arguments and configuration, the same rights, and the same values of the variables that matter. It loads
 * next to nothing, because a process that joins only passes on messages.
 *
 * Resolves to `served` when another process has served the client to its end, and to `undefined` if this one serves alone.
 *
 * @param words The command line: `serve` and its arguments.
 */
export async function joinServer(words: readonly string[]): Promise<Sharing | 'served' | undefined> {
  const path = socketOf(words)
  if (path === undefined || !isPrivate(dirname(path))) return undefined
  let session: ReturnType<typeof createSession> | undefined
  const alone = () =>
    session && { cursorSecret: session.cursorSecret(), onClient: () => {}, leave: () => {}, own: session.takeOver() }
  for (let left = trial.times; left > 0; left--) {
    const place = await listen(path, session?.cursorSecret())
    if (place === undefined) return alone()
    if (place !== 'taken') return { ...place, ...(session && { own: session.takeOver() }) }
    const server = await connect(path, patience.startMs)
    if (server === 'unusable') return alone()
    if (server === 'gone') {
      removeStale(path)
      await new Promise((done) => setTimeout(done, trial.pauseMs))
      continue
    }
    session ??= createSession()
    tellJoined(words, server.pid)
    const outcome = await session.relay(server, path)
    if (outcome === 'served') return 'served'
    if (outcome === 'stuck') return alone()
    left = trial.times
  }
  return alone()
}

/** Writes to the log of a joined process where the events of its client are. */
function tellJoined(words: readonly string[], pid: number): void {
  const given = (name: string) =>
    words
      .flatMap((word, at) =>
        word === name ? [words[at + 1]] : word.startsWith(`${name}=`) ? [word.slice(name.length + 1)] : [],
      )
      .at(-1)
  if (['warn', 'error', 'silent'].includes(given('--log-level') ?? '')) return
  const time = new Date().toISOString()
  const message = 'another hikidashi process on this machine serves this client'
  const line =
    given('--log-format') === 'json'
      ? JSON.stringify({ time, level: 'info', message, pid })
      : `${time} info  ${message} pid=${pid}`
  process.stderr.on('error', () => {}).write(`${line}\n`)
}
