import { Command } from 'commander'
import { packageVersion } from './operations/command-line.ts'
import { helpExamples } from './terminal/exit.ts'
import { type Io, type Output, openFileOutput, type ProcessIo } from './terminal/io.ts'
import { coloursFor, isColourful } from './terminal/text.ts'

/** These commands get the option `-o, --output FILE` here. A few others, such as `read`, define it themselves. */
const offering = 'ls tree stat grep search watch diff templates complete status check doctor access hosts'.split(' ')

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
      if (output !== undefined) out = openFileOutput(output)
    })
  }
  return {
    io: { ...io, out: current },
    /** Call it last, so that the help lists `--output` last. */
    offer: (command: Command) => {
      if (offering.includes(command.name())) addOption(command)
    },
  }
}

type Define = (command: Command, io: Io) => void

/** The module of a command is loaded when the command is used. */
export const commands: Readonly<Record<string, readonly [summary: string, load: () => Promise<Define>]>> = {
  serve: [
    'serve folders, or the mounts of a configuration, to MCP clients',
    async () => (await import('./commands/serve.ts')).define,
  ],
  ui: [
    'open the explorer in a browser, for this folder or a server',
    async () => (await import('./commands/ui.ts')).define,
  ],
  ls: ['list resources', async () => (await import('./commands/ls.ts')).define],
  tree: [
    'show resources as a tree, with sizes and tokens',
    async () => (await import('./commands/facts.ts')).defineTree,
  ],
  stat: ['show the metadata of a URI', async () => (await import('./commands/facts.ts')).defineStat],
  read: ['print the content of a URI', async () => (await import('./commands/read.ts')).define],
  grep: ['find lines of one resource by a pattern', async () => (await import('./commands/grep.ts')).define],
  search: ['find resources by words', async () => (await import('./commands/search.ts')).define],
  pack: ['assemble a context that fits a budget of tokens', async () => (await import('./commands/pack.ts')).define],
  diff: ['print what changed since a version', async () => (await import('./commands/diff.ts')).define],
  watch: ['print changes as they happen', async () => (await import('./commands/watch.ts')).define],
  templates: ['list resource templates', async () => (await import('./commands/templates.ts')).defineTemplates],
  complete: ['complete a variable of a template', async () => (await import('./commands/templates.ts')).defineComplete],
  status: [
    'show the mounts, and the progress of their index',
    async () => (await import('./commands/health.ts')).defineStatus,
  ],
  check: ['check the configuration, and every source in it', async () => (await import('./commands/check.ts')).define],
  doctor: ['find out why something does not work', async () => (await import('./commands/health.ts')).defineDoctor],
  trust: [
    'trust a configuration that does more than read its folder',
    async () => (await import('./commands/trust.ts')).define,
  ],
  why: ['tell why a file is served or left out', async () => (await import('./commands/why.ts')).define],
  access: ['explain the access of a caller to a URI', async () => (await import('./commands/access.ts')).define],
  token: [
    'add, list and revoke tokens for clients over HTTP',
    async () => (await import('./commands/credentials.ts')).defineToken,
  ],
  auth: [
    'let hikidashi read your files at a service (gdrive)',
    async () => (await import('./commands/credentials.ts')).defineAuth,
  ],
  audit: ['print records of the audit log', async () => (await import('./commands/audit.ts')).define],
  events: ['show the deliveries of events to clients', async () => (await import('./commands/events.ts')).define],
  results: ['store results of analyses', async () => (await import('./commands/results.ts')).define],
  add: [
    'add hikidashi to a host, such as Claude Code or VS Code',
    async () => (await import('./commands/hosts.ts')).defineAdd,
  ],
  remove: ['remove hikidashi from a host', async () => (await import('./commands/hosts.ts')).defineRemove],
  hosts: [
    'list the hosts that hikidashi knows, and whether it is in them',
    async () => (await import('./commands/hosts.ts')).defineHosts,
  ],
  bundle: [
    'make a file from which hosts install hikidashi (mcpb)',
    async () => (await import('./commands/publish.ts')).defineBundle,
  ],
  registry: [
    'describe hikidashi for the registry of MCP servers',
    async () => (await import('./commands/publish.ts')).defineRegistry,
  ],
  init: ['write a hikidashi.json for a folder', async () => (await import('./commands/init.ts')).define],
  completion: ['print a completion script for a shell', async () => (await import('./commands/completion.ts')).define],
}

