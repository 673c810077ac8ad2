import type { OptionsOfModule, Source } from '../source.ts'

export const gdrive: Source<OptionsOfModule<typeof import('./config.ts')>> = {
  name: 'gdrive',
  schema: () => import('./config.ts'),
  open: () => import('./config.ts'),
  noun: 'Drive',
  icon: 'database',
  label: { en: 'Storage', ja: 'ストレージ' },
  purpose: { en: 'Documents of Google Drive', ja: 'Google ドライブの文書' },
  abilities: ({ permissions = false }) => ({ watch: true, sees: permissions }),
  changes: 'polled',
  account: () => import('./account.ts'),
}
