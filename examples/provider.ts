import { type Content, createCatalog, notFound, type Provider } from 'hikidashi'
import { localPrincipal, serveStdio } from 'hikidashi/server'

// The time in every time zone, from a provider that is written from scratch.
const zones = Intl.supportedValuesOf('timeZone').sort()

/** One resource for each time zone. */
const clocks: Provider = {
  async *list({ prefix = '', after = '' }) {
    for (const path of zones) if (path.startsWith(prefix) && path > after) yield { path, mimeType: 'text/plain' }
  },
  async read({ path }): Promise<Content[]> {
    if (!zones.includes(path)) throw notFound()
    const time = new Date().toLocaleString('en-GB', { timeZone: path, dateStyle: 'full', timeStyle: 'long' })
    return [{ text: `${time}\n`, mimeType: 'text/plain' }]
  },
}

const catalog = createCatalog({ mounts: [{ address: 'time://now', provider: clocks, title: 'The time, by zone' }] })
await serveStdio({ name: 'clocks', version: '1.0.0', view: catalog.view, principal: localPrincipal, log: () => {} })
await catalog.close()
