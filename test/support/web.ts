import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { type AddressInfo, Socket } from 'node:net'
import type { ResolveHost } from '../../src/core/address-guard.ts'
import { addressBytes } from '../../src/core/http-url.ts'
import { identity } from './database-tls.ts'

export interface WebServer {
  readonly url: string
  readonly port: number
  /** The received requests, in order. */
  readonly requests: IncomingMessage[]
  /** The current answer, which a test can replace. */
  answer: RequestListener
  close(): void
}

/** Starts a server on the loopback interface that answers as the test says. */
export async function startWeb(
  answer: RequestListener,
  options: { readonly tls?: boolean; readonly host?: string } = {},
): Promise<WebServer> {
  const { host = '127.0.0.1' } = options
  const requests: IncomingMessage[] = []
  const listen: RequestListener = (request, response) => {
    requests.push(request)
    response.on('error', () => {})
    started.answer(request, response)
  }
  const server: Server =
    options.tls === true ? (createTlsServer(identity, listen) as unknown as Server) : createServer(listen)
  server.on('clientError', (_, socket) => socket.destroy())
  await new Promise<void>((resolve) => server.listen(0, host, resolve))
  const { port } = server.address() as AddressInfo
  const started: WebServer = {
    port,
    url: options.tls === true ? `https://database.test:${port}` : `http://${host}:${port}`,
    requests,
    answer,
    close: () => {
      server.closeAllConnections()
      server.close()
    },
  }
  return started
}

/** A stand-in for the DNS: addresses by name, and a record of the lookups. */
export function createNames(names: Readonly<Record<string, readonly string[]>>) {
  const asked: string[] = []
  const resolve: ResolveHost = (host, done) => {
    asked.push(host)
    const found = Object.hasOwn(names, host) ? (names[host] ?? []) : []
    if (found.length === 0) return done(Object.assign(new Error('no such host'), { code: 'ENOTFOUND' }), [])
    done(
      null,
      found.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })),
    )
  }
  return { asked, resolve }
}

/**
 * Intercepts every connection of this process until it is stopped: a connection beyond the loopback interface is recorded and
 * refused.
 */
export function watchConnections() {
  const left: string[] = []
  const original = Socket.prototype.connect
  const isHere = (address: string) => /^127\.|^::1$|^::ffff:127\./.test(address)
  Socket.prototype.connect = function (this: Socket, ...args: unknown[]) {
    const [first] = args
    const options = (Array.isArray(first) ? first[0] : first) as { host?: string; path?: string; lookup?: unknown }
    const { host = 'localhost', path } = typeof options === 'object' && options !== null ? options : {}
    const leaves =
      path === undefined &&
      (addressBytes(host) === undefined ? typeof options?.lookup !== 'function' && host !== 'localhost' : !isHere(host))
    if (leaves) {
      left.push(host)
      queueMicrotask(() => this.destroy(Object.assign(new Error('it would leave'), { code: 'ELEFT' })))
      return this
    }
    // The looked-up address of a name is only known to the socket.
    this.on('lookup', (error: Error | null, address: string) => {
      if (error !== null || isHere(address)) return
      left.push(address)
      this.destroy(Object.assign(new Error('it would leave'), { code: 'ELEFT' }))
    })
    return (original as (...all: unknown[]) => Socket).apply(this, args)
  } as typeof original
  return {
    left,
    end: () => {
      Socket.prototype.connect = original
    },
  }
}
