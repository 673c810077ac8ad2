import { describe, test } from 'vitest'
import { env } from '../../src/providers/env/index.ts'
import { describeProvider } from '../../src/testing/index.ts'
import { sliced } from '../../src/wrap/sliced.ts'

const environment = {
  API_KEY: 'abc',
  EDITOR: 'vi',
  Editor: 'ed',
  EMPTY: '',
  HOME: '/home/you',
  lang: 'ja_JP.UTF-8',
  名前: '吉野家',
  'A/B': 'no path',
  '': 'no name',
  '..': 'no name',
}

describeProvider(
  { describe, test },
  'the provider env',
  () => ({
    provider: env({ environment, allow: ['EDITOR', 'lang', 'EMPTY', '名*'] }),
    expectation: {
      entries: {
        API_KEY: { text: '[redacted]' },
        EDITOR: { text: 'vi' },
        EMPTY: { text: '' },
        Editor: { text: '[redacted]' },
        HOME: { text: '[redacted]' },
        lang: { text: 'ja_JP.UTF-8' },
        名前: { text: '吉野家' },
      },
      missing: ['editor', 'LANG', 'A', 'A/B', 'hasOwnProperty', '..'],
    },
  }),
  { through: { sliced } },
)
