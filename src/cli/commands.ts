import type { Command } from 'commander'
import type { Io } from './io.ts'

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
  serve: { summary: 'serve folders, or what a configuration mounts, to MCP clients', load: () => import('./serve.ts') },
  ui: { summary: 'open the explorer in a browser: what is here, or on a server', load: () => import('./ui.ts') },
  tui: { summary: 'browse, search and pick resources in the terminal', load: () => import('./tui.ts') },
  ls: { summary: 'list resources', load: () => import('./ls.ts') },
  tree: { summary: 'show what there is as a tree, with sizes and tokens', load: () => import('./tree.ts') },
  stat: { summary: 'tell what is known of a URI', load: () => import('./stat.ts') },
  read: { summary: 'print what is at a URI', load: () => import('./read.ts') },
  search: { summary: 'find resources by words', load: () => import('./search.ts') },
  pack: { summary: 'assemble a context that fits a budget of tokens', load: () => import('./pack.ts') },
  watch: { summary: 'print what changes, as it does', load: () => import('./watch.ts') },
  templates: { summary: 'list resource templates', load: () => import('./templates.ts') },
  complete: { summary: 'complete a variable of a template', load: () => import('./complete.ts') },
  status: { summary: 'tell what is mounted, and how far it is indexed', load: () => import('./status.ts') },
  check: { summary: 'check the configuration, and every source in it', load: () => import('./check.ts') },
  doctor: { summary: 'find out why something does not work', load: () => import('./doctor.ts') },
  trust: { summary: 'allow a configuration that was found to do more than read', load: () => import('./trust.ts') },
  why: { summary: 'tell why a file is served, or left out', load: () => import('./why.ts') },
  access: { summary: 'explain who may see what', load: () => import('./access.ts') },
  token: { summary: 'add, list and revoke tokens for clients over HTTP', load: () => import('./token.ts') },
  auth: { summary: 'let hikidashi read what is yours elsewhere (gdrive)', load: () => import('./auth.ts') },
  results: { summary: 'keep results of analyses', load: () => import('./results.ts') },
  add: { summary: 'add hikidashi to a host, such as Claude Code or VS Code', load: () => import('./add.ts') },
  remove: { summary: 'take hikidashi out of a host', load: () => import('./remove.ts') },
  hosts: { summary: 'tell which hosts are here, and whether hikidashi is in them', load: () => import('./hosts.ts') },
  bundle: { summary: 'make a file from which hosts install hikidashi (mcpb)', load: () => import('./bundle.ts') },
  registry: { summary: 'describe hikidashi for the registry of MCP servers', load: () => import('./registry.ts') },
  init: { summary: 'write a hikidashi.json for a folder', load: () => import('./init.ts') },
  completion: { summary: 'print a script that has a shell complete words', load: () => import('./completion.ts') },
}
