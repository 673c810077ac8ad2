import type { OptionsIn, Source } from '../source.ts'

export const metrics: Source<OptionsIn<typeof import('./config.ts')>> = {
  name: 'metrics',
  schema: () => import('./config.ts'),
  open: () => import('./config.ts'),
  icon: 'chart',
  label: { en: 'Metrics', ja: 'メトリクス' },
  isLive: true,
  abilities: () => ({ watch: true }),
  isDerived: true,
  isUnsearched: true,
  isMeasuring: ({ source }) => source === 'self',
}
