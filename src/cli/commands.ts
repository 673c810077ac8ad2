import type { Command } from 'commander'
import type { Io } from './terminal/io.ts'

export interface CommandModule {
  /** Gives a command its arguments, options, help and action. */
  define(command: Command, io: Io): void
}

export interface NamedCommand {
  readonly summary: string
  load(): Promise<CommandModule>
}

/** Every command. A module is loaded when its command is named, so that nobody waits for the others. */
export const commands: Readonly<Record<string, NamedCommand>> = {
  serve: {
    summary: 'serve folders, or what a configuration mounts, to MCP clients',
    load: () => import('./commands/serve.ts'),
  },
  ui: {
    summary: 'open the explorer in a browser: what is here, or on a server',
    load: () => import('./commands/ui.ts'),
  },
  tui: { summary: 'browse, search and pick resources in the terminal', load: () => import('./commands/tui.ts') },
  ls: { summary: 'list resources', load: () => import('./commands/ls.ts') },
  tree: { summary: 'show what there is as a tree, with sizes and tokens', load: () => import('./commands/tree.ts') },
  stat: { summary: 'tell what is known of a URI', load: () => import('./commands/stat.ts') },
  read: { summary: 'print what is at a URI', load: () => import('./commands/read.ts') },
  search: { summary: 'find resources by words', load: () => import('./commands/search.ts') },
  pack: { summary: 'assemble a context that fits a budget of tokens', load: () => import('./commands/pack.ts') },
  watch: { summary: 'print what changes, as it does', load: () => import('./commands/watch.ts') },
  templates: { summary: 'list resource templates', load: () => import('./commands/templates.ts') },
  complete: { summary: 'complete a variable of a template', load: () => import('./commands/complete.ts') },
  status: { summary: 'tell what is mounted, and how far it is indexed', load: () => import('./commands/status.ts') },
  check: { summary: 'check the configuration, and every source in it', load: () => import('./commands/check.ts') },
  doctor: { summary: 'find out why something does not work', load: () => import('./commands/doctor.ts') },
  trust: {
    summary: 'allow a configuration that was found to do more than read',
    load: () => import('./commands/trust.ts'),
  },
  why: { summary: 'tell why a file is served, or left out', load: () => import('./commands/why.ts') },
  access: { summary: 'explain who may see what', load: () => import('./commands/access.ts') },
  token: { summary: 'add, list and revoke tokens for clients over HTTP', load: () => import('./commands/token.ts') },
  auth: { summary: 'let hikidashi read what is yours elsewhere (gdrive)', load: () => import('./commands/auth.ts') },
  results: { summary: 'keep results of analyses', load: () => import('./commands/results.ts') },
  add: { summary: 'add hikidashi to a host, such as Claude Code or VS Code', load: () => import('./commands/add.ts') },
  remove: { summary: 'take hikidashi out of a host', load: () => import('./commands/remove.ts') },
  hosts: {
    summary: 'tell which hosts are here, and whether hikidashi is in them',
    load: () => import('./commands/hosts.ts'),
  },
  bundle: {
    summary: 'make a file from which hosts install hikidashi (mcpb)',
    load: () => import('./commands/bundle.ts'),
  },
  registry: {
    summary: 'describe hikidashi for the registry of MCP servers',
    load: () => import('./commands/registry.ts'),
  },
  init: { summary: 'write a hikidashi.json for a folder', load: () => import('./commands/init.ts') },
  completion: {
    summary: 'print a script that has a shell complete words',
    load: () => import('./commands/completion.ts'),
  },
}
