import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test, vi } from 'vitest'
import { gcs } from '../../src/providers/gcs/index.ts'
import { describeProvider } from '../../src/testing/index.ts'
import { startGcs } from '../support/gcs-stand-in.ts'
import { expectedObjects, heldObjects, oddKeys } from '../support/object-samples.ts'

// A machine with other work takes its time.
vi.setConfig({ testTimeout: 120_000 })

describeProvider(
  { describe, test },
  'the provider gcs below a prefix',
  async () => {
    const store = await startGcs()
    const folder = await mkdtemp(join(tmpdir(), 'hikidashi-gcs-'))
    const keyFile = join(folder, 'key.json')
    await writeFile(keyFile, store.keyFile)
    for (const [key, content] of Object.entries(heldObjects)) store.table.put(`tenant1/${key}`, content)
    for (const key of ['tenant1', 'tenant1/', 'tenant10/x', 'tenant0/x', ...oddKeys.map((odd) => `tenant1/${odd}`)])
      store.table.put(key, 'out of reach')
    return {
      provider: await gcs({ bucket: store.bucket, prefix: 'tenant1/', endpoint: store.url, keyFile }),
      expectation: expectedObjects,
      dispose: async () => {
        await store.close()
        await rm(folder, { recursive: true })
      },
    }
  },
  { samples: 6, timeoutMs: 30_000 },
)
