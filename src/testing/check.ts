import { readdirSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { requireProvider } from '../core/kit/object.ts'
import { comparePaths } from '../core/path.ts'
import type { Principal, Provider } from '../core/provider.ts'
import { checkAborts, checkEntries, checkListing, checkTemplates, checkWatch, type ListedEntries } from './listing.ts'
import { checkMissing, checkReading, checkStat, type ExpectedEntry } from './reading.ts'
import {
  createRun,
  formatValue,
  type Problem,
  type PromiseId,
  type ProviderRun,
  promiseIds,
  promises,
  type RunBounds,
  runEnded,
  sample,
} from './run.ts'

/** Expected contents of a provider. Without it, the provider is checked against its own answers. */
export interface Expectation {
  /** The entries that the provider lists, by path. Fields left out of an entry are not compared. */
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
  /** Time-out of one call or one step of a listing. Default 10,000. */
  readonly timeoutMs?: number
  /** Maximum size of an entry that is read. Default 8 MiB. */
  readonly maxBytes?: number
  readonly principal?: Principal
  /** Aborts the check, which then rejects. */
  readonly signal?: AbortSignal
  /** Promises that this provider does not make, each with the reason. Problems with them are not reported. */
  readonly except?: Readonly<Partial<Record<PromiseId, string>>>
  /** Wrappers, by name. The checks are repeated through each of them. */
  readonly through?: Readonly<Record<string, (inner: Provider) => Provider>>
}

export interface Report {
  /** Problems in the order of detection, at most 5 for each promise and wrapper. */
  readonly problems: readonly Problem[]
  /** Number of entries checked. With 0, the check proves little. */
  readonly examined: number
  /** Whether the listing was checked to its end. */
  readonly complete: boolean
}

/**
 * Checks the {@link promises} of the Provider interface, against the provider's own answers and against the
 * expectation. It only reads; the source must not change meanwhile.
 * Checks that depend on a broken promise may be skipped: a listing in the wrong order is not also reported as one that
 * cannot be resumed.
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
  let entries: ListedEntries | undefined
  let finished = false
  try {
    entries = await checkEntries(run)
    if (entries !== undefined) await checkAll(run, entries, expectation)
    finished = true
  } catch (error) {
    run.bounds.signal.throwIfAborted()
    if (error !== runEnded) throw error
  }
  return {
    problems: run.problems.filter((problem) => options.except?.[problem.promise] === undefined),
    examined: entries?.entries.length ?? 0,
    complete: finished && entries?.complete === true,
  }
}

async function checkAll(run: ProviderRun, listedEntries: ListedEntries, expectation: Expectation): Promise<void> {
  await checkListing(run, listedEntries)
  await checkLeaving(run, listedEntries)
  if (!run.broken('list-paths', 'list-files')) {
    const expected = new Map(Object.entries(expectation.entries ?? {}))
    if (expectation.entries !== undefined && !run.broken('list-stable'))
      checkPresence(run, listedEntries, expected, expectation.more === true)
    const entries = new Map(listedEntries.entries.map((entry) => [entry.path, entry]))
    const paths = sample([...expected.keys()], run.bounds.samples * 4)
    const sampled = sample(listedEntries.entries, run.bounds.samples)
    for (const path of new Set([...sampled.map((entry) => entry.path), ...paths])) {
      const entry = entries.get(path)
      if (entry === undefined) continue
      await checkStat(run, entry)
      await checkReading(run, entry, expected.get(path))
    }
    await checkMissing(run, listedEntries, expectation.missing ?? [])
  }
  await checkAborts(run, listedEntries)
  await checkTemplates(run)
  await checkWatch(run)
}

function checkPresence(
  run: ProviderRun,
  entries: ListedEntries,
  expected: ReadonlyMap<string, unknown>,
  more: boolean,
): void {
  const paths = new Set(entries.entries.map((entry) => entry.path))
  const last = entries.entries.at(-1)?.path ?? ''
  for (const path of expected.keys()) {
    // A path after the last entry within the limit may still exist.
    const isKnown = entries.complete || comparePaths(path, last) <= 0
    if (isKnown && !paths.has(path)) run.fail('expected', 'it is not listed', path)
  }
  if (more) return
  for (const path of paths) if (!expected.has(path)) run.fail('expected', 'it is listed, and should not be', path)
}

function boundsOf(options: CheckOptions): RunBounds {
  return {
    limit: options.limit ?? 10_000,
    samples: options.samples ?? 24,
    timeoutMs: options.timeoutMs ?? 10_000,
    maxBytes: options.maxBytes ?? 8 * 1024 * 1024,
    principal: options.principal ?? { id: 'hikidashi-check', roles: [] },
    signal: options.signal ?? new AbortController().signal,
  }
}

/** Formats a problem as one line of text. */
export function formatProblem({ promise, sentence, path, seen, through }: Problem): string {
  const where = path === undefined ? '' : ` at ${formatValue(path)}`
  return `${promise}${through === undefined ? '' : ` (through ${through})`}: ${sentence} But${where}: ${seen.replace(/\.$/, '')}.`
}

/**
 * Number of listings left early, and the growth that counts as a leak. Less growth can come from other work in the
 * process.
 */
const repeats = 20
const leaks = 16
/** In milliseconds, for open resources to close. */
const closeTimeoutMs = 1000

/**
 * Leaves listings at their first entry, and checks that no resources stay open: files and directories (on Linux),
 * timers, sockets, child processes.
 */
async function checkLeaving(run: ProviderRun, { entries }: ListedEntries): Promise<void> {
  if (entries.length === 0 || run.broken('list-ends')) return
  const first = entries[0]?.path
  const leave = (count: number) => {
    let entryCount = 0
    return run.walk('list-stop', {}, () => ++entryCount < count)
  }
  // A resource that a provider keeps open (a connection, a cache) is not a leak, so it is opened before the count.
  await leave(Math.ceil(entries.length / 2))
  const before = await quiet()
  for (let i = 0; i < repeats; i++) if ((await leave(1)) === 'failed') return
  const deadline = Date.now() + closeTimeoutMs
  let growth = grown(before)
  while (growth.length > 0 && Date.now() < deadline) {
    await sleep(10)
    growth = grown(before)
  }
  if (growth.length > 0) run.fail('list-stop', `after ${repeats} listings, left at the first entry: ${growth}`, first)
}

/** Waits until the number of open resources is stable, or for {@link closeTimeoutMs}. */
async function quiet(): Promise<ReadonlyMap<string, number>> {
  const total = (counts: ReadonlyMap<string, number>) => [...counts.values()].reduce((sum, count) => sum + count, 0)
  const deadline = Date.now() + closeTimeoutMs
  for (let counts = resources(); ; ) {
    await sleep(10)
    const later = resources()
    if (total(later) === total(counts) || Date.now() > deadline) return later
    counts = later
  }
}

function resources(): ReadonlyMap<string, number> {
  const counts = new Map<string, number>()
  for (const kind of process.getActiveResourcesInfo()) counts.set(kind, (counts.get(kind) ?? 0) + 1)
  try {
    counts.set('open file', readdirSync('/proc/self/fd').length)
  } catch {
    // Only Linux has /proc/self/fd.
  }
  return counts
}

/** Returns, in words, the kinds of resource whose number grew by at least {@link leaks}. */
function grown(before: ReadonlyMap<string, number>): string {
  return [...resources()]
    .map(([kind, count]) => [kind, count - (before.get(kind) ?? 0)] as const)
    .filter(([, more]) => more >= leaks)
    .map(([kind, more]) => `${more} more ${kind}`)
    .join(', ')
}

/** The functions of a test framework that the suite needs: those of vitest, Jest and node:test fit. */
export interface Framework {
  readonly describe: (name: string, body: () => void) => unknown
  readonly test: (name: string, body: () => Promise<void>) => unknown
}

export interface Subject {
  readonly provider: Provider
  /** The expected entries are required: an empty listing would keep the other promises. */
  readonly expectation: Expectation & Required<Pick<Expectation, 'entries'>>
  /** Called when the suite is done, after the provider is closed: removes a folder, stops a server. */
  readonly dispose?: () => unknown
}

/**
 * Registers one test for each of the {@link promises} of the Provider interface, and again for each wrapper of
 * `options.through`. The provider is made and checked once, by the first test that runs; the tests then report the
 * problems.
 */
export function describeProvider(
  { describe, test }: Framework,
  name: string,
  make: () => Subject | Promise<Subject>,
  options: CheckOptions = {},
): void {
  let report: Promise<Report> | undefined
  const check = async () => {
    const { provider, expectation, dispose } = await make()
    try {
      return await checkProvider(provider, expectation, options)
    } finally {
      await provider.close?.()
      await dispose?.()
    }
  }
  const register = (through: string | undefined) => {
    for (const id of promiseIds) {
      const reason = options.except?.[id]
      test(reason === undefined ? promises[id] : `${promises[id]} (Not promised: ${reason})`, async () => {
        report ??= check()
        const problems = (await report).problems.filter((item) => item.promise === id && item.through === through)
        if (problems.length > 0) throw new Error(problems.map(formatProblem).join('\n'))
      })
    }
  }
  describe(name, () => register(undefined))
  for (const wrapper of Object.keys(options.through ?? {}))
    describe(`${name}, through ${wrapper}`, () => register(wrapper))
}
