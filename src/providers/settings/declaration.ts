import type { OptionsOfModule, Source } from '../source.ts'

export const settings: Source<OptionsOfModule<typeof import('./config.ts')>> = {
  name: 'settings',
  schema: () => import('./config.ts'),
  open: () => import('./open.ts'),
  icon: 'gear',
  label: { en: 'Settings', ja: '設定' },
  purpose: { en: 'Settings, value by value', ja: '設定を値ごとに' },
  abilities: ({ watch = true }) => ({ watch }),
  changes: 'seen',
  isDerived: true,
  folder: { option: 'root' },
  leftOut: () => import('./open.ts'),
  absence: 'the provider "settings" serves only files of settings, in formats that it can read',
  sample: { root: '.' },
}
