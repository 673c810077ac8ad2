import { Command } from 'commander'
import { commands } from './commands.ts'
import { packageVersion } from './operations/version.ts'
import { coloursFor, isColourful } from './terminal/colour.ts'
import { exitCodeHelp } from './terminal/exit.ts'
import type { ProcessIo } from './terminal/io.ts'
import { createFileOutput } from './terminal/to-file.ts'

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
    .showHelpAfterError('How it is used: hikidashi --help')
    .addHelpText(
      'after',
      `
Examples:
  hikidashi ui                          look at what is in this folder, in a browser
  hikidashi add claude-code             have a host use it
  hikidashi serve . --http 8787         serve it at http://127.0.0.1:8787/mcp
  hikidashi tree --depth 2              what is served, as a tree
  hikidashi read README.md              one resource
  hikidashi doctor                      find out why something does not work

Data goes to stdout, everything else to stderr. --json prints data for programs.
${exitCodeHelp}`,
    )
  const isCommand = first !== undefined && Object.hasOwn(commands, first)
  const listed = isCommand ? inGroups.filter(([name]) => isNamed(name)) : inGroups
  for (const [name, { summary, load }] of listed) {
    const command = program.command(name).summary(summary).helpOption('-h, --help', 'show this help')
    command.helpGroup(groupOf(name))
    command.showHelpAfterError(`How it is used: hikidashi ${name} --help`)
    if (!isNamed(name)) continue
    const toFile = createFileOutput(io)
    const module = await load()
    module.define(command, toFile.io)
    toFile.offer(command)
  }
  return program
}

/** Headings of a help stand out on a terminal: those that we write ourselves, too. */
function withHeadings(text: string, isTerminal: boolean): string {
  return text.replace(/^(?:Examples|Exit codes):/gm, coloursFor(isTerminal).bold)
}

/** Under which heading the help lists which commands. */
const groups: Readonly<Record<string, readonly string[]>> = {
  'Look at what is here:': [
    'ui',
    'tui',
    'ls',
    'tree',
    'stat',
    'read',
    'search',
    'pack',
    'watch',
    'templates',
    'complete',
  ],
  'Serve it to hosts:': ['init', 'serve', 'add', 'remove', 'hosts', 'bundle', 'registry'],
  'Find out what is wrong:': ['doctor', 'check', 'status', 'access', 'trust'],
}
const otherCommands = 'Other commands:'

/** The commands in the order of the help. */
const inGroups = [...Object.keys(groups), otherCommands].flatMap((group) =>
  Object.entries(commands).filter(([name]) => groupOf(name) === group),
)

function groupOf(name: string): string {
  return Object.keys(groups).find((group) => groups[group]?.includes(name)) ?? otherCommands
}

/** Names of other programs for the commands here. */
const synonyms: Readonly<Record<string, string>> = {
  cat: 'read',
  show: 'read',
  get: 'read',
  open: 'read',
  list: 'ls',
  dir: 'ls',
  find: 'search',
  grep: 'search',
  query: 'search',
  info: 'stat',
  describe: 'stat',
  start: 'serve',
  run: 'serve',
  mount: 'serve',
  tail: 'watch',
  subscribe: 'watch',
  diagnose: 'doctor',
  validate: 'check',
  lint: 'check',
  context: 'pack',
  install: 'add',
  uninstall: 'remove',
  browse: 'ui',
  explore: 'ui',
  completions: 'completion',
}

/** The command that is meant by a word that is none, where another program calls it that. */
export function meantBy(word: string): string | undefined {
  if (Object.hasOwn(commands, word) || !Object.hasOwn(synonyms, word)) return undefined
  const command = synonyms[word]
  return command !== undefined && Object.hasOwn(commands, command) ? command : undefined
}

/** Returns the text for a call without a command: first steps for a person, the command to start for a host. */
export function welcome(isTerminal: boolean): string {
  const { bold } = coloursFor(isTerminal)
  const begin = isTerminal
    ? [`hikidashi ${packageVersion()} serves any data as Model Context Protocol resources. To begin:`]
    : ['hikidashi: no command is given. A host starts: hikidashi serve DIR. What people begin with:']
  const first: readonly (readonly [string, string])[] = [
    ['hikidashi ui', 'look at what is in this folder, in a browser'],
    ['hikidashi add claude-code', 'have a host use it; which there are: hikidashi hosts'],
    ['hikidashi pack "what I ask"', 'put together what helps with a question, for any chat'],
  ]
  const lines = first.map(([command, what]) => `  ${bold(command.padEnd(29))}${what}`)
  return [
    ...begin,
    '',
    ...lines,
    '',
    'Every command: hikidashi --help. Why something does not work: hikidashi doctor',
    '',
  ].join('\n')
}

/** Returns what commander complains of in plain words. */
function plainly(text: string): string {
  return text
    .trimEnd()
    .replace(/^error: /, '')
    .replace(/^command-argument value '(.*)' is invalid for argument '(.*?)'\. /s, "There is no $2 '$1'. ")
}
