import type { OptionsOfModule, Source } from '../source.ts'

export const mysql: Source<OptionsOfModule<typeof import('./config.ts')>> = {
  name: 'mysql',
  schema: () => import('./config.ts'),
  open: () => import('./config.ts'),
  noun: 'database',
  icon: 'database',
  label: { en: 'Database', ja: 'データベース' },
  purpose: { en: 'Tables, their columns and rows', ja: 'テーブルと列・行' },
  abilities: ({ watch = true, rows = false }) => ({ watch, parts: rows !== false }),
  changes: 'polled',
  sql: () => import('./account.ts'),
  sample: { rows: true },
}
