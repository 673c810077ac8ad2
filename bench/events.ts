import { parseArgs } from 'node:util'
import { createCatalog } from '../src/core/catalog.ts'
import type { Change, Provider } from '../src/core/provider.ts'
import type { ChangeReader } from '../src/core/view.ts'
import { fixed, table } from './support.ts'

// Measures the cost of one event: many subscriptions of one process, each with a directory of its own, wait for changes. Each change
// is compared with all of them, and wakes the one that it concerns, as for streams and webhooks. The last column is a poll without news.

const { values } = parseArgs({
  options: { subscriptions: { type: 'string', default: '10000' }, changes: { type: 'string', default: '50' } },
})
const subscriptions = Number(values.subscriptions)
const changes = Number(values.changes)
const principal = { id: 'bench', roles: [] }

/** A source that reports the changes that it is given. */
function createSource() {
  let wake = () => {}
  const queue: Change[] = []
  const provider: Provider = {
    list: async function* () {},
    read: async () => [{ text: '' }],
    watch: async (signal) => {
      signal.addEventListener('abort', () => wake())
      return (async function* () {
        while (!signal.aborted) {
          yield* queue.splice(0)
          await new Promise<void>((resolve) => {
            wake = resolve
          })
        }
      })()
    },
  }
  const tell = (change: Change) => {
    queue.push(change)
    wake()
  }
  return { provider, tell }
}

const source = createSource()
const most = { perSubscription: 1, perPrincipal: 10, total: 10, subscriptions, totalSubscriptions: subscriptions }
const catalog = createCatalog({ mounts: [{ address: 'bench://m', provider: source.provider }], changes: most })
const { history } = catalog.view(principal)
if (history === undefined) throw new Error('The catalog reports no changes.')

interface Subscriber {
  readonly reader: ChangeReader
  position: string
}
const subscribers: Subscriber[] = []
for (let i = 0; i < subscriptions; i++) {
  const reader = await history.open({ uri: `bench://m/${i}` })
  subscribers.push({ reader, position: await reader.now() })
}

/** Reads the news of a subscription. Resolves to the number of events. */
async function read(one: Subscriber): Promise<number> {
  const { changes: found, position } = await one.reader.since(one.position, { limit: 100 })
  one.position = position
  return found.filter((change) => change.position() !== '').length
}

const cpuMs = () => {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1000
}

let wakeNext = (_: Subscriber) => {}
for (const one of subscribers) one.reader.follow(() => wakeNext(one))
const begun = cpuMs()
let events = 0
for (let i = 0; i < changes; i++) {
  const woken = new Promise<Subscriber>((resolve) => {
    wakeNext = resolve
  })
  source.tell({ path: `${i % subscriptions}/file` })
  events += await read(await woken)
}
const eachMs = (cpuMs() - begun) / changes
const quiet = cpuMs()
for (const one of subscribers) await read(one)
const pollMs = (cpuMs() - quiet) / subscriptions

console.log(
  table(
    ['subscriptions', 'events', 'CPU of an event, ms', 'of one subscription, µs', 'a poll without news, µs'],
    [[subscriptions, events, fixed(eachMs, 1), fixed((eachMs * 1000) / subscriptions, 1), fixed(pollMs * 1000, 1)]],
  ),
)
await catalog.close()
