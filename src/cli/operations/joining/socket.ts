import type { Server, Socket } from 'node:net'
import { makeFolder } from '../../../core/kit/make-folder.ts'
import type { Sharing } from '../../terminal/io.ts'
import { parseMessages } from './messages.ts'

const fs = process.getBuiltinModule('node:fs')

/** Time-outs of a greeting, at the start and while a client waits, and the interval of checks meanwhile. */
export const joinTimings = { startMs: 2000, laterMs: 4000, everyMs: 2000 }

export interface GreetedConnection {
  readonly socket: Socket
  readonly cursorSecret: string
  readonly pid: number
}

/** `gone`: nobody listens at the socket. `unusable`: the listener sends no greeting, or refuses this user. */
type Unreached = 'gone' | 'unusable'

/**
 * Connects, and waits for the greeting. A connection alone is no sign of life: the system accepts it for a stopped
 * process.
 */
export function connectToSocket(path: string, timeoutMs: number): Promise<GreetedConnection | Unreached> {
  const { createConnection } = process.getBuiltinModule('node:net')
  return new Promise((resolve) => {
    const socket = createConnection({ path })
    let bytes = Buffer.alloc(0)
    const end = (result: GreetedConnection | Unreached) => {
      clearTimeout(timer)
      socket.off('error', onError).off('close', onClose).off('data', onData)
      socket.on('error', () => {})
      if (typeof result === 'string') socket.destroy()
      resolve(result)
    }
    const onError = ({ code = '' }: NodeJS.ErrnoException) =>
      end(['ENOENT', 'ECONNREFUSED', 'ECONNRESET', 'EPIPE'].includes(code) ? 'gone' : 'unusable')
    const onClose = () => end('gone')
    const onData = (chunk: Buffer) => {
      bytes = Buffer.concat([bytes, chunk])
      const at = bytes.indexOf(0x0a)
      if (at === -1) return
      socket.pause()
      if (at + 1 < bytes.length) socket.unshift(bytes.subarray(at + 1))
      const [{ cursorSecret, pid } = {}] = parseMessages(bytes.toString('utf8', 0, at)) as Partial<
        Omit<GreetedConnection, 'socket'>
      >[]
      end(cursorSecret === undefined || pid === undefined ? 'unusable' : { socket, cursorSecret, pid })
    }
    const timer = setTimeout(() => end('unusable'), timeoutMs)
    socket.on('error', onError).on('close', onClose).on('data', onData)
  })
}

/** Makes the folder of the sockets. Returns whether it belongs to this user alone. */
export function makePrivateFolder(folder: string): boolean {
  try {
    makeFolder(folder, 0o700)
    const { uid, mode } = fs.lstatSync(folder)
    return uid === process.getuid?.() && (mode & 0o077) === 0
  } catch {
    return false
  }
}

/**
 * Listens at a path, and greets clients. Resolves to `taken` if a socket is there, and to `undefined` if none can be
 * made there.
 */
export async function listenOnSocket(
  path: string,
  cursorSecret = process.getBuiltinModule('node:crypto').randomBytes(32).toString('base64'),
): Promise<Sharing | 'taken' | undefined> {
  const { createServer } = process.getBuiltinModule('node:net')
  const greeting = `${JSON.stringify({ cursorSecret, pid: process.pid })}\n`
  const waiting: Socket[] = []
  let serve = (socket: Socket): void => void waiting.push(socket)
  const server: Server = createServer({ allowHalfOpen: true }, (socket) => {
    socket.on('error', () => {})
    socket.write(greeting)
    serve(socket)
  })
  const failure = await new Promise<string | undefined>((resolve) => {
    server.once('error', ({ code }: NodeJS.ErrnoException) => resolve(code ?? 'unknown'))
    server.listen({ path }, () => resolve(undefined))
  })
  if (failure !== undefined) return failure === 'EADDRINUSE' ? 'taken' : undefined
  fs.chmodSync(path, 0o600)
  server.on('error', () => {})
  // The client of this process, and not the listening socket, keeps it alive.
  server.unref()
  const own = socketIdentity(path)
  const isOwn = () => own !== undefined && socketIdentity(path) === own
  const remove = () => {
    if (isOwn()) fs.rmSync(path, { force: true })
  }
  process.once('exit', remove)
  return {
    cursorSecret,
    onClient: (next) => {
      serve = next
      for (const socket of waiting.splice(0)) serve(socket)
    },
    leave: () => {
      process.off('exit', remove)
      serve = (socket) => socket.destroy()
      // Closing removes the file at the path, which may be the socket of another process by now.
      if (isOwn()) server.close()
    },
  }
}

/**
 * Returns a text that tells a socket from a later one at the same path. A file system soon reuses inodes, so the inode
 * alone does not suffice.
 */
function socketIdentity(path: string): string | undefined {
  try {
    const { ino, mtimeMs } = fs.statSync(path)
    return `${ino} ${mtimeMs}`
  } catch {
    return undefined
  }
}

export function removeStale(path: string): void {
  const stale = socketIdentity(path)
  if (stale === undefined) return
  const aside = `${path}.${process.pid}`
  try {
    fs.renameSync(path, aside)
    // Another process may have begun to listen meanwhile: its socket is moved back.
    if (socketIdentity(aside) === stale) fs.rmSync(aside)
    else fs.renameSync(aside, path)
  } catch {
    // Another process has removed the socket.
  }
}
