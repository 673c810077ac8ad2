import type { OptionsOfModule, Source } from '../source.ts'

export const search: Source<OptionsOfModule<typeof import('./config.ts')>> = {
  name: 'search',
  schema: () => import('./config.ts'),
  open: () => import('./open.ts'),
  icon: 'search',
  label: { en: 'Search', ja: '検索' },
  purpose: { en: 'Find passages by words', ja: '言葉から箇所を探す' },
  isDerived: true,
  isComputed: true,
  keeps: true,
  isUnsearched: true,
  searches: { option: 'over', indexedBytes: ({ maxBytes }) => maxBytes },
  isPersonal: true,
  sample: { over: ['files://sample'] },
}
