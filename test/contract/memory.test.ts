import { describe, test } from 'vitest'
import { memory } from '../../examples/memory-provider.ts'
import { describeProvider } from '../../src/testing/index.ts'

const pixel = Uint8Array.of(0x89, 0x50, 0x4e, 0x47)

describeProvider({ describe, test }, 'the provider memory', () => ({
  provider: memory({ 'a-b.txt': '', 'a/b.txt': 'text', '図/𠮷.png': pixel }),
  expectation: {
    entries: { 'a-b.txt': { text: '' }, 'a/b.txt': { text: 'text' }, '図/𠮷.png': { bytes: pixel } },
    missing: ['a', 'b.txt', 'a/b.txt/c'],
  },
}))
