import { connect, type Socket } from 'node:net'
import type { Sent } from './client.ts'
import { idMark } from './load.ts'

/** Latency of requests, in milliseconds. */
export interface Latency {
  readonly p50: number
  readonly p99: number
}

export interface LatencyOptions {
  readonly url: string
  /** Requests that are sent in turn on each connection. `idMark`, their id, is replaced by a unique number. */
  readonly requests: readonly Sent[]
  readonly connections: number
  readonly seconds: number
  readonly warmUpSeconds: number
}

/**
 * Measures the latency of requests on open connections, with one request at a time on each. wrk cannot: it opens connections under load,
 * of which Node accepts one per turn of the event loop, and it counts a request that takes n times the average as n requests.
 */
export async function latencyOf({
  url,
  requests,
  connections,
  seconds,
  warmUpSeconds,
}: LatencyOptions): Promise<Latency> {
  const { hostname, port, pathname, host } = new URL(url)
  const begun = performance.now()
  const from = begun + warmUpSeconds * 1000
  const end = from + seconds * 1000
  const times: number[] = []
  let id = 0
  const next = (): string => {
    const { headers, body } = requests[id % requests.length] as Sent
    const text = body.replace(JSON.stringify(idMark), String(++id))
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
    return `POST ${pathname} HTTP/1.1\r\nHost: ${host}\r\n${lines.join('')}Content-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`
  }
  const one = async (socket: Socket): Promise<void> => {
    for (;;) {
      const sent = performance.now()
      if (sent >= end) return
      socket.write(next())
      await answerOn(socket)
      if (sent >= from) times.push(performance.now() - sent)
    }
  }
  const sockets = Array.from({ length: connections }, () =>
    connect({ host: hostname, port: Number(port), noDelay: true }),
  )
  try {
    await Promise.all(sockets.map(one))
  } finally {
    for (const socket of sockets) socket.destroy()
  }
  times.sort((a, b) => a - b)
  const at = (share: number) => times[Math.floor(times.length * share)] ?? Number.NaN
  return { p50: at(0.5), p99: at(0.99) }
}

/** Resolves when a whole answer has arrived. Rejects if its status is not 200, or if the connection ends. */
function answerOn(socket: Socket): Promise<void> {
  return new Promise((resolve, reject) => {
    let head: string | undefined
    let left = 0
    let isChunked = false
    const finish = (error?: Error) => {
      socket.off('data', take).off('error', finish).off('close', closed)
      if (error === undefined) resolve()
      else reject(error)
    }
    const closed = () => finish(new Error('The server closed a connection.'))
    const take = (chunk: Buffer): void => {
      let rest = chunk
      if (left === 0 && !isChunked) {
        head = (head ?? '') + chunk.toString('latin1')
        const length = head.indexOf('\r\n\r\n')
        if (length < 0) return
        if (!head.startsWith('HTTP/1.1 200')) {
          finish(new Error(`The server says: ${head.slice(0, 200)}`))
          return
        }
        rest = Buffer.from(head.slice(length + 4), 'latin1')
        const size = /\r\ncontent-length: (\d+)/i.exec(head)?.[1]
        isChunked = size === undefined
        left = Number(size ?? 0)
      }
      left -= rest.length
      if (isChunked ? rest.subarray(-5).toString('latin1').endsWith('0\r\n\r\n') : left <= 0) finish()
    }
    socket.on('data', take).on('error', finish).on('close', closed)
  })
}
