import type { Source } from '../source.ts'

export const web: Source = {
  name: 'web',
  schema: () => import('./config.ts'),
  open: () => import('./config.ts'),
  noun: 'web pages',
  changes: 'polled',
  isPolling: true,
}
