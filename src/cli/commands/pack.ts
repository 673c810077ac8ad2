import { type Command, InvalidArgumentError, Option } from 'commander'
import { parseBudget } from '../../context/asked.ts'
import type { AssembleOptions, Pin } from '../../context/index.ts'
import type { Manifest } from '../../context/manifest.ts'
import type { Encoding } from '../../context/tokens.ts'
import { type Format, formats, type Level, levels, remoteLimits } from '../../context/types.ts'
import { isResourceError } from '../../core/errors.ts'
import { defined } from '../../core/kit/object.ts'
import type { Audience } from '../../core/provider.ts'
import type { View } from '../../core/view.ts'
import { answerHook, defaultHookWaitMs } from '../hosts/answer-hook.ts'
import { promptHooks } from '../hosts/hooks.ts'
import {
  countFileChanges,
  formatDifferences,
  formatExplanation,
  parseTextFile,
  waitForIndexes,
  writeTextFile,
} from '../operations/pack.ts'
import {
  addSourceOptions,
  type CommandSource,
  parseCount,
  type SourceOptions,
  withSource,
} from '../operations/source.ts'
import { CommandError, collectValues, exitCodes, helpExamples, usageError } from '../terminal/exit.ts'
import { type Io, pluralize } from '../terminal/io.ts'
import { createProgress, type Progress } from '../terminal/progress.ts'

interface PackOptions extends SourceOptions {
  readonly budget?: number
  readonly format?: Format
  readonly pin?: readonly string[]
  readonly basket?: string
  readonly exclude?: readonly string[]
  readonly tests: boolean
  readonly mount?: readonly string[]
  readonly encoding?: Encoding
  readonly audience?: Audience
  readonly halfLife?: number
  readonly reserve?: number
  readonly now?: number
  readonly output?: string
  readonly manifest?: string
  readonly against?: string
  readonly reuse?: string
  readonly explain?: true
  readonly fresh?: true
  readonly hook?: string
  readonly minScore?: number
  readonly wait: number
}

const otherwise = { budget: 32_000 }

export function define(command: Command, io: Io): void {
  command
    .description(
      `Writes the resources that help with a query into one text that fits a budget of tokens: whole resources, windows around
matches, outlines and links, best first. Without a query: only the pins, or else the resources with the highest priority.`,
    )
    .argument('[query...]', 'the question or task, in words')
    .option(
      '-b, --budget <tokens>',
      'the maximum number of tokens, such as 8000 or 32k; by default 32k, with --hook 1500',
      parseTokens,
    )
    .addOption(new Option('-f, --format <format>', 'the format; by default markdown').choices(formats))
    .option(
      '-p, --pin <uri>',
      'a required resource, or a path of this machine; :link, :outline, :windows or :full sets its level (repeatable)',
      collectValues,
    )
    .option('--basket <file>', 'pin the resources of this file, which the explorer or --manifest wrote')
    .option(
      '-x, --exclude <uri>',
      'leave out a resource; with a slash at its end, everything below it; with an asterisk, what the glob matches (repeatable)',
      collectValues,
    )
    .option('--no-tests', 'leave out tests, by their names')
    .option('--mount <address>', 'only resources of this mount (repeatable)', collectValues)
    .addOption(
      new Option('--encoding <name>', 'the encoding of tokens; by default o200k_base').choices([
        'o200k_base',
        'cl100k_base',
      ]),
    )
    .addOption(
      new Option('--audience <who>', 'the audience of resources; by default assistant').choices(['user', 'assistant']),
    )
    .option(
      '--half-life <time>',
      'the age at which the weight of recency has halved, such as 12h or 60d; by default 30d',
      parseAge,
    )
    .option('--reserve <share>', 'the share of the budget to leave free, from 0 to 0.5; by default 0.03', parseShare)
    .option('--now <time>', 'the time from which ages count, such as 2026-01-31T12:00:00Z; by default now', parseTime)
    .option('-o, --output <file>', 'write the context to a file')
    .option('--manifest <file>', 'write the list of the packed resources, with checksums, to a file')
    .option('--against <file>', 'print changes since this manifest was written; without a query, use its options')
    .option('--reuse <file>', 'keep the front of the context of this manifest, if that costs little, for prompt caches')
    .option('--fresh', 'wait until the index has every change so far')
    .option('--explain', 'print the reason for each resource, and the omitted resources')
    .addOption(
      new Option(
        '--hook <host>',
        'answer the hook of a host: read its JSON from stdin, and print a context for its prompt (see docs/hooks.md)',
      ).choices(Object.keys(promptHooks)),
    )
    .option('--min-score <share>', 'with --hook: the lowest score to print, from 0 to 1; by default 0.5', parseScore)
    .option('--wait <ms>', 'with --hook: answer within this time, or not at all', parseCount, defaultHookWaitMs)
  addSourceOptions(command)
    .addHelpText(
      ...helpExamples(`
  hikidashi pack how are cursors sealed --budget 8k
  hikidashi pack retry policy --format xml --explain -o context.xml
  hikidashi pack --pin src/core/uri.ts --pin README.md:outline
  hikidashi pack routing --remote owner/repo#v2       a repository that is not here
  hikidashi pack deploy --manifest context.json       and later
  hikidashi pack --against context.json               the same again, and the changes
  hikidashi pack deploy --reuse context.json          keeps the front for a prompt cache`),
    )
    .action((words: readonly string[], options: PackOptions) => pack(words.join(' '), options, io))
}

