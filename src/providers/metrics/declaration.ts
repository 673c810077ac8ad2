import type { OptionsOfModule, Source } from '../source.ts'

export const metrics: Source<OptionsOfModule<typeof import('./config.ts')>> = {
  name: 'metrics',
  schema: () => import('./config.ts'),
  open: () => import('./config.ts'),
  icon: 'chart',
  label: { en: 'Metrics', ja: 'メトリクス' },
  purpose: { en: 'Values over time, as charts', ja: '時系列のグラフ' },
  isLive: true,
  abilities: () => ({ watch: true }),
  isDerived: true,
  isUnsearched: true,
  isMeasuring: ({ source }) => source === 'self',
}
