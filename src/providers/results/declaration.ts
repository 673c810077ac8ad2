import type { OptionsIn, Source } from '../source.ts'

export const results: Source<OptionsIn<typeof import('./config.ts')>> = {
  name: 'results',
  schema: () => import('./config.ts'),
  open: () => import('./config.ts'),
  abilities: () => ({ watch: true }),
  isDerived: true,
  keeps: true,
  writers: ({ write = [] }) => write,
}
