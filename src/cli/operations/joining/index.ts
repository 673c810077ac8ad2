import { dirname } from 'node:path'
import type { Sharing } from '../../terminal/io.ts'
import { createRelaySession } from './session.ts'
import { connectToSocket, joinTimings, listenOnSocket, makePrivateFolder, removeStale } from './socket.ts'
import { socketPathOf } from './socket-path.ts'

/** Attempts while other processes make or remove the socket at the same path. */
const trial = { times: 40, pauseMs: 25 }

/**
 * Joins a process that serves the same to another host, or lets other processes join this one (`serve --stdio`).
 * Processes serve the same if {@link socketPathOf} is the same for them.
 * Resolves to `served` when another process has served the client to its end. Else this process serves: alone for
 * `undefined`, or as the returned `Sharing` says.
 * @param words The command line: `serve` and its arguments.
 */
export async function joinServer(words: readonly string[]): Promise<Sharing | 'served' | undefined> {
  const path = socketPathOf(words)
  if (path === undefined || !makePrivateFolder(dirname(path))) return undefined
  let session: ReturnType<typeof createRelaySession> | undefined
  const alone = () =>
    session && { cursorSecret: session.cursorSecret(), onClient: () => {}, leave: () => {}, own: session.takeOver() }
  for (let left = trial.times; left > 0; left--) {
    const place = await listenOnSocket(path, session?.cursorSecret())
    if (place === undefined) return alone()
    if (place !== 'taken') return { ...place, ...(session && { own: session.takeOver() }) }
    const server = await connectToSocket(path, joinTimings.startMs)
    if (server === 'unusable') return alone()
    if (server === 'gone') {
      removeStale(path)
      await new Promise((resolve) => setTimeout(resolve, trial.pauseMs))
      continue
    }
    session ??= createRelaySession()
    tellJoined(words, server.pid)
    const outcome = await session.relay(server, path)
    if (outcome === 'served') return 'served'
    if (outcome === 'stuck') return alone()
    left = trial.times
  }
  return alone()
}

/** The events of the client are in the log of the process that serves it. */
function tellJoined(words: readonly string[], pid: number): void {
  const valuesOf = (name: string) =>
    words
      .flatMap((word, at) =>
        word === name ? [words[at + 1]] : word.startsWith(`${name}=`) ? [word.slice(name.length + 1)] : [],
      )
      .at(-1)
  if (['warn', 'error', 'silent'].includes(valuesOf('--log-level') ?? '')) return
  const time = new Date().toISOString()
  const message = 'another hikidashi process on this machine serves this client'
  const line =
    valuesOf('--log-format') === 'json'
      ? JSON.stringify({ time, level: 'info', message, pid })
      : `${time} info  ${message} pid=${pid}`
  process.stderr.on('error', () => {}).write(`${line}\n`)
}
