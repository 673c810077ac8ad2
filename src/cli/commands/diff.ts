import type { Command } from 'commander'
import { type DeltaMetadata, maxKeptText } from '../../core/earlier.ts'
import { defined } from '../../core/kit/object.ts'
import { metaKeys } from '../../core/meta.ts'
import type { ChangedResources, View } from '../../core/view.ts'
import { addSourceOptions, type SourceOptions, withSource, withSuggestion } from '../operations/source.ts'
import { CommandError, commandFailure, exitCodes, helpExamples, usageError } from '../terminal/exit.ts'
import { formatCount, type Io, writeJson } from '../terminal/io.ts'
import { displayUri } from '../terminal/text.ts'

interface DiffOptions extends SourceOptions {
  readonly since?: string
  readonly limit: string
  readonly json?: true
}

export function define(command: Command, io: Io): void {
  command
    .description(
      'Prints the unified diff of a resource since a version; without a URI, the resources that were created, updated or deleted since an earlier call.',
    )
    .argument('[uri]', 'a resource: a URI, or a path of this machine')
    .option('--since <version>', 'the version that you have; without a URI, the "since" of an earlier call')
    .option('--limit <changes>', 'the maximum number of changes', '100')
    .option('--json', 'print JSON')
  addSourceOptions(command)
    .addHelpText(
      ...helpExamples(`
  hikidashi diff README.md                     prints the current version
  hikidashi diff README.md --since VERSION     and later: the difference
  hikidashi diff                               names the current state
  hikidashi diff --since STATE                 and later: all that changed`),
    )
    .action((uri: string | undefined, options: DiffOptions) => diff(uri, options, io))
}

async function diff(argument: string | undefined, options: DiffOptions, io: Io): Promise<void> {
  const limit = Number(options.limit)
  if (!Number.isSafeInteger(limit) || limit < 1) throw usageError('--limit must be a whole number, at least 1.')
  await withSource(options, io, async ({ view, uriOf }) => {
    if (argument === undefined) await printChanges(view, { limit, ...defined({ since: options.since }) }, options, io)
    else await printDiff(view, uriOf(argument), options, io)
  })
}

async function printChanges(
  view: View,
  query: { readonly since?: string; readonly limit: number },
  { json }: DiffOptions,
  io: Io,
): Promise<void> {
  if (view.changed === undefined)
    throw commandFailure(
      'This command cannot list the changes of a server at --url or --command. If it is hikidashi, call its tool what_changed.',
    )
  const resources = await view.changed(query)
  if (json) return writeJson(io.out, resources)
  for (const line of formatChangedResources(resources)) await io.out.write(`${line}\n`)
  if (resources.unknown) throw new CommandError(exitCodes.notFound, tooOld(resources.since))
  if (resources.more > 0)
    io.say(`Not printed: ${formatCount(resources.more, 'more change')}. To see more, raise --limit.`)
  for (const address of resources.unavailable) io.say(`${address} does not answer now: its changes are reported later.`)
  io.say(`For the next call: --since ${resources.since}`)
}

function formatChangedResources({ created, updated, deleted }: ChangedResources): readonly string[] {
  const all = { created, updated, deleted }
  return Object.entries(all).flatMap(([word, some]) =>
    some.map(({ uri, before }) => `${word}  ${displayUri(uri)}${before === undefined ? '' : `  ${before}`}`),
  )
}

const tooOld = (since: string) => `The earlier state is too old or unknown. The current state is --since ${since}`

async function printDiff(view: View, uri: string, { since = '', json }: DiffOptions, io: Io): Promise<void> {
  const { contents } = await withSuggestion(uri, view.read(`${uri}?since=${encodeURIComponent(since)}`))
  const [content] = contents
  const delta = content?.meta?.[metaKeys.delta] as DeltaMetadata | undefined
  if (content === undefined || delta === undefined || !('text' in content) || delta.reason === 'not-text')
    throw commandFailure(
      `${uri} has no diff: it is not a single text of at most ${maxKeptText.toLocaleString('en')} characters, or its server is not hikidashi.`,
    )
  const { version, text } = content
  if (json) return writeJson(io.out, { uri, ...delta, ...defined({ version }), text })
  if (delta.reason === 'unknown')
    throw new CommandError(exitCodes.notFound, `The version is too old or unknown. The current version is ${version}`)
  if (since !== '')
    await io.out.write(delta.state === 'whole' ? `The whole text is shorter than a diff:\n${text}` : text)
  if (delta.state === 'unchanged') io.say('Nothing has changed.')
  io.say(`The current version: ${version}`)
}
