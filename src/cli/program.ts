import { Command } from 'commander'
import { packageVersion } from './operations/command-line.ts'
import { examples } from './terminal/exit.ts'
import { type Io, type Output, openFile, type ProcessIo } from './terminal/io.ts'
import { coloursFor, isColourful } from './terminal/text.ts'

/** The commands whose data `-o, --output FILE` writes into a file, besides the commands with such an option of their own. */
const offering = 'ls tree stat search watch templates complete status check doctor access hosts'.split(' ')

/** Input and output of a command whose data may go to a file. */
function createFileOutput(io: Io) {
  let out = io.out
  const current: Output = {
    get isTerminal() {
      return out.isTerminal
    },
    write: (data, options) => out.write(data, options),
  }
  const addOption = (command: Command): void => {
    for (const inner of command.commands) addOption(inner)
    if (command.commands.length > 0 || command.options.some(({ long }) => long === '--output')) return
    command.option('-o, --output <file>', 'write the output to a file')
    command.hook('preAction', (_, action) => {
      const { output } = action.opts<{ readonly output?: string }>()
      if (output !== undefined) out = openFile(output)
    })
  }
  return {
    io: { ...io, out: current },
    /** Adds the option to a command, after the other options of the command. */
    offer: (command: Command) => {
      if (offering.includes(command.name())) addOption(command)
    },
  }
}

interface CommandModule {
  /** Gives a command its arguments, options, help and action. */
  define(command: Command, io: Io): void
}

interface NamedCommand {
  readonly summary: string
  load(): Promise<CommandModule>
}

/** Every command. The module of a command is loaded when the command is named. */
export const commands: Readonly<Record<string, NamedCommand>> = {
  serve: {
    summary: 'serve folders, or the mounts of a configuration, to MCP clients',
    load: () => import('./commands/serve.ts'),
  },
  ui: {
    summary: 'open the explorer in a browser, for this folder or a server',
    load: () => import('./commands/ui.ts'),
  },
  tui: { summary: 'browse, search and pick resources in the terminal', load: () => import('./commands/tui.ts') },
  ls: { summary: 'list resources', load: () => import('./commands/ls.ts') },
  tree: {
    summary: 'show resources as a tree, with sizes and tokens',
    load: async () => ({ define: (await import('./commands/facts.ts')).defineTree }),
  },
  stat: {
    summary: 'show the metadata of a URI',
    load: async () => ({ define: (await import('./commands/facts.ts')).defineStat }),
  },
  read: { summary: 'print the content of a URI', load: () => import('./commands/read.ts') },
  search: { summary: 'find resources by words', load: () => import('./commands/search.ts') },
  pack: { summary: 'assemble a context that fits a budget of tokens', load: () => import('./commands/pack.ts') },
  watch: { summary: 'print changes as they happen', load: () => import('./commands/watch.ts') },
  templates: {
    summary: 'list resource templates',
    load: async () => ({ define: (await import('./commands/templates.ts')).defineTemplates }),
  },
  complete: {
    summary: 'complete a variable of a template',
    load: async () => ({ define: (await import('./commands/templates.ts')).defineComplete }),
  },
  status: {
    summary: 'show the mounts, and the progress of their index',
    load: async () => ({ define: (await import('./commands/health.ts')).defineStatus }),
  },
  check: { summary: 'check the configuration, and every source in it', load: () => import('./commands/check.ts') },
  doctor: {
    summary: 'find out why something does not work',
    load: async () => ({ define: (await import('./commands/health.ts')).defineDoctor }),
  },
  trust: {
    summary: 'trust a configuration that does more than read its folder',
    load: () => import('./commands/trust.ts'),
  },
  why: { summary: 'tell why a file is served or left out', load: () => import('./commands/why.ts') },
  access: { summary: 'explain who may see what', load: () => import('./commands/access.ts') },
  token: {
    summary: 'add, list and revoke tokens for clients over HTTP',
    load: async () => ({ define: (await import('./commands/credentials.ts')).defineToken }),
  },
  auth: {
    summary: 'let hikidashi read your files at a service (gdrive)',
    load: async () => ({ define: (await import('./commands/credentials.ts')).defineAuth }),
  },
  results: { summary: 'store results of analyses', load: () => import('./commands/results.ts') },
  add: {
    summary: 'add hikidashi to a host, such as Claude Code or VS Code',
    load: async () => ({ define: (await import('./commands/hosts.ts')).defineAdd }),
  },
  remove: {
    summary: 'remove hikidashi from a host',
    load: async () => ({ define: (await import('./commands/hosts.ts')).defineRemove }),
  },
  hosts: {
    summary: 'list the hosts on this machine, and whether hikidashi is in them',
    load: async () => ({ define: (await import('./commands/hosts.ts')).defineHosts }),
  },
  bundle: {
    summary: 'make a file from which hosts install hikidashi (mcpb)',
    load: async () => ({ define: (await import('./commands/publish.ts')).defineBundle }),
  },
  registry: {
    summary: 'describe hikidashi for the registry of MCP servers',
    load: async () => ({ define: (await import('./commands/publish.ts')).defineRegistry }),
  },
  init: { summary: 'write a hikidashi.json for a folder', load: () => import('./commands/init.ts') },
  completion: {
    summary: 'print a completion script for a shell',
    load: () => import('./commands/completion.ts'),
  },
}

