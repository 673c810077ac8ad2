import type { OptionsOfModule, Source } from '../source.ts'

export const git: Source<OptionsOfModule<typeof import('./config.ts')>> = {
  name: 'git',
  schema: () => import('./config.ts'),
  open: () => import('./open.ts'),
  noun: 'history',
  icon: 'history',
  label: { en: 'History', ja: '履歴' },
  purpose: { en: 'Commits: authors, dates and changes', ja: '誰がいつ何を変更したか' },
  abilities: ({ watch = true }) => ({ watch }),
  programs: ({ git = 'git' }) => ({ names: [git], install: 'git', option: 'git' }),
  changes: 'seen',
  isDerived: true,
  folder: { option: 'repository', prefix: 'HEAD/' },
  absence: 'the last commit has no such file',
  // Pages of a history are not files on a forge.
  isUnlinked: (path) => /^(?:branches|tags|log|status|commits|diff|blame)(?:\/|$)/.test(path),
  sample: { repository: '.' },
}
