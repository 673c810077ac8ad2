import { describe, test, vi } from 'vitest'
import { s3 } from '../../src/providers/s3/index.ts'
import { describeProvider } from '../../src/testing/index.ts'
import { documents } from '../../src/wrap/documents.ts'
import { awkwardFiles, expectedOf } from '../support/awkward-files.ts'
import { expectedObjects, heldObjects, oddKeys } from '../support/object-samples.ts'
import { startS3 } from '../support/s3-stand-in.ts'

// The first test waits for all that is checked.
vi.setConfig({ testTimeout: 120_000 })

describeProvider(
  { describe, test },
  'the provider s3 over a bucket',
  async () => {
    const store = await startS3()
    for (const [key, content] of Object.entries(heldObjects)) store.table.put(key, content)
    for (const key of oddKeys) store.table.put(key, 'out of reach')
    return {
      provider: await s3({ bucket: store.bucket, endpoint: store.url, keys: store.keys }),
      expectation: expectedObjects,
      dispose: () => store.close(),
    }
  },
  { samples: 6, timeoutMs: 30_000 },
)

describeProvider(
  { describe, test },
  'the provider s3 below a prefix of a bucket with versions',
  async () => {
    const store = await startS3()
    store.versioned = true
    for (const [key, content] of Object.entries(awkwardFiles)) store.table.put(`tenant1/${key}`, content)
    for (const key of ['tenant1', 'tenant1/', 'tenant10/x', 'tenant0/x', 'x']) store.table.put(key, 'of others')
    return {
      provider: await s3({ bucket: store.bucket, prefix: 'tenant1', endpoint: store.url, keys: store.keys }),
      expectation: { entries: expectedOf(awkwardFiles), missing: expectedObjects.missing },
      dispose: () => store.close(),
    }
  },
  { samples: 6, timeoutMs: 30_000, through: { documents: (inner) => documents(inner) } },
)
