import { type Command, InvalidArgumentError, Option } from 'commander'
import { searchesOf } from '../../config/plan.ts'
import type { Catalog } from '../../core/catalog.ts'
import {
  type FoundHit,
  type FoundQuery,
  idleNote,
  parseSearchAnswer,
  type SearchAnswer,
  type SearchMount,
  splitAtMarks,
  staleNote,
} from '../../core/search-answer.ts'
import type { View } from '../../core/view.ts'
import { waitForIndex } from '../operations/indexing.ts'
import { readResourceText, searchMountsOf } from '../operations/search-mounts.ts'
import { addSourceOptions, type SourceOptions, withSource } from '../operations/source.ts'
import { commandFailure, helpExamples, usageError } from '../terminal/exit.ts'
import { type Io, writeJson } from '../terminal/io.ts'
import { type Colours, coloursFor, displayUri, escapeLines, escapeText } from '../terminal/text.ts'

interface SearchOptions extends SourceOptions, Omit<FoundQuery, 'query'> {
  readonly at?: string
  readonly json?: true
  readonly fresh?: true
}

export function define(command: Command, io: Io): void {
  command
    .description(
      `Finds resources by words, if a search is mounted. "Quoted words" must occur exactly, if at most two other words are
given. Prints the best hits first, each with a URI that opens the found part. It first indexes new documents, unless a running server
does that or the index is less than 30 seconds old.`,
    )
    .argument('<query...>', 'the words to find')
    .option('--at <address>', 'the search to use, if several are mounted')
    .option('--mount <address>', 'only resources of this mount')
    .option('--mime <type>', 'only resources of this MIME type: text/markdown, or text/* for all texts')
    .option('--since <when>', 'only resources modified since: 2026-01-31, or 7d for the last week')
    .option('--min-priority <number>', 'only resources of at least this priority, from 0 to 1', parseNumber)
    .addOption(new Option('--audience <who>', 'only resources for this audience').choices(['user', 'assistant']))
    .option('--path <glob>', 'only resources whose path in their mount matches: "guides/**/*.md"')
    .option('--limit <hits>', 'the number of hits, from 1 to 100; by default 20', parseNumber)
    .option('--after <hits>', 'skip this many hits', parseNumber)
    .option('--fresh', 'wait until the index has every change so far, even if it is less than 30 seconds old')
    .option('--json', 'print the answer as JSON')
  addSourceOptions(command)
    .addHelpText(
      ...helpExamples(`
  hikidashi search how to deploy
  hikidashi search '"connection refused"' --mime text/markdown --since 30d
  hikidashi search 設計 --url http://127.0.0.1:8787/mcp --json`),
    )
    .action((words: readonly string[], options: SearchOptions) => search(words.join(' '), options, io))
}

function parseNumber(value: string): number {
  const number = value.trim() === '' ? Number.NaN : Number(value)
  if (!Number.isFinite(number)) throw new InvalidArgumentError('Give a number.')
  return number
}

async function search(query: string, options: SearchOptions, io: Io): Promise<void> {
  if (query.trim() === '') throw usageError('The query is empty. Give at least one word.')
  await withSource(options, io, async ({ view, catalog }) => {
    const searchMount = await searchMountFor(view, options.at)
    const isRecent = catalog !== undefined && (await indexed(catalog, searchMount, options.fresh === true, io))
    const { limit, mount, mime, since, minPriority, audience, path, after, fresh } = options
    const filters = Object.entries({ limit, mount, mime, since, minPriority, audience, path, after, fresh })
    const rest: Omit<FoundQuery, 'query'> = Object.fromEntries(filters.filter(([, value]) => value !== undefined))
    const uri = searchMount.uriOf({ query, ...rest })
    const answer = parseSearchAnswer(await readResourceText(view, uri))
    if (answer === undefined)
      throw commandFailure(
        `The mount ${searchMount.address} does not answer like a search. Check that its provider is "search".`,
      )
    // A server of an earlier version ignores `fresh`, and its answer does not have this member.
    if (fresh && answer.fresh === undefined) io.say(`Note: ${staleNote}`)
    if (options.json) return writeJson(io.out, answer)
    if (answer.fallback !== undefined) io.say(answer.fallback)
    await io.out.write(formatFound(answer, coloursFor(io.out.isTerminal)), { isStyled: true })
    // The age of a recent index has been printed, so the note that nothing is being indexed is left out.
    for (const note of answer.notes) if (!isRecent || note !== idleNote) io.say(`Note: ${note}`)
    if (answer.hits.length === 0) {
      const mountAddress = mount?.replace(/\/$/, '')
      const isMissing =
        mountAddress !== undefined && !(await view.mounts()).some(({ uri }) => uri.replace(/\/$/, '') === mountAddress)
      io.say(
        `Nothing was found.${isMissing ? ` The mount ${mount} does not exist. To list the mounts: hikidashi status` : ''}`,
      )
    }
    if (answer.next !== undefined) io.say(`There are more hits: --after ${answer.next}`)
  })
}

async function searchMountFor(view: View, at: string | undefined): Promise<SearchMount> {
  const all = await searchMountsOf(view)
  const mounts = at === undefined ? all : all.filter(({ address }) => address === at.replace(/\/$/, ''))
  const [first] = mounts
  const names = all.map(({ address }) => address)
  if (first === undefined && at !== undefined && all.length > 0)
    throw usageError(`No search is mounted at ${at}. There is one at: ${names.join(', ')}.`)
  if (first === undefined)
    throw commandFailure(
      'No search is mounted. Add one: "search://all": { "provider": "search", "over": ["ADDRESS OF A MOUNT"] }.',
    )
  if (mounts.length > 1) throw usageError(`Several searches are mounted. Give --at ${names.join(', or --at ')}.`)
  return first
}

/** Maximum age, in milliseconds, of an index that is searched without comparing it with the files first. */
const trustedAgeMs = 30_000

/** Resolves to true if the index is recent, and so was not updated. */
async function indexed(catalog: Catalog, { address }: SearchMount, fresh: boolean, io: Io): Promise<boolean> {
  const mount = searchesOf(catalog).find((one) => one.address.replace(/\/$/, '') === address)
  if (mount === undefined) return false
  const age = Date.now() - ((await mount.provider.currentAt()) ?? 0)
  if (!fresh && age >= 0 && age <= trustedAgeMs) {
    io.say(`The index is ${Math.ceil(age / 1000)} s old. To compare it with every file first: --fresh`)
    return true
  }
  await waitForIndex(mount.provider, io)
  return false
}

function formatFound({ hits }: SearchAnswer, colours: Colours): string {
  return hits.map((hit) => `${formatHit(hit, colours)}\n`).join('\n')
}

function formatHit(hit: FoundHit, { bold, mark }: Colours): string {
  const titles = [hit.title, hit.heading].filter((text) => text !== undefined && text !== '')
  const title = [...new Set(titles)].map((text) => escapeText(text ?? '')).join(' · ')
  // Each piece is escaped separately, so that no text can end a mark.
  const snippet = splitAtMarks(hit.snippet).map(({ text, marked }) => {
    const lines = escapeLines(text).split('\n')
    return lines.map((line) => (marked && line !== '' ? mark(line) : line)).join('\n')
  })
  const body = snippet
    .join('')
    .split('\n')
    .map((line) => `    ${line}`.trimEnd())
    .filter((line) => line !== '')
  const facts = [...(title === '' ? [] : [bold(title)]), ...(hit.link === undefined ? [] : [escapeText(hit.link)])]
  return [displayUri(hit.uri), ...facts.map((line) => `  ${line}`), ...body].join('\n')
}
