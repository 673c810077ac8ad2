import { once } from 'node:events'
import { Agent, createServer, request, type ServerResponse } from 'node:http'
import { setImmediate as turn } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { afterEach, expect, test } from 'vitest'
import {
  createAddressRateLimits,
  createLiveness,
  listenOnPort,
  watchSockets,
} from '../../src/server/admission/connections.ts'
import { completeLimits } from '../../src/server/admission/limits.ts'
import { handleInTurn } from '../../src/server/http/pipeline.ts'
import { createMeter } from '../../src/server/telemetry/meter.ts'

const ends: (() => unknown)[] = []
afterEach(() => {
  for (const end of ends.splice(0)) end()
})

test('an idle connection keeps nothing of its answers in memory', async () => {
  const answered: WeakRef<ServerResponse>[] = []
  const { take, answering } = handleInTurn(async (_, response) => {
    answered.push(new WeakRef(response))
    expect(answering(response.req.socket)).toBe(response)
    response.end('an answer')
  }, createMeter())
  const server = createServer(take)
  const liveness = createLiveness(60_000, 2)
  const addresses = createAddressRateLimits(completeLimits(undefined, false))
  watchSockets(server, { liveness, addresses, meter: createMeter(), onRefused: () => {}, answering })
  const { port } = await listenOnPort(server, '127.0.0.1', 0, 16)
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
