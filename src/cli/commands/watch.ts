import type { Command } from 'commander'
import { withResolvers } from '../../core/kit/abort.ts'
import type { Subscription, ViewChange } from '../../core/view.ts'
import {
  addSourceOptions,
  type CommandSource,
  nearestUri,
  type SourceOptions,
  withSource,
} from '../operations/source.ts'
import { existsAt } from '../operations/stat-find.ts'
import { CommandError, commandFailure, exitCodeHelp, exitCodes, installStopHandlers } from '../terminal/exit.ts'
import { type Io, pluralize } from '../terminal/io.ts'
import { displayUri } from '../terminal/text.ts'

interface WatchOptions extends SourceOptions {
  readonly list?: true
  readonly json?: true
}

export function define(command: Command, io: Io): void {
  command
    .description(
      'Prints a line for each change, until Ctrl-C: "changed  URI" for the changed resource, or for its directory if the source tells no more. Without URIs it watches every mount. Changes while a server does not answer are not known: when it answers again, everything counts as changed.',
    )
    .argument('[uri...]', 'resources and directories: URIs, or paths of this machine')
    .option('--list', 'also print "listed" when resources come or go')
    .option('--json', 'print a line of JSON for each change: { "time", "uri" } or { "time", "listed": true }')
  addSourceOptions(command)
    .addHelpText(
      'after',
      `
Examples:
  hikidashi watch                                       all resources
  hikidashi watch docs README.md                        a folder and a file here
  hikidashi watch --list --url http://127.0.0.1:8787/mcp
  hikidashi watch src --json | while read -r line; do npm test; done
${exitCodeHelp} With watch, 4 also means: none of the URIs can be watched.`,
    )
    .action((uris: readonly string[], options: WatchOptions) => watch(uris, options, io))
}

async function watch(names: readonly string[], options: WatchOptions, io: Io): Promise<void> {
  await withSource(options, io, async (source, log) => {
    const printer = createPrinter(io, options.json === true)
    const subscription = source.view.subscribe?.(printer.add)
    if (subscription === undefined) throw nothingFound('No mount reports changes.')
    // Neither watches nor the wait for a server keep a process alive.
    const alive = setInterval(() => {}, 1_000_000_000)
    const stop = installStopHandlers(log)
    try {
      const running = subscribeToChanges(subscription, names, options, source, io).then(
        () => new Promise<never>(() => {}),
      )
      const end = await Promise.race([running, stop.stopped, source.over, printer.failure])
      if (end !== undefined) throw commandFailure(end.message)
    } finally {
      clearInterval(alive)
      stop.done()
      subscription.close()
    }
  })
}

async function subscribeToChanges(
  subscription: Subscription,
  names: readonly string[],
  { list }: WatchOptions,
  { view, uriOf }: CommandSource,
  io: Io,
): Promise<void> {
  const targets = names.length === 0 ? (await view.mounts()).map(({ uri }) => uri) : names.map(uriOf)
  const uris = [...new Set(targets)]
  const watchedUris = new Set(uris.length === 0 ? [] : await subscription.add(uris))
  const isListed = list === true && (await subscription.addList())
  if (watchedUris.size === 0 && !isListed) {
    const [only = '', ...others] = uris
    const suggestion = others.length === 0 ? await nearestUri(view, only) : undefined
    throw nothingFound(`No changes can be reported for ${listOf(uris, list === true)}.`, suggestion)
  }
  const unheard = uris.filter((uri) => !watchedUris.has(uri))
  // Some mounts, such as a search, cannot be watched. That is an error only for URIs that the user named.
  if (names.length === 0 && unheard.length > 0)
    io.say(`These mounts report no changes, so they are not watched: ${unheard.join(', ')}`)
  else for (const uri of unheard) io.say(`Not watched: ${uri}. It does not exist, or cannot be watched.`)
  for (const uri of names.length === 0 ? [] : watchedUris)
    if (!(await existsAt(view, uri).catch(() => true)))
      io.say(`Nothing is at ${uri} now, or you may not see it. It is reported when it appears.`)
  if (list && !isListed) io.say('Not watched: the list, because no mount reports its changes.')
  const what = [
    ...(watchedUris.size > 0 ? [pluralize(watchedUris.size, 'URI')] : []),
    ...(isListed ? ['the list'] : []),
  ]
  io.say(`Watching ${what.join(' and ')}. Ctrl-C ends it.`)
}

function nothingFound(message: string, suggestion?: string): CommandError {
  const advice = suggestion === undefined ? 'To list the resources: hikidashi ls' : `Did you mean ${suggestion} ?`
  return new CommandError(exitCodes.notFound, `${message} ${advice}`)
}

const maxNamed = 5

function listOf(uris: readonly string[], list: boolean): string {
  const rest = uris.length - maxNamed
  const names = [...uris.slice(0, maxNamed), ...(rest > 0 ? [`${rest} more`] : []), ...(list ? ['the list'] : [])]
  return names.join(', ') || 'anything'
}

function changedIn(uri: string, below: readonly string[]): readonly string[] {
  const prefix = uri.endsWith('/') ? uri : `${uri}/`
  const uris = below.filter((one) => one.startsWith(prefix))
  return uris.length === 0 ? [uri] : uris
}

/** A URI that changes again before it is printed is printed once. */
function createPrinter({ out }: Io, json: boolean) {
  /** Time of each change, by URI. The empty key stands for the list. */
  const waiting = new Map<string, string>()
  let isPrinting = false
  const { promise: failure, reject: fail } = withResolvers<never>()
  // `failure` is awaited later. Without a handler, a rejection before that would end the process.
  failure.catch(() => {})

  const lineOf = (uri: string, time: string): string => {
    if (json) return JSON.stringify(uri === '' ? { time, listed: true } : { time, uri })
    return uri === '' ? 'listed' : `changed  ${displayUri(uri, out.isTerminal)}`
  }
  const print = async (): Promise<void> => {
    isPrinting = true
    while (waiting.size > 0) {
      const lines = [...waiting].map(([uri, time]) => `${lineOf(uri, time)}\n`)
      waiting.clear()
      await out.write(lines.join(''))
    }
    isPrinting = false
  }

  return {
    add: ({ uris, listed, below = [] }: ViewChange) => {
      const time = new Date().toISOString()
      const changedUris = uris.flatMap((uri) => changedIn(uri, below))
      for (const uri of [...changedUris, ...(listed ? [''] : [])]) waiting.set(uri, waiting.get(uri) ?? time)
      if (!isPrinting) print().catch(fail)
    },
    failure,
  }
}
