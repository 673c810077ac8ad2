import type { OptionsOfModule, Source } from '../source.ts'

export const prompts: Source<OptionsOfModule<typeof import('./config.ts')>> = {
  name: 'prompts',
  schema: () => import('./config.ts'),
  open: () => import('./open.ts'),
  icon: 'text',
  label: { en: 'Prompts', ja: 'プロンプト' },
  purpose: { en: 'Prompts to fill in and use', ja: '値を入れて使うプロンプト' },
  abilities: ({ watch = true }) => ({ watch, prompts: true }),
  changes: 'seen',
  folder: { option: 'root' },
  leftOut: () => import('./open.ts'),
  absence: 'the provider "prompts" serves only files that are prompts',
  isDecoded: true,
  sample: { root: 'prompts' },
}
