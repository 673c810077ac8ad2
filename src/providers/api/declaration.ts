import type { Source } from '../source.ts'

export const api: Source = {
  name: 'api',
  schema: () => import('./config.ts'),
  open: () => import('./config.ts'),
  noun: 'API',
  icon: 'code',
  label: { en: 'API', ja: 'API' },
  purpose: { en: 'Answers of a web API', ja: 'Web API の応答' },
  changes: 'polled',
  isPolling: true,
  sample: { url: 'https://api.example.org', routes: [{ template: 'users/{id}' }] },
}
