import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync } from 'node:fs'
import { connect, createServer, type Server } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { sharedFolderOf, sharedVariable, temporaryFolderOf } from './bundle-folder.ts'

// One Chromium for all files of a run: to start it takes a second of a processor. Each page has a profile of its own all the same.

/** What a file of tests asks for: the program, and what it is started with. The first that asks decides. */
export interface Launch {
  readonly program: string
  readonly args: readonly string[]
}

const socketIn = (folder: string) => join(folder, 'chromium.sock')

/** In the process of the run: starts a Chromium once a file asks for one. What it answers ends it. */
export async function offerChromium(): Promise<() => Promise<void>> {
  const folder = sharedFolderOf(process.pid)
  mkdirSync(folder, { recursive: true })
  let child: ChildProcess | undefined
  let endpoint: Promise<string> | undefined
  const launch = async ({ program, args }: Launch): Promise<string> => {
    const started = spawn(
      process.execPath,
      [join(import.meta.dirname, 'chromium.mjs'), program, JSON.stringify(args)],
      {
        stdio: ['pipe', 'pipe', 'inherit'],
        env: { ...process.env, TMPDIR: temporaryFolderOf(process.pid) },
      },
    )
    child = started
    const [line] = await Promise.race([
      once(started.stdout.setEncoding('utf8'), 'data'),
      once(started, 'exit').then(([code]) => [`Chromium did not start: ${code}`]),
    ])
    return String(line).trim()
  }
  const server: Server = createServer({ allowHalfOpen: true }, async (socket) => {
    socket.on('error', () => {})
    endpoint ??= text(socket).then((asked) => launch(JSON.parse(asked) as Launch))
    socket.end(await endpoint.catch(String))
  })
  server.listen(socketIn(folder))
  await once(server, 'listening')
  server.unref()
  return async () => {
    server.close()
    if (child === undefined || child.exitCode !== null) return
    const ended = once(child, 'exit')
    child.stdin?.end()
    await ended
  }
}

/** In a file of tests: where to connect to the Chromium of the run. */
export async function chromiumOfRun(launch: Launch): Promise<string> {
  const folder = process.env[sharedVariable]
  if (folder === undefined) throw new Error(`${sharedVariable} is not set: run this with vitest, which sets it.`)
  const socket = connect(socketIn(folder))
  socket.end(JSON.stringify(launch))
  const answer = await text(socket)
  if (!answer.startsWith('ws:')) throw new Error(answer)
  return answer
}
