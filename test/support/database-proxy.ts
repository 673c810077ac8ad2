import { connect, createServer, type Socket } from 'node:net'

/** A proxy before a database server, which records messages of PostgreSQL clients, and can delay answers. */
export interface DatabaseProxy {
  readonly port: number
  /** Returns a database URL through this proxy. */
  through(url: string): string
  /** The statements that clients prepared, in order. */
  readonly prepared: readonly string[]
  /** Number of statements that clients executed; each is one query of the server. */
  readonly executed: number
  /** Messages of the simple protocol, each of which may have several statements. */
  readonly simple: readonly string[]
  /** Speed of answers: at once, byte by byte, or never. */
  pace: 'free' | 'slow' | 'stuck'
  /** Whether it replaces the process id that the server reports, as PgBouncer does. */
  disguise: boolean
  /** Closes every connection. */
  cut(): void
  /** Connects to the server at another port from now on, and closes all connections. */
  switchTo(port: number): void
  /** Number of open connections. */
  readonly open: number
  close(): Promise<void>
}

/** Delay between two bytes of a slow answer, in milliseconds. */
const slowness = 50

/** @param isPostgres Whether it parses the messages of clients. */
export async function startDatabaseProxy(serverPort: number, isPostgres = true): Promise<DatabaseProxy> {
  const prepared: string[] = []
  const simple: string[] = []
  const sockets = new Set<Socket>()
  let executed = 0
  let target = serverPort
  const state = { pace: 'free' as DatabaseProxy['pace'], disguise: false }

  const server = createServer((client) => {
    const upstream = connect(target, '127.0.0.1')
    for (const socket of [client, upstream]) {
      sockets.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => {
        sockets.delete(socket)
        client.destroy()
        upstream.destroy()
      })
    }
    const read = createReader((type, body) => {
      if (type === 'P') prepared.push(textAfter(body, body.indexOf(0) + 1))
      if (type === 'Q') simple.push(textAfter(body, 0))
      if (type === 'E') executed++
    })
    client.on('data', (bytes) => {
      if (isPostgres) read(bytes)
      upstream.write(bytes)
    })
    upstream.on('data', (bytes) => {
      const told = state.disguise ? disguised(bytes) : bytes
      if (state.pace === 'free') client.write(told)
      if (state.pace !== 'slow') return
      upstream.pause()
      let at = 0
      const timer = setInterval(() => {
        if (at >= told.length || client.destroyed) {
          clearInterval(timer)
          upstream.resume()
        } else client.write(told.subarray(at, ++at))
      }, slowness)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  const cut = () => {
    for (const socket of sockets) socket.destroy()
  }
  return {
    port,
    through: (url) => url.replace(`:${serverPort}/`, `:${port}/`),
    prepared,
    simple,
    get executed() {
      return executed
    },
    get pace() {
      return state.pace
    },
    set pace(pace) {
      state.pace = pace
    },
    get disguise() {
      return state.disguise
    },
    set disguise(disguise) {
      state.disguise = disguise
    },
    cut,
    switchTo: (port) => {
      target = port
      cut()
    },
    get open() {
      return sockets.size / 2
    },
    close: () => {
      cut()
      return new Promise((resolve) => server.close(() => resolve()))
    },
  }
}

/** Creates a parser of client messages. The first message, and a cancellation, have no type. */
function createReader(seen: (type: string, body: Buffer) => void): (bytes: Buffer) => void {
  let rest: Buffer = Buffer.alloc(0)
  let started = false
  return (bytes) => {
    rest = Buffer.concat([rest, bytes])
    for (;;) {
      const head = started ? 1 : 0
      if (rest.length < head + 4) return
      const length = head + rest.readInt32BE(head)
      if (rest.length < length) return
      if (started) seen(String.fromCharCode(rest[0] ?? 0), rest.subarray(5, length))
      started = true
      rest = rest.subarray(length)
    }
  }
}

function textAfter(body: Buffer, start: number): string {
  return body.subarray(start, body.indexOf(0, start)).toString()
}

/** Replaces the process id in `BackendKeyData`, if these bytes contain it. */
function disguised(bytes: Buffer): Buffer {
  const at = bytes.indexOf(Buffer.from([0x4b, 0, 0, 0, 12]))
  if (at === -1) return bytes
  const copy = Buffer.from(bytes)
  copy.writeInt32BE(copy.readInt32BE(at + 5) + 1, at + 5)
  return copy
}
