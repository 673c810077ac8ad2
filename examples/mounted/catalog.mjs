import { createCatalog } from 'hikidashi'
import { files } from 'hikidashi/providers/files'

/** The catalog that all four servers share: the folder in which they are started. */
export const catalog = createCatalog({
  mounts: [{ address: 'docs://manual', provider: await files({ root: process.cwd() }) }],
})
