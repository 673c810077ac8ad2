import type { OptionsOfModule, Source } from '../source.ts'

export const files: Source<OptionsOfModule<typeof import('./config.ts')>> = {
  name: 'files',
  schema: () => import('./config.ts'),
  open: () => import('./open.ts'),
  icon: 'folder',
  label: { en: 'Files', ja: 'ファイル' },
  purpose: { en: 'Read, search and collect files', ja: 'ファイルを読む・探す・集める' },
  abilities: ({ watch = true }) => ({ watch }),
  changes: 'seen',
  folder: { option: 'root', isPlain: true },
  leftOut: () => import('./open.ts'),
  absence: 'the access rules of the mount deny the path that a link leads to',
  isDecoded: true,
  sample: { root: '.' },
}