function parseTokens(value: string): number {
  const tokens = parseBudget(value) ?? 0
  if (tokens < 1) throw new InvalidArgumentError('Give a number of tokens, at least 1, such as 8000 or 32k.')
  return tokens
}

const units: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 }

function parseAge(value: string): number {
  const [, number, unit = 'd'] = /^(\d{1,9}(?:\.\d{1,6})?)([mhdw])?$/.exec(value.trim()) ?? []
  const age = Number(number) * (units[unit] ?? 0)
  if (!(age > 0)) throw new InvalidArgumentError('Give a duration above 0, such as 30d, 12h or 90m.')
  return age
}

function parseShare(value: string): number {
  const share = value.trim() === '' ? Number.NaN : Number(value)
  if (!(share >= 0 && share <= 0.5)) throw new InvalidArgumentError('Give a number from 0 to 0.5.')
  return share
}

function parseScore(value: string): number {
  const score = value.trim() === '' ? Number.NaN : Number(value)
  if (!(score >= 0 && score <= 1)) throw new InvalidArgumentError('Give a number from 0 to 1.')
  return score
}

function parseTime(value: string): number {
  const time = /^\d{4}-\d{2}-\d{2}/.test(value) ? Date.parse(value) : Number.NaN
  if (Number.isNaN(time)) throw new InvalidArgumentError('Give a time such as 2026-01-31 or 2026-01-31T12:00:00Z.')
  return time
}

async function pack(query: string, options: PackOptions, io: Io): Promise<void> {
  if (options.hook !== undefined) {
    const { hook: host, config, budget, minScore, wait: waitMs } = options
    return answerHook({ host, waitMs, ...defined({ config, budget, minScore }) })
  }
  // Faults of files are reported before a mount is opened.
  const { parseBasket, parseManifest, manifestFor, manifestDifferences } = await import('../../context/manifest.ts')
  const before = options.against === undefined ? undefined : await parseTextFile(options.against, parseManifest)
  const reused = options.reuse === undefined ? undefined : await parseTextFile(options.reuse, parseManifest)
  const basket = options.basket === undefined ? [] : await parseTextFile(options.basket, parseBasket)
  await withSource(options, io, async (source, log) => {
    if (source.catalog !== undefined) await waitForIndexes(source.catalog, io)
    const { testFileGlobs } = await import('../../context/tests.ts')
    const assembleOptions = askedBy(query, basket, options, before, source, testFileGlobs)
    const progress = createProgress(io, {
      ...{ what: 'resources read', done: 0 },
      ...{ besideOutput: true, writeLine: io.say },
    })
    const { assemble } = await import('../../context/index.ts')
    const { changes, known } = await countFileChanges(source.mounts, log)
    const assembled = await assemble(counted(source.view, progress), {
      ...assembleOptions,
      ...defined({ earlier: reused?.manifest }),
      changes,
      // No other caller uses local mounts, so many simultaneous reads delay nobody.
      limits: source.catalog === undefined ? remoteLimits : { concurrency: 32 },
    })
      .catch((error: unknown) => {
        throw toBudgetError(error)
      })
      .finally(progress.end)
    const { text, tokens, budget, items, notes } = assembled
    const manifest = manifestFor(assembleOptions, assembled)
    if (options.output === undefined) await io.out.write(text)
    else await writeTextFile(options.output, text)
    if (options.manifest !== undefined)
      await writeTextFile(
        options.manifest,
        `${JSON.stringify({ ...manifest, ...assembled.freshness }, undefined, 2)}\n`,
      )
    if (options.explain) io.say(formatExplanation(assembled, known, io.saysToTerminal))
    if (before !== undefined)
      io.say(formatDifferences(manifestDifferences(before, manifest), before.sha256, manifest.sha256))
    if (assembled.reusedPrefixTokens !== undefined)
      io.say(`${assembled.reusedPrefixTokens.toLocaleString('en')} tokens at the front are unchanged.`)
    for (const note of notes) io.say(`Note: ${note}`)
    if (items.length === 0) io.say('No resource that helps was found, or none fits into the budget.')
    else if (!options.explain && (io.saysToTerminal || options.output !== undefined))
      io.say(
        `${pluralize(items.length, 'resource')}, ${tokens.toLocaleString('en')} of ${budget.toLocaleString('en')} tokens. Why: --explain`,
      )
  })
}

