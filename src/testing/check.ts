import { requireProvider } from '../core/kit/required.ts'
import { comparePaths } from '../core/path.ts'
import type { Principal, Provider } from '../core/provider.ts'
import { checkTemplates, checkWatch } from './abilities.ts'
import { checkAborts } from './aborting.ts'
import { checkLeaving } from './leaving.ts'
import { checkEntries, checkListing, type Listed } from './listing.ts'
import { show } from './metadata.ts'
import { checkMissing, checkStat } from './missing.ts'
import type { PromiseId } from './promises.ts'
import { checkReading, type ExpectedEntry } from './reading.ts'
import { type Bounds, createRun, givenUp, type Problem, type Run, sample } from './run.ts'

/** Expected contents of a provider. Without it, the provider is checked against its own answers only. */
export interface Expectation {
  /** All entries that the provider lists, by path. Fields left out of an entry are not compared. */
  readonly entries?: Readonly<Record<string, ExpectedEntry>>
  /** Whether the provider may list more than `entries`. */
  readonly more?: boolean
  /** Paths without an entry, in addition to those that the suite generates. */
  readonly missing?: readonly string[]
}

export interface CheckOptions {
  /** Maximum number of entries to check, from the first on. Default 10,000. */
  readonly limit?: number
  /** Number of entries, sampled across the listing, to read, to `stat` and to resume the listing after. Default 24. */
  readonly samples?: number
  /** Time-out of one call or one step of a listing, in milliseconds. Default 10,000. */
  readonly timeoutMs?: number
  /** Maximum size of an entry that is read, in bytes. Default 8 MiB. */
  readonly maxBytes?: number
  /** Principal of the calls. */
  readonly principal?: Principal
  /** Aborts the check, which then rejects. */
  readonly signal?: AbortSignal
  /** Promises that this provider does not make, each with the reason. Problems with them are not reported. */
  readonly except?: Readonly<Partial<Record<PromiseId, string>>>
  /** Wrappers, by name. The suite checks everything again through each of them. */
  readonly through?: Readonly<Record<string, (inner: Provider) => Provider>>
}

export interface Report {
  /** Problems in the order of detection, at most 5 for each promise and wrapper. Empty when the provider keeps all promises. */
  readonly problems: readonly Problem[]
  /** Number of entries checked. With 0, the check proves little. */
  readonly examined: number
  /** Whether all entries were checked and no call was given up. */
  readonly complete: boolean
}

/**
 * Checks every promise of the Provider interface, against the provider's own answers and against the expectation. It only
 * reads, within the bounds of the options; the source must not change meanwhile.
 *
 * A promise that depends on a broken one is not checked: a listing in the wrong order is reported as that, and not also as one
 * that cannot be resumed.
 */
export async function checkProvider(
  provider: Provider,
  expectation: Expectation = {},
  options: CheckOptions = {},
): Promise<Report> {
  requireProvider('checkProvider(provider, expectation, options)', provider)
  const direct = await checkOne(provider, expectation, options)
  const problems = [...direct.problems]
  let complete = direct.complete
  for (const [through, wrap] of Object.entries(options.through ?? {})) {
    const report = await checkOne(wrap(provider), expectation, options)
    problems.push(...report.problems.map((problem) => ({ ...problem, through })))
    complete &&= report.complete
  }
  return { problems, examined: direct.examined, complete }
}

async function checkOne(provider: Provider, expectation: Expectation, options: CheckOptions): Promise<Report> {
  const run = createRun(provider, boundsOf(options))
  let listed: Listed | undefined
  let finished = false
  try {
    listed = await checkEntries(run)
    if (listed !== undefined) await checkAll(run, listed, expectation)
    finished = true
  } catch (error) {
    run.bounds.signal.throwIfAborted()
    if (error !== givenUp) throw error
  }
  return {
    problems: run.problems.filter((problem) => options.except?.[problem.promise] === undefined),
    examined: listed?.entries.length ?? 0,
    complete: finished && listed?.complete === true,
  }
}

async function checkAll(run: Run, listed: Listed, expectation: Expectation): Promise<void> {
  await checkListing(run, listed)
  await checkLeaving(run, listed)
  if (!run.broken('list-paths', 'list-files')) {
    const expected = new Map(Object.entries(expectation.entries ?? {}))
    if (expectation.entries !== undefined && !run.broken('list-stable'))
      checkPresence(run, listed, expected, expectation.more === true)
    const entries = new Map(listed.entries.map((entry) => [entry.path, entry]))
    const wanted = sample([...expected.keys()], run.bounds.samples * 4)
    const sampled = sample(listed.entries, run.bounds.samples)
    for (const path of new Set([...sampled.map((entry) => entry.path), ...wanted])) {
      const entry = entries.get(path)
      if (entry === undefined) continue
      await checkStat(run, entry)
      await checkReading(run, entry, expected.get(path))
    }
    await checkMissing(run, listed, expectation.missing ?? [])
  }
  await checkAborts(run, listed)
  await checkTemplates(run)
  await checkWatch(run)
}

function checkPresence(run: Run, listed: Listed, expected: ReadonlyMap<string, unknown>, more: boolean): void {
  const paths = new Set(listed.entries.map((entry) => entry.path))
  const last = listed.entries.at(-1)?.path ?? ''
  for (const path of expected.keys()) {
    // A path after the last entry within the limit may still exist.
    const known = listed.complete || comparePaths(path, last) <= 0
    if (known && !paths.has(path)) run.fail('expected', 'it is not listed', path)
  }
  if (more) return
  for (const path of paths) if (!expected.has(path)) run.fail('expected', 'it is listed, and should not be', path)
}

function boundsOf(options: CheckOptions): Bounds {
  return {
    limit: options.limit ?? 10_000,
    samples: options.samples ?? 24,
    timeoutMs: options.timeoutMs ?? 10_000,
    maxBytes: options.maxBytes ?? 8 * 1024 * 1024,
    principal: options.principal ?? { id: 'hikidashi-check', roles: [] },
    signal: options.signal ?? new AbortController().signal,
  }
}

/** A problem as one line of text. */
export function formatProblem({ promise, sentence, path, seen, through }: Problem): string {
  const where = path === undefined ? '' : ` at ${show(path)}`
  return `${promise}${through === undefined ? '' : ` (through ${through})`}: ${sentence} But${where}: ${seen.replace(/\.$/, '')}.`
}
