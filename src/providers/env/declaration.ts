import type { OptionsOfModule, Source } from '../source.ts'

export const env: Source<OptionsOfModule<typeof import('./config.ts')>> = {
  name: 'env',
  schema: () => import('./config.ts'),
  open: () => import('./open.ts'),
  noun: 'environment',
  icon: 'key',
  label: { en: 'Environment', ja: '環境変数' },
  purpose: { en: 'Names and values, secrets masked', ja: '名前と値（秘密は伏せる）' },
  unchanging: ({ file }) => (file === undefined ? 'The environment of a process does not change.' : undefined),
  isDerived: true,
}
