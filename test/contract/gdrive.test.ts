import { describe, test, vi } from 'vitest'
import { describeProvider } from '../../src/testing/index.ts'
import { openDrive, served, startFilled } from '../support/drive-samples.ts'

// A machine with other work takes its time.
vi.setConfig({ testTimeout: 120_000 })

const entries = Object.fromEntries(
  Object.entries(served).map(([path, content]) => [
    path,
    typeof content === 'string' ? { text: content } : { bytes: content },
  ]),
)

describeProvider(
  { describe, test },
  'the provider gdrive over My Drive',
  async () => {
    const drive = await startFilled()
    drive.pageLimit = 3
    return {
      provider: await openDrive(drive, { intervalMs: 60_000 }),
      expectation: { entries, missing: ['kept', 'poll', 'dead', 'void/', 'docs/deep/loop', 'gone'] },
      dispose: () => drive.close(),
    }
  },
  { samples: 6, timeoutMs: 30_000 },
)
