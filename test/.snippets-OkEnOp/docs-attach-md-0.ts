import { createServer } from 'node:http'
import { createCatalog } from 'hikidashi'
import { files } from 'hikidashi/providers/files'
import { createHandler } from 'hikidashi/server'

const provider = await files({ root: process.cwd() })
const catalog = createCatalog({ mounts: [{ address: 'docs://manual', provider }] })
const handler = await createHandler(catalog, { name: 'manual', version: '1.0.0' })
createServer(handler.node).listen(8787, '127.0.0.1')
