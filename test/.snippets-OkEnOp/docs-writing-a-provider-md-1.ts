import { createCatalog } from 'hikidashi'
import { serveStdio } from 'hikidashi/server'
import { memory } from './memory-provider.ts'

const catalog = createCatalog({ mounts: [{ address: 'memory://demo', provider: memory({ 'hello.txt': 'Hello' }) }] })
await serveStdio({ view: (principal) => catalog.view(principal), name: 'demo', version: '1.0.0', log: console.error })
