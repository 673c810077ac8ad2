import { createCatalog } from 'hikidashi'
import { files } from 'hikidashi/providers/files'
import { localPrincipal, serveStdio } from 'hikidashi/server'

const provider = await files({ root: process.cwd() })
const catalog = createCatalog({ mounts: [{ address: 'docs://here', provider }] })
await serveStdio({ name: 'docs', version: '1.0.0', view: catalog.view, principal: localPrincipal, log: () => {} })
