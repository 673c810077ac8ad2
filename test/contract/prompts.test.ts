import { describe, test } from 'vitest'
import { prompts } from '../../src/providers/prompts/index.ts'
import { describeProvider } from '../../src/testing/index.ts'
import { sliced } from '../../src/wrap/sliced.ts'
import { ranged } from '../support/ranged.ts'

const held = {
  'README.md': '# The library\n',
  'a-b.md': '---\narguments: [path]\n---\nLook at {{path}}.\n',
  'a/b.prompt.md': 'Review ![[file:///x]]\n',
  'broken.md': '---\n[\n---\n',
  '日本語/𠮷.md': '# 翻訳\n\n{{text}}を訳す\n',
}

describeProvider(
  { describe, test },
  'the provider prompts',
  () => ({
    provider: prompts({ source: ranged(held) }),
    expectation: {
      entries: Object.fromEntries(Object.entries(held).map(([path, text]) => [path, { text }])),
      missing: ['a', 'a/', 'a/b', 'a/b.md', '𠮷.md', 'A-b.md'],
    },
  }),
  { through: { sliced } },
)
