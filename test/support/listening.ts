import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'

/** Where a server of a test listens, and how it ends. */
export interface Listening {
  readonly url: string
  readonly port: number
  close(): Promise<void>
}

/** Lets a server listen on the loopback, at a port that is free. */
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
