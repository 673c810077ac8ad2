import type { Source } from '../source.ts'

export const api: Source = {
  name: 'api',
  schema: () => import('./config.ts'),
  open: () => import('./config.ts'),
  noun: 'API',
  changes: 'polled',
  isPolling: true,
  sample: { url: 'https://api.example.org', routes: [{ template: 'users/{id}' }] },
}