/** Without a query and pins, the manifest `before` gives the options that are missing. */
function askedBy(
  query: string,
  basket: readonly Pin[],
  options: PackOptions,
  before: Manifest | undefined,
  { uriOf }: CommandSource,
  testFiles: readonly string[],
): AssembleOptions {
  const pins = [...(options.pin ?? []).map((pin) => pinIn(pin, uriOf)), ...basket]
  const isNew = query.trim() !== '' || pins.length > 0
  const { now: then, ...earlier } = isNew || before === undefined ? {} : optionsOf(before)
  const { budget, format, encoding, audience, halfLife, reserve, mount, exclude = [], tests, fresh } = options
  const excludes = [...exclude.map((text) => excludeIn(text, uriOf)), ...(tests ? [] : testFiles)]
  const now = options.now ?? (then === undefined ? Date.now() : Date.parse(then))
  const callOptions = {
    budget,
    format,
    encoding,
    audience,
    halfLife,
    reserve,
    fresh,
    mounts: mount?.map(uriOf),
    excludes: excludes.length === 0 ? undefined : excludes,
    query: query.trim() === '' ? undefined : query,
    pins: pins.length === 0 ? undefined : pins,
    pinsOnly: pins.length > 0 && query.trim() === '' ? true : undefined,
  }
  const members = Object.fromEntries(Object.entries(callOptions).filter(([, value]) => value !== undefined))
  return { ...otherwise, ...earlier, ...members, now }
}

/** For a manifest without options, its resources become the pins. */
function optionsOf(manifest: Manifest): Partial<Omit<AssembleOptions, 'now'>> & { readonly now?: string } {
  const { manifest: entries, tokens = 0, sha256: _, reusedPrefixTokens: __, ...options } = manifest
  if (options.pins !== undefined || options.budget !== undefined) return options
  const pins = entries.map(({ uri, level }) => ({ uri, level }))
  // Some of the resources may have grown, so twice as many tokens are allowed.
  return { ...options, pins, pinsOnly: true, budget: Math.max(otherwise.budget, 2 * tokens) }
}

/** A glob of paths on this machine, such as `src/*.ts`, becomes a glob of URIs. */
function excludeIn(text: string, uriOf: CommandSource['uriOf']): string {
  const asterisk = text.indexOf('*')
  if (asterisk === -1) return uriOf(text)
  if (!text.includes('/') || text.startsWith('**/') || /^[a-z][a-z0-9+.-]+:/i.test(text)) return text
  const start = text.lastIndexOf('/', asterisk) + 1
  return `${uriOf(start === 0 ? '.' : text.slice(0, start)).replace(/\/?$/, '/')}${text.slice(start)}`
}

function pinIn(text: string, uriOf: CommandSource['uriOf']): Pin {
  const colon = text.lastIndexOf(':')
  const level = levels.find((one): one is Level => one === text.slice(colon + 1))
  const uri = uriOf(level === undefined ? text : text.slice(0, colon))
  if (uri.endsWith('/'))
    throw usageError(
      `${text} is a directory, which cannot be pinned. Pin the resources in it, or name a whole mount with --mount.`,
    )
  return { uri, ...defined({ level }) }
}

function counted(view: View, progress: Progress): View {
  return {
    ...view,
    read: async (uri, options) => {
      const answer = await view.read(uri, options)
      progress.add(1)
      return answer
    },
  }
}

function toBudgetError(error: unknown): unknown {
  const isBudget = isResourceError(error, 'invalid') && error.detail.reason === 'budget'
  return isBudget ? new CommandError(exitCodes.budget, error.message) : error
}
