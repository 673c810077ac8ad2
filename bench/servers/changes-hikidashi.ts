import { createCatalog } from '../../src/core/catalog.ts'
import { notFound } from '../../src/core/errors.ts'
import type { Change, Provider } from '../../src/core/provider.ts'
import { serveHttp } from '../../src/server/http/serve-http.ts'
import { serveWriting } from './writing.ts'

let changed: Change[] = []
let wake = () => {}

const provider: Provider = {
  async *list() {},
  read: async () => {
    throw notFound()
  },
  watch: async (signal) => changesUntil(signal),
}

async function* changesUntil(signal: AbortSignal): AsyncGenerator<Change> {
  signal.addEventListener('abort', () => wake())
  while (!signal.aborted) {
    const batch = changed
    changed = []
    yield* batch
    if (changed.length === 0)
      await new Promise<void>((resolve) => {
        wake = resolve
      })
  }
}

const catalog = createCatalog({
  mounts: [{ address: 'bench://changes', provider }],
  changes: { subscriptions: 10_000, perPrincipal: 1_000_000, total: 1_000_000 },
})
const { url } = await serveHttp({
  ...{ view: catalog.view, name: 'hikidashi', version: '0', log: () => {}, host: '127.0.0.1', port: 0 },
  limits: { connections: 20_000 },
})
await serveWriting(url, (index) => {
  changed.push({ path: String(index) })
  wake()
})
