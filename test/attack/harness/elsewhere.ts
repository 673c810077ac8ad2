import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, afterEach, beforeAll } from 'vitest'

/** Starts a server that must not be contacted, and records the requests that reach it, until the end of each test. */
export function useElsewhere(answer = '{}') {
  const reached: string[] = []
  let place = ''
  const server = createServer((request, response) => {
    reached.push(`${request.url} ${JSON.stringify(request.headers)}`)
    response.writeHead(200, { 'content-type': 'application/json' }).end(answer)
  })
  beforeAll(async () => {
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    place = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  })
  afterEach(() => {
    reached.length = 0
  })
  afterAll(() => {
    server.closeAllConnections()
    server.close()
  })
  return {
    reached,
    get place() {
      return place
    },
  }
}
