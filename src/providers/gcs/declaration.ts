import type { Source } from '../source.ts'

export const gcs: Source = {
  name: 'gcs',
  schema: () => import('./config.ts'),
  open: () => import('./config.ts'),
  noun: 'objects',
  icon: 'database',
  label: { en: 'Storage', ja: 'ストレージ' },
  purpose: { en: 'Objects of a bucket', ja: 'バケットのオブジェクト' },
}
