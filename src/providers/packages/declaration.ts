import type { Source } from '../source.ts'

export const packages: Source = {
  name: 'packages',
  schema: () => import('./config.ts'),
  open: () => import('./config.ts'),
  noun: 'documentation and types of the dependencies, at the installed versions',
  icon: 'box',
  label: { en: 'Packages', ja: 'パッケージ' },
  purpose: { en: 'Documentation of the dependencies', ja: '依存パッケージの文書' },
  changes: 'seen',
  isDerived: true,
  sample: { root: 'project' },
}