/**
 * Creates the command line. Named commands have their options; the others only a summary.
 *
 * @param first The first word. If it is a command, all commands that are not named are left out.
 */
export async function createProgram(
  io: ProcessIo,
  isNamed: (name: string) => boolean,
  first?: string,
): Promise<Command> {
  const program = new Command('hikidashi')
    .description('Serves any data as Model Context Protocol resources.')
    .version(packageVersion(), '-V, --version')
    .helpOption('-h, --help', 'show this help')
    .exitOverride()
    .configureOutput({
      writeOut: (text) => void process.stdout.write(withHeadings(text, io.out.isTerminal)),
      outputError: (text) => io.complain(plainly(text)),
      getOutHasColors: () => isColourful(io.out.isTerminal),
    })
    .configureHelp({
      styleTitle: coloursFor(io.out.isTerminal).bold,
      // A text of several lines in the source is one paragraph.
      commandDescription: (one) => one.description().replace(/\s*\n\s*/g, ' '),
      subcommandDescription: (one) => (one.summary() || one.description()).replace(/\s*\n\s*/g, ' '),
    })
    .commandsGroup(otherCommands)
    .helpCommand('help [command]', 'show the help of a command')
    .showHelpAfterError('For help: hikidashi --help')
    .addHelpText(
      ...examples(`
  hikidashi ui                          look at this folder in a browser
  hikidashi add claude-code             let a host use it
  hikidashi serve . --http 8787         serve it at http://127.0.0.1:8787/mcp
  hikidashi tree --depth 2              the served resources, as a tree
  hikidashi read README.md              one resource
  hikidashi doctor                      find out why something does not work

Data goes to stdout, everything else to stderr. --json prints data for programs.`),
    )
  const isCommand = first !== undefined && Object.hasOwn(commands, first)
  const listed = isCommand ? inGroups.filter(([name]) => isNamed(name)) : inGroups
  for (const [name, { summary, load }] of listed) {
    const command = program.command(name).summary(summary).helpOption('-h, --help', 'show this help')
    command.helpGroup(groupOf(name))
    command.showHelpAfterError(`For help: hikidashi ${name} --help`)
    if (!isNamed(name)) continue
    const toFile = createFileOutput(io)
    const module = await load()
    module.define(command, toFile.io)
    toFile.offer(command)
  }
  return program
}

/** Makes the headings of a help bold on a terminal, also headings in our own texts. */
function withHeadings(text: string, isTerminal: boolean): string {
  return text.replace(/^(?:Examples|Exit codes):/gm, coloursFor(isTerminal).bold)
}

/** The commands under each heading of the help. */
const groups: Readonly<Record<string, readonly string[]>> = {
  'Look at resources:': ['ui', 'tui', 'ls', 'tree', 'stat', 'read', 'search', 'pack', 'watch', 'templates', 'complete'],
  'Serve resources to hosts:': ['init', 'serve', 'add', 'remove', 'hosts', 'bundle', 'registry'],
  'Find faults:': ['doctor', 'check', 'status', 'access', 'trust'],
}
const otherCommands = 'Other commands:'

/** The commands in the order of the help. */
const inGroups = [...Object.keys(groups), otherCommands].flatMap((group) =>
  Object.entries(commands).filter(([name]) => groupOf(name) === group),
)

function groupOf(name: string): string {
  return Object.keys(groups).find((group) => groups[group]?.includes(name)) ?? otherCommands
}

/** The names that other programs have for the commands here. */
const synonyms: Readonly<Record<string, string>> = {
  read: 'cat show get open',
  ls: 'list dir',
  search: 'find grep query',
  stat: 'info describe',
  serve: 'start run mount',
  watch: 'tail subscribe',
  doctor: 'diagnose',
  check: 'validate lint',
  pack: 'context',
  add: 'install',
  remove: 'uninstall',
  ui: 'browse explore',
  completion: 'completions',
}

/** The command that is meant by an unknown word, if another program has a command of that name. */
export function meantBy(word: string): string | undefined {
  return Object.keys(synonyms).find((command) => synonyms[command]?.split(' ').includes(word))
}

/** Returns the text for a call without a command: first steps for a person, the command to start for a host. */
export function welcome(isTerminal: boolean): string {
  const { bold } = coloursFor(isTerminal)
  const begin = isTerminal
    ? [`hikidashi ${packageVersion()} serves any data as Model Context Protocol resources. To begin:`]
    : ['hikidashi: no command is given. A host starts: hikidashi serve DIR. People begin with:']
  const first: readonly (readonly [string, string])[] = [
    ['hikidashi ui', 'look at this folder in a browser'],
    ['hikidashi add claude-code', 'let a host use it; to list hosts: hikidashi hosts'],
    ['hikidashi pack "what I ask"', 'collect the texts that help with a question, for any chat'],
  ]
  const lines = first.map(([command, what]) => `  ${bold(command.padEnd(29))}${what}`)
  return [...begin, '', ...lines, '', 'For all commands: hikidashi --help. To find faults: hikidashi doctor', ''].join(
    '\n',
  )
}

/** Rewrites messages of commander in plain words. */
function plainly(text: string): string {
  return text
    .trimEnd()
    .replace(/^error: /, '')
    .replace(/^command-argument value '(.*)' is invalid for argument '(.*?)'\. /s, "There is no $2 '$1'. ")
}
