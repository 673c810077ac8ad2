import { describe, test } from 'vitest'
import { settings } from '../../src/providers/settings/index.ts'
import { describeProvider } from '../../src/testing/index.ts'
import { sliced } from '../../src/wrap/sliced.ts'
import { ranged } from '../support/ranged.ts'

const held = {
  '.env': 'HOST=db\nTOKEN=abc\n',
  'a-b.json': '{}',
  'a/b.toml': '[db]\nhost = "db"\n',
  'a/c.yaml': '# what for\ndb:\n  password: hunter2\n  port: 5432\n',
  'k.properties': 'a.b=c\n',
  'x/日本語/𠮷.ini': '[会社]\n名前 = 吉野家\n',
  'x/ｱ.yml': 'かな: 半角\n',
}

describeProvider(
  { describe, test },
  'the provider settings',
  () => ({
    provider: settings({
      source: ranged({ ...held, 'readme.md': '# none', 'a/package-lock.json': '{}', 'a/state.tfstate': '{}' }),
      allow: ['HOST'],
    }),
    expectation: {
      entries: {
        '.env': { text: 'HOST=db\nTOKEN=[redacted]\n', mimeType: 'text/plain' },
        'a-b.json': { text: '{}', mimeType: 'application/json' },
        'a/b.toml': { text: held['a/b.toml'], mimeType: 'application/toml' },
        'a/c.yaml': { text: '# what for\ndb:\n  password: "[redacted]"\n  port: 5432\n', mimeType: 'application/yaml' },
        'k.properties': { text: held['k.properties'] },
        'x/日本語/𠮷.ini': { text: held['x/日本語/𠮷.ini'] },
        'x/ｱ.yml': { text: held['x/ｱ.yml'] },
      },
      missing: ['readme.md', 'a', 'a/', 'a/package-lock.json', 'a/state.tfstate', 'a/c.yml', 'A/c.yaml'],
    },
  }),
  { through: { sliced } },
)
