import { once } from 'node:events'
import { Agent, createServer, request, type ServerResponse } from 'node:http'
import { connect } from 'node:net'
import { setImmediate as turn } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { afterEach, expect, test } from 'vitest'
import { createAddresses, createLiveness, listen, watchSockets } from '../../src/server/admission/connections.ts'
import { completeLimits } from '../../src/server/admission/limits.ts'
import { arrivalOf } from '../../src/server/http/guard.ts'
import { inTurn } from '../../src/server/http/pipeline.ts'
import { createMeter } from '../../src/server/telemetry/meter.ts'

const ends: (() => unknown)[] = []
afterEach(() => {
  for (const end of ends.splice(0)) end()
})

test('a connection that rests keeps nothing of what was answered on it', async () => {
  const answered: WeakRef<ServerResponse>[] = []
  const { take, answering } = inTurn(
    async (_, response) => {
      answered.push(new WeakRef(response))
      expect(answering(response.req.socket)).toBe(response)
      response.end('an answer')
    },
    createMeter(),
    () => {},
  )
  const server = createServer(take)
  const liveness = createLiveness(60_000, 2)
  const addresses = createAddresses(completeLimits(undefined, false))
  watchSockets(server, { liveness, addresses, meter: createMeter(), onRefused: () => {}, answering })
  const { port } = await listen(server, '127.0.0.1', 0, 16)
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  ends.push(
    () => agent.destroy(),
    () => server.close(),
    () => liveness.close(),
  )

  for (let asked = 0; asked < 3; asked++) {
    const [response] = await once(request({ host: '127.0.0.1', port, agent }).end(), 'response')
    await once(response.resume(), 'end')
  }
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  for (let tries = 0; tries < 100 && answered.some((one) => one.deref() !== undefined); tries++) {
    await turn()
    collect()
  }
  expect(answered.map((one) => one.deref())).toEqual([undefined, undefined, undefined])
  expect(liveness.size).toBe(1)
})

test('requests that can be read at once share their arrival, but not with those that follow on a connection', async () => {
  const handled: { readonly path: string | undefined; readonly arrival: object | undefined }[] = []
  const { take } = inTurn(
    async (request, response) => {
      handled.push({ path: request.url, arrival: arrivalOf(request) })
      response.end('an answer')
    },
    createMeter(),
    () => {},
  )
  // What a turn of the event loop reads: two requests on one connection and one on another, and after a turn one more.
  const server = createServer()
  const { port } = await listen(server, '127.0.0.1', 0, 16)
  const arrived: Parameters<typeof take>[] = []
  server.on('request', (...one) => arrived.push(one))
  const sockets = [connect(port, '127.0.0.1'), connect(port, '127.0.0.1')]
  ends.push(
    () => server.close(),
    () => sockets.map((socket) => socket.destroy()),
  )
  const asking = (...paths: readonly string[]) =>
    paths.map((path) => `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`).join('')
  sockets[0]?.write(asking('/first', '/second'))
  sockets[1]?.write(asking('/other'))
  await expect.poll(() => arrived.length).toBe(3)
  for (const one of arrived.splice(0)) take(...one)
  await expect.poll(() => handled.length).toBe(3)
  sockets[1]?.write(asking('/later'))
  await expect.poll(() => arrived.length).toBe(1)
  for (const one of arrived) take(...one)
  await expect.poll(() => handled.length).toBe(4)
  const of = (path: string) => handled.find((one) => one.path === path)?.arrival
  expect(of('/first')).toBeDefined()
  expect(of('/other')).toBe(of('/first'))
  expect(of('/second')).toBeUndefined()
  expect(of('/later')).toBeDefined()
  expect(of('/later')).not.toBe(of('/first'))
})
