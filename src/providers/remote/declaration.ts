import type { OptionsOfModule, Source } from '../source.ts'

export const remote: Source<OptionsOfModule<typeof import('./config.ts')>> = {
  name: 'remote',
  schema: () => import('./config.ts'),
  open: () => import('./config.ts'),
  noun: 'server',
  label: { en: 'Server', ja: 'サーバー' },
  purpose: { en: 'Resources of another MCP server', ja: '別の MCP サーバーのリソース' },
  abilities: ({ prompts = true, tools = false }) => ({ watch: true, prompts: prompts && 'separate', tools }),
  programs: ({ command }) => (command === undefined ? undefined : { names: [command], option: 'command' }),
}
