import type { OptionsOfModule, Source } from '../source.ts'

export const results: Source<OptionsOfModule<typeof import('./config.ts')>> = {
  name: 'results',
  schema: () => import('./config.ts'),
  open: () => import('./config.ts'),
  icon: 'data',
  label: { en: 'Results', ja: '結果' },
  purpose: { en: 'Results that clients have stored', ja: 'クライアントが保存した結果' },
  abilities: () => ({ watch: true }),
  isDerived: true,
  keeps: true,
  writers: ({ write = [] }) => write,
}
