import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { describe, test } from 'vitest'
import { files } from '../../src/providers/files/index.ts'
import { describeProvider } from '../../src/testing/index.ts'
import { sliced } from '../../src/wrap/sliced.ts'
import { awkwardFiles, expectedOf, manyFiles } from '../support/awkward-files.ts'

const held = { ...awkwardFiles, ...manyFiles(1200) }

describeProvider(
  { describe, test },
  'the provider files',
  async () => {
    const root = await mkdtemp(join(tmpdir(), 'hikidashi-'))
    for (const [path, content] of Object.entries(held)) {
      await mkdir(join(root, dirname(path)), { recursive: true })
      await writeFile(join(root, path), content)
    }
    return {
      provider: await files({ root }),
      expectation: {
        entries: expectedOf(held),
        missing: [
          'a',

          'a/b',
          'many',
          'none/',
          'none/x',
          'a.txt/',
          'a.txt/x',
          'A.TXT',
          'odd/A.txt',
          'odd/100%25.txt',
          'a//b',
          '日本語',
        ],
      },
      dispose: () => rm(root, { recursive: true }),
    }
  },
  { through: { sliced } },
)
