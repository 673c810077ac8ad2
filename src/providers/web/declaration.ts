import type { Source } from '../source.ts'

export const web: Source = {
  name: 'web',
  schema: () => import('./config.ts'),
  open: () => import('./config.ts'),
  noun: 'web pages',
  label: { en: 'Web', ja: 'ウェブ' },
  icon: 'globe',
  changes: 'polled',
  isPolling: true,
}
