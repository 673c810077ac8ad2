import { createCatalog } from 'hikidashi'
import { files } from 'hikidashi/providers/files'

/** What all four serve: the folder that they are started in. */
export const catalog = createCatalog({
  mounts: [{ address: 'docs://manual', provider: await files({ root: process.cwd() }) }],
})
