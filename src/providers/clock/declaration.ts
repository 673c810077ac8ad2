import type { Source } from '../source.ts'

export const clock: Source = {
  name: 'clock',
  schema: () => import('./index.ts'),
  open: () => import('./index.ts'),
  noun: 'time',
  icon: 'gear',
  isComputed: true,
  isDerived: true,
  isUnsearched: true,
}
