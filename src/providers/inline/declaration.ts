import type { OptionsOfModule, Source } from '../source.ts'

export const inline: Source<OptionsOfModule<typeof import('./config.ts')>> = {
  name: 'inline',
  schema: () => import('./config.ts'),
  open: () => import('./config.ts'),
  noun: 'texts',
  icon: 'text',
  label: { en: 'Texts', ja: 'テキスト' },
  purpose: { en: 'Texts of the configuration', ja: '構成ファイルのテキスト' },
  unchanging: () => 'A text in the configuration does not change while it is served.',
  isSingle: ({ resources }) => resources === undefined,
  sample: { resources: { greeting: { text: 'Hello' } } },
}
