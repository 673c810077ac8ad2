import { createCatalog } from '../../src/core/catalog.ts'
import { fileAddress } from '../../src/core/uri.ts'
import { files } from '../../src/providers/files/index.ts'
import { serveStdio } from '../../src/server/stdio/serve-stdio.ts'
import { sliced } from '../../src/wrap/sliced.ts'

const root = process.argv[2] ?? '.'
const provider = sliced(await files({ root }))
const catalog = createCatalog({ mounts: [{ address: fileAddress(root), provider }] })
await serveStdio({ view: (p) => catalog.view(p), name: 'hikidashi', version: '0', log: () => {} })
await catalog.close()
