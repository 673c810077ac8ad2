import { createCatalog, notFound, type Provider } from 'hikidashi'
import { serveStdio } from 'hikidashi/server'

const greetings = new Map([
  ['en', 'Hello'],
  ['ja', 'こんにちは'],
])
const provider: Provider = {
  async *list({ prefix = '', after = '' }) {
    for (const path of [...greetings.keys()].sort()) if (path > after && path.startsWith(prefix)) yield { path }
  },
  async read({ path }) {
    const text = greetings.get(path)
    if (text === undefined) throw notFound()
    return [{ text, mimeType: 'text/plain' }]
  },
}
const catalog = createCatalog({ mounts: [{ address: 'greeting://hello', provider }] })
await serveStdio({ view: (principal) => catalog.view(principal), name: 'greetings', version: '1.0.0', log: () => {} })
