import type { Source } from '../source.ts'

export const web: Source = {
  name: 'web',
  schema: () => import('./config.ts'),
  open: () => import('./config.ts'),
  noun: 'web pages',
  icon: 'globe',
  label: { en: 'Web', ja: 'ウェブ' },
  purpose: { en: 'Pages of the web', ja: 'ウェブのページ' },
  changes: 'polled',
  isPolling: true,
  sample: { url: 'https://www.example.org', pages: ['intro'], match: 'docs/**' },
}
