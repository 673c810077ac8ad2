import { connect, createServer, type Socket } from 'node:net'

/** What stands between a client and a database server, sees what the client of PostgreSQL says, and can be slow about it. */
export interface DatabaseProxy {
  readonly port: number
  /** The URL of what is behind, through here. */
  through(url: string): string
  /** The statements that clients had prepared, in order. */
  readonly prepared: readonly string[]
  /** How many statements clients had run so far; each is one query of the server's. */
  readonly executed: number
  /** Messages of the simple protocol, which may be several statements each. */
  readonly simple: readonly string[]
  /** How answers come: at once, a byte at a time, or not at all. */
  pace: 'free' | 'slow' | 'stuck'
  /** Whether the process id that the server tells is another one, as behind PgBouncer. */
  disguise: boolean
  /** Ends every connection that is open. */
  cut(): void
  /** From now on, connections go to the server at another port; those that are open end. */
  switchTo(port: number): void
  /** How many connections are open. */
  readonly open: number
  close(): Promise<void>
}

/** A byte each so many milliseconds, when it is slow. */
const slowness = 50

/** @param isPostgres Whether what clients say is looked at. */
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

/** Takes messages of clients apart. The first has no type, and neither has one that cancels. */
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

/** With another process id in `BackendKeyData`, where that is in these bytes. */
function disguised(bytes: Buffer): Buffer {
  const at = bytes.indexOf(Buffer.from([0x4b, 0, 0, 0, 12]))
  if (at === -1) return bytes
  const copy = Buffer.from(bytes)
  copy.writeInt32BE(copy.readInt32BE(at + 5) + 1, at + 5)
  return copy
}
