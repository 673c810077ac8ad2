import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'

/** The address of a test server, and a function that stops it. */
export interface Listening {
  readonly url: string
  readonly port: number
  close(): Promise<void>
}

/** Starts a server on a free port of the loopback interface. */
export async function listening(server: Server): Promise<Listening> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}
