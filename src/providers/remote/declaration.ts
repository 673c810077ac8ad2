import type { OptionsIn, Source } from '../source.ts'

export const remote: Source<OptionsIn<typeof import('./config.ts')>> = {
  name: 'remote',
  schema: () => import('./config.ts'),
  open: () => import('./config.ts'),
  noun: 'server',
  abilities: ({ prompts = true, tools = false }) => ({ watch: true, prompts: prompts && 'separate', tools }),
  programs: ({ command }) => (command === undefined ? undefined : { names: [command], option: 'command' }),
}
