import type { OptionsIn, Source } from '../source.ts'

export const search: Source<OptionsIn<typeof import('./config.ts')>> = {
  name: 'search',
  schema: () => import('./config.ts'),
  open: () => import('./open.ts'),
  isDerived: true,
  isComputed: true,
  keeps: true,
  isUnsearched: true,
  searches: { option: 'over', indexedBytes: ({ maxBytes }) => maxBytes },
  isPersonal: true,
}
