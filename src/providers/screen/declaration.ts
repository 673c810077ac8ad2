import type { OptionsOfModule, Source } from '../source.ts'
import { capturePrograms } from './programs.ts'

export const screen: Source<OptionsOfModule<typeof import('./config.ts')>> = {
  name: 'screen',
  schema: () => import('./config.ts'),
  open: () => import('./config.ts'),
  noun: 'displays',
  icon: 'image',
  label: { en: 'Screen', ja: '画面' },
  purpose: { en: 'Pictures of the screen', ja: '画面の画像' },
  programs: ({ program }) => ({
    names: program === undefined ? capturePrograms(process.platform) : [program],
    install: 'maim',
    option: 'program',
  }),
  isComputed: true,
  isDerived: true,
  isUnsearched: true,
  sample: { displays: [':0'] },
}
