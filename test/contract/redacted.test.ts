import { describe, test } from 'vitest'
import { memory } from '../../examples/memory-provider.ts'
import type { Provider } from '../../src/core/provider.ts'
import { describeProvider } from '../../src/testing/index.ts'
import { redacted } from '../../src/wrap/redacted.ts'
import { sliced } from '../../src/wrap/sliced.ts'
import { ranged } from '../support/ranged.ts'

const pixel = Uint8Array.of(0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 1)
const password = 'password: hunter2 # why\n'

const held: Readonly<Record<string, string>> = {
  'a-b.txt': '',
  'a/b.txt': 'text\n',
  'a/secret.yaml': `host: db\n${password}port: 5432\n`,
  'kana/ｱ.txt': '半角',
  'kana/𠮷.txt': '吉野家 password=くまのこ7 です\n',
  // Longer than a window, with secrets where windows end.
  'long.log': Array.from(
    { length: 30_000 },
    (_, i) => `${i} 吾輩は猫である。${i % 100 === 0 ? ' token=abc123def' : ''}\n`,
  ).join(''),
}

const shown: Readonly<Record<string, string>> = {
  ...held,
  'a/secret.yaml': 'host: db\npassword: [redacted] # why\nport: 5432\n',
  'kana/𠮷.txt': '吉野家 password=[redacted] です\n',
  'long.log': held['long.log']?.replaceAll('abc123def', '[redacted]') ?? '',
}

type Held = Readonly<Record<string, string | Uint8Array>>

const subject = (make: (contents: Held) => Provider) => () => ({
  provider: redacted(make({ ...held, 'z.png': pixel })),
  expectation: {
    entries: {
      ...Object.fromEntries(Object.entries(shown).map(([path, text]) => [path, { text }])),
      'z.png': { bytes: pixel },
    },
    missing: ['a', 'a/', 'c.txt', 'kana/ｱ.TXT'],
  },
})

describeProvider({ describe, test }, 'the wrapper redacted over a source that is read as a whole', subject(memory), {
  through: { sliced },
})
describeProvider({ describe, test }, 'the wrapper redacted over a source that is read in parts', subject(ranged), {
  through: { sliced },
})
