import type { OptionsOfModule, Source } from '../source.ts'

export const sqlite: Source<OptionsOfModule<typeof import('./config.ts')>> = {
  name: 'sqlite',
  schema: () => import('./config.ts'),
  open: () => import('./open.ts'),
  noun: 'database',
  icon: 'database',
  label: { en: 'Database', ja: 'データベース' },
  purpose: { en: 'Tables, their columns and rows', ja: 'テーブルと列・行' },
  abilities: ({ watch = true, rows = false }) => ({ watch, parts: rows !== false }),
  changes: 'seen',
  sample: { rows: true },
}