/**
 * @param isNamed Tells for which commands to load the options. The others have only a summary.
 * @param first The first word of the command line. If it is a command, commands that are not named are left out.
 */
export async function createProgram(
  io: ProcessIo,
  isNamed: (name: string) => boolean,
  first?: string,
): Promise<Command> {
  const program = new Command('hikidashi')
    .description('Serves any data as Model Context Protocol resources.')
    .version(
      packageVersion(),
      '-V, --version',
      'print the version; with --check, ask the registry of npm for the newest one',
    )
    .helpOption('-h, --help', 'show this help')
    .exitOverride()
    .configureOutput({
      writeOut: (text) => void process.stdout.write(withHeadings(text, io.out.isTerminal)),
      outputError: (text) => io.complain(plainly(text)),
      getOutHasColors: () => isColourful(io.out.isTerminal),
    })
    .configureHelp({
      styleTitle: coloursFor(io.out.isTerminal).bold,
      // The lines of a long description in the source are one paragraph.
      commandDescription: (one) => one.description().replace(/\s*\n\s*/g, ' '),
      subcommandDescription: (one) => (one.summary() || one.description()).replace(/\s*\n\s*/g, ' '),
    })
    .commandsGroup(otherCommands)
    .helpCommand('help [command]', 'show the help of a command')
    .showHelpAfterError('For help: hikidashi --help')
    .addHelpText(
      ...helpExamples(`
  hikidashi ui                          look at this folder in a browser
  hikidashi add claude-code             let a host use it
  hikidashi serve . --http 8787         serve it at http://127.0.0.1:8787/mcp
  hikidashi tree --depth 2              the served resources, as a tree
  hikidashi read README.md              one resource
  hikidashi doctor                      find out why something does not work

Data goes to stdout, everything else to stderr. --json prints data for programs.`),
    )
  const isCommand = first !== undefined && Object.hasOwn(commands, first)
  const visibleGroups = isCommand ? inGroups.filter(([name]) => isNamed(name)) : inGroups
  for (const [name, [summary, load]] of visibleGroups) {
    const command = program.command(name).summary(summary).helpOption('-h, --help', 'show this help')
    command.helpGroup(groupOf(name))
    command.showHelpAfterError(`For help: hikidashi ${name} --help`)
    if (!isNamed(name)) continue
    const toFile = createFileOutput(io)
    const define = await load()
    define(command, toFile.io)
    for (const inner of command.commands) inner.showHelpAfterError(`For help: hikidashi ${name} ${inner.name()} --help`)
    toFile.offer(command)
  }
  return program
}

function withHeadings(text: string, isTerminal: boolean): string {
  return text.replace(/^(?:Examples|Exit codes):/gm, coloursFor(isTerminal).bold)
}

const groups: Readonly<Record<string, readonly string[]>> = {
  'Look at resources:': [
    'ui',
    'ls',
    'tree',
    'stat',
    'read',
    'grep',
    'search',
    'pack',
    'watch',
    'diff',
    'templates',
    'complete',
  ],
  'Serve resources to hosts:': ['init', 'serve', 'add', 'remove', 'hosts', 'bundle', 'registry'],
  'Find faults:': ['doctor', 'check', 'status', 'why', 'access', 'trust'],
}
const otherCommands = 'Other commands:'

const inGroups = [...Object.keys(groups), otherCommands].flatMap((group) =>
  Object.entries(commands).filter(([name]) => groupOf(name) === group),
)

function groupOf(name: string): string {
  return Object.keys(groups).find((group) => groups[group]?.includes(name)) ?? otherCommands
}

/** Names of similar commands in other programs, separated by spaces. */
const synonyms: Readonly<Record<string, string>> = {
  read: 'cat show get open',
  ls: 'list dir',
  grep: 'rg egrep',
  search: 'find query',
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

export function commandForSynonym(word: string): string | undefined {
  return Object.keys(synonyms).find((command) => synonyms[command]?.split(' ').includes(word))
}

/** Error messages for commands that other versions have. */
export const replacementHints: Readonly<Record<string, string>> = {
  tui: `The command 'tui' does not exist. hikidashi ui shows the resources in a browser. In a terminal: hikidashi ls, tree, search and read, and pack for a context.`,
}

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

function plainly(text: string): string {
  return text
    .trimEnd()
    .replace(/^error: /, '')
    .replace(/^command-argument value '(.*)' is invalid for argument '(.*?)'\. /s, "There is no $2 '$1'. ")
}
