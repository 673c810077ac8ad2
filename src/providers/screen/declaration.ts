import type { OptionsIn, Source } from '../source.ts'

/** The programs that can capture a display. The first existing one is used. */
export function programsOf(platform: NodeJS.Platform): readonly string[] {
  if (platform === 'darwin') return ['/usr/sbin/screencapture']
  if (platform === 'win32') return ['powershell.exe']
  return ['maim', 'scrot']
}

export const screen: Source<OptionsIn<typeof import('./config.ts')>> = {
  name: 'screen',
  schema: () => import('./config.ts'),
  open: () => import('./config.ts'),
  noun: 'displays',
  icon: 'image',
  label: { en: 'Screen', ja: '画面' },
  programs: ({ program }) => ({
    names: program === undefined ? programsOf(process.platform) : [program],
    install: 'maim',
    option: 'program',
  }),
  isComputed: true,
  isDerived: true,
  isUnsearched: true,
  sample: { displays: [':0'] },
}
