#!/usr/bin/env node
import { Command, CommanderError } from 'commander'
import { exitCodeHelp, exitCodes, explain } from './exit.ts'
import { createIo, type Io } from './io.ts'
import { outputClosed } from './output.ts'
import { createSecrets, secretsInArguments, secretsInEnvironment } from './secrets.ts'
import { packageVersion } from './version.ts'

interface CommandModule {
  /** Gives a command its arguments, options, help and action. */
  define(command: Command, io: Io): void
}

/** Every command. A module is loaded when its command is named, so that nobody waits for the others. */
const commands: Readonly<Record<string, { readonly summary: string; load(): Promise<CommandModule> }>> = {
  serve: { summary: 'serve folders, or what a configuration mounts, to MCP clients', load: () => import('./serve.ts') },
  ls: { summary: 'list resources', load: () => import('./ls.ts') },
  read: { summary: 'print what is at a URI', load: () => import('./read.ts') },
  search: { summary: 'find resources by words', load: () => import('./search.ts') },
  watch: { summary: 'print what changes, as it does', load: () => import('./watch.ts') },
  templates: { summary: 'list resource templates', load: () => import('./templates.ts') },
  complete: { summary: 'complete a variable of a template', load: () => import('./complete.ts') },
  status: { summary: 'tell what is mounted, and how far it is indexed', load: () => import('./status.ts') },
  check: { summary: 'check the configuration, and every source in it', load: () => import('./check.ts') },
  access: { summary: 'explain who may see what', load: () => import('./access.ts') },
  token: { summary: 'add, list and revoke tokens for clients over HTTP', load: () => import('./token.ts') },
  auth: { summary: 'let hikidashi read what is yours elsewhere (gdrive)', load: () => import('./auth.ts') },
  results: { summary: 'keep results of analyses', load: () => import('./results.ts') },
  init: { summary: 'write a hikidashi.json for a folder', load: () => import('./init.ts') },
}

/** Runs a command line. Answers the exit code. */
async function run(words: readonly string[], io: Io): Promise<number> {
  const program = new Command('hikidashi')
    .description('Serves any data as Model Context Protocol resources.')
    .version(packageVersion(), '-V, --version')
    .exitOverride()
    .configureOutput({ outputError: (text) => io.say(`hikidashi: ${text.trimEnd().replace(/^error: /, '')}`) })
    .showHelpAfterError('How it is used: hikidashi --help')
    .addHelpText(
      'after',
      `
Examples:
  hikidashi serve .                     serve this folder to a host that starts hikidashi (stdio)
  hikidashi serve . --http 8787         serve it at http://127.0.0.1:8787/mcp
  hikidashi ls -r                       everything that is served
  hikidashi read README.md              one resource

Data goes to stdout, everything else to stderr. --json prints data for programs.
${exitCodeHelp}`,
    )
  for (const [name, { summary, load }] of Object.entries(commands)) {
    const command = program.command(name).summary(summary).helpOption('-h, --help', 'show this help')
    command.showHelpAfterError(`How it is used: hikidashi ${name} --help`)
    if (words.includes(name)) (await load()).define(command, io)
  }
  try {
    await program.parseAsync([...words], { from: 'user' })
    return exitCodes.ok
  } catch (error) {
    if (error === outputClosed) return exitCodes.ok
    // commander has printed what it has to say.
    if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.ok : exitCodes.usage
    const { message, exitCode } = explain(error)
    io.say(`hikidashi: ${message}`)
    return exitCode
  }
}

const words = process.argv.slice(2)
const secrets = createSecrets(() => [...secretsInArguments(words), ...secretsInEnvironment(process.env)])

const io = createIo(secrets)
// What nobody waited for, unless the command looks after it: Node would print all that it knows of it.
for (const event of ['uncaughtException', 'unhandledRejection'] as const)
  process.on(event, (error: unknown) => {
    if (process.listenerCount(event) > 1) return
    io.say(`hikidashi: ${explain(error).message}`)
    process.exit(exitCodes.failed)
  })

// Everything is written by now. What a library left open (a socket, a timer) does not hold up the end.
process.exit(await run(words, io))
