import { afterAll, describe, test } from 'vitest'
import { packages } from '../../src/providers/packages/index.ts'
import { describeProvider } from '../../src/testing/index.ts'
import { sliced } from '../../src/wrap/sliced.ts'
import { createFolder, type Folder } from '../support/folder.ts'

const folders: Folder[] = []
afterAll(() => {
  for (const folder of folders) folder.remove()
})

const manifest = (version: string) => JSON.stringify({ version })

describeProvider(
  { describe, test },
  'the provider packages',
  async () => {
    const folder = createFolder()
    folders.push(folder)
    folder.write({
      'package-lock.json': JSON.stringify({
        packages: {
          '': { version: '1.0.0' },
          'node_modules/zod': { version: '4.6.7' },
          'node_modules/a/node_modules/zod': { version: '3.0.0' },
          'node_modules/a': { version: '1.0.0' },
          'node_modules/@scope/name': { version: '2.0.0-rc.1' },
          'node_modules/absent': { version: '1.0.0' },
        },
      }),
      'node_modules/zod/package.json': manifest('4.6.7'),
      'node_modules/zod/README.md': '# Zod\n',
      'node_modules/zod/index.js': 'secret()',
      'node_modules/zod/dist/types/index.d.ts': 'export {}\n',
      'node_modules/a/package.json': manifest('1.0.0'),
      'node_modules/a/node_modules/zod/package.json': manifest('3.0.0'),
      'node_modules/a/node_modules/zod/CHANGELOG': 'old\n',
      'node_modules/@scope/name/package.json': manifest('2.0.0-rc.1'),
      'node_modules/@scope/name/README.md': '# Name\n',
    })
    return {
      provider: await packages({ root: folder.at('.') }),
      expectation: {
        entries: {
          '@scope/name@2.0.0-rc.1/README.md': { text: '# Name\n' },
          '@scope/name@2.0.0-rc.1/package.json': { text: manifest('2.0.0-rc.1') },
          'a@1.0.0/package.json': { text: manifest('1.0.0') },
          'zod@3.0.0/CHANGELOG': { text: 'old\n' },
          'zod@3.0.0/package.json': { text: manifest('3.0.0') },
          'zod@4.6.7/README.md': { text: '# Zod\n' },
          'zod@4.6.7/dist/types/index.d.ts': { text: 'export {}\n' },
          'zod@4.6.7/package.json': { text: manifest('4.6.7') },
        },
        missing: [
          'zod',
          'zod@4.6.7',
          'zod@9.9.9/README.md',
          'zod@4.6.7/index.js',
          'absent@1.0.0/package.json',
          '@scope',
        ],
      },
    }
  },
  { through: { sliced } },
)
