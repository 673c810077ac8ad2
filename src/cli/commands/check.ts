import type { Command } from 'commander'
import type { PlannedMount } from '../../config/plan.ts'
import { type ConfigProblem, formatConfigProblem } from '../../config/problem.ts'
import type { WithheldPart } from '../../config/untrusted.ts'
import type { Mount } from '../../core/catalog.ts'
import { defined } from '../../core/kit/object.ts'
import { isHeadRespelled, parseAddress } from '../../core/uri.ts'
import { createLazyStore } from '../../providers/source.ts'
import { formatProblem } from '../../testing/index.ts'
import {
  checkMount,
  hasProblem,
  type MountReport,
  mountsExposingHardLinks,
  mountsHiddenFrom,
} from '../operations/check-mounts.ts'
import { cleanValue } from '../operations/clean-view.ts'
import { type ContractReport, checkContract } from '../operations/contract.ts'
import { formatLeftOutCounts } from '../operations/left-out.ts'
import { planLocalSetUp, storeSettings } from '../operations/local.ts'
import { formatRuleMiss } from '../operations/rule-globs.ts'
import { parseCount } from '../operations/source.ts'
import { formatEffects, withheldJson, withheldNote } from '../operations/withheld.ts'
import { commandFailure, helpExamples } from '../terminal/exit.ts'
import { formatCount, type Io, pluralize, writeJson } from '../terminal/io.ts'
import { createTextLog } from '../terminal/log.ts'
import { createProgress } from '../terminal/progress.ts'
import { type Colours, coloursFor, escapeText } from '../terminal/text.ts'

/** A check mostly waits for its source, so several at once take little longer than one. */
const maxMountsAtOnce = 8

const maxNamed = 3

interface CheckOptions {
  readonly config?: string
  readonly limit: number
  readonly contract?: string
  readonly json?: true
}

export function define(command: Command, io: Io): void {
  command
    .description(
      'Checks the configuration, and then every source in it: opens the source, and tests it against the contract of providers. It only reads.',
    )
    .option('--config <file>', 'check this configuration; by default hikidashi.json here, else the current folder')
    .option('--limit <entries>', 'the number of entries to look at in each source', parseCount, 1000)
    .option('--contract <address>', 'check only this mount, and print which promises of the provider contract it keeps')
    .option('--json', 'print the report as JSON')
    .addHelpText(
      ...helpExamples(`
  hikidashi check
  hikidashi check --config deploy/hikidashi.json --json
  hikidashi check --contract notes://me        the whole contract, for a source of your own`),
    )
    .action((options: CheckOptions) => check(options, io))
}

async function check(options: CheckOptions, io: Io): Promise<void> {
  const scrubber = io.secrets
  const log = createTextLog(io, 'warn')
  const planned = await planLocalSetUp(options.config === undefined ? {} : { config: options.config }, io.secrets)
  if ('problems' in planned) return reportConfig(cleanValue(planned.problems, scrubber), options, io)
  const { local } = planned
  const absent = local.config?.absent ?? []
  const isThere = ({ address }: PlannedMount) => !absent.some((absence) => absence.address === address)
  const mounts = ((await local.complete?.()) ?? local.mounts).filter(isThere)
  const problems = cleanValue(
    absent.map(({ problem }) => problem),
    scrubber,
  )
  if (!options.json) await io.out.write(formatConfigProblems(problems))
  const storeOptions = storeSettings(local)
  const store = storeOptions === undefined ? undefined : createLazyStore(storeOptions, log)
  if (options.contract !== undefined) {
    const settings = { log, scrubber, ...defined({ store }) }
    const report = await checkContract(options.contract, mounts, options.limit, settings).finally(() => store?.close())
    return reportContract(cleanValue(report, scrubber), options, io)
  }
  const file = local.config?.file ?? null
  const reports: MountReport[] = []
  const openMounts: Mount[] = []
  const progress = createProgress(io, {
    what: 'mounts checked',
    done: 0,
    total: mounts.length,
    besideOutput: true,
  })
  const settings = { log, scrubber, ...defined({ store }) }
  const checkOne = async (mount: PlannedMount) =>
    cleanValue(await checkMount(mount, options.limit, settings, (it) => openMounts.push(it)), scrubber)
  for await (const report of mapInOrder(mounts, maxMountsAtOnce, checkOne)) {
    reports.push(report)
    if (!options.json) await io.out.write(formatReport(report, coloursFor(io.out.isTerminal)), { isStyled: true })
    progress.add(1)
  }
  progress.end()
  // With authentication, roles come from the tokens of the clients, so any mount may have a client that sees it.
  const hiddenMounts = local.config?.auth === undefined ? await mountsHiddenFrom(local.principal, openMounts, log) : []
  const respelled = local.mounts
    .filter(({ address }) => isHeadRespelled(address))
    .map(({ address }) => ({ address, served: parseAddress(address).text }))
  const otherNames = mountsExposingHardLinks(local.mounts)
  await store?.close()
  const wrong = reports.filter(hasProblem).length
  const { withheld = [] } = local.config ?? {}
  const leftOut = withheld.map(withheldJson)
  const ok = wrong + problems.length + leftOut.length === 0
  if (options.json)
    await writeJson(io.out, {
      file,
      ok,
      problems,
      mounts: reports,
      hidden: hiddenMounts,
      respelled,
      otherNames,
      leftOut,
    })
  else {
    for (const address of hiddenMounts)
      io.say(
        `Note: no client sees ${address}: its access rules hide everything in it from the roles that "roles" in the configuration gives.`,
      )
    for (const { address, served } of respelled)
      io.say(
        `Note: ${address} is served as ${served}, because case makes no difference in schemes and hosts. Clients may write either.`,
      )
    for (const address of otherNames)
      io.say(
        `Note: ${address} has "hardlinks": true, so a file that its rules hide under one name is still served under its other names in the folder.`,
      )
  }
  if (!options.json && reports.some(({ leftOut }) => leftOut !== undefined && formatLeftOutCounts(leftOut) !== ''))
    io.say('Note: `hikidashi why PATH` tells why a file is left out.')
  const note = local.config === undefined ? undefined : withheldNote(local.config)
  if (note !== undefined && !options.json)
    await io.out.write(formatWithheld(withheld, coloursFor(io.out.isTerminal)), { isStyled: true })
  if (note !== undefined) io.say(note)
  const faulty = wrong + new Set(absent.map(({ address }) => address)).size
  if (faulty > 0)
    throw commandFailure(`${faulty} of ${pluralize(reports.length + faulty - wrong, 'mount')} failed the check.`)
  if (note !== undefined)
    throw commandFailure(`Not everything was checked: ${pluralize(leftOut.length, 'part')} left out.`)
  if (!options.json) io.say(`${file ?? 'The current folder'}: ${pluralize(reports.length, 'mount')}, nothing wrong.`)
}

async function reportContract(report: ContractReport, { json }: CheckOptions, io: Io): Promise<void> {
  const { address, provider, promises, examined, complete, undeclared } = report
  const { green, red } = coloursFor(io.out.isTerminal)
  const broken = promises.filter(({ problems }) => problems.length > 0)
  const lines = promises.flatMap(({ id, sentence, problems }) => [
    `${problems.length === 0 ? green('kept  ') : red('BROKEN')}  ${id.padEnd(14)}  ${sentence}`,
    ...problems.map((problem) => `        ${escapeText(formatProblem(problem))}`),
  ])
  const others = undeclared.map(
    (name) => `${red('BROKEN')}  abilities       The source declares ${name} differently from what it does.`,
  )
  if (json) await writeJson(io.out, { ok: broken.length + undeclared.length === 0, ...report })
  else await io.out.write([...lines, ...others].map((line) => `${line}\n`).join(''), { isStyled: true })
  const number = broken.length + undeclared.length
  if (number > 0) throw commandFailure(`${address} (${provider}) breaks ${pluralize(number, 'promise')}.`)
  const extent = `${formatCount(examined, 'entry', 'entries')}${complete ? '' : ' and more'}`
  if (!json) io.say(`${address} (${provider}): ${extent} checked, every promise is kept.`)
}

async function reportConfig(problems: readonly ConfigProblem[], { json }: CheckOptions, { out }: Io): Promise<void> {
  const [first] = problems
  if (json)
    await writeJson(out, {
      file: first?.file ?? null,
      ok: false,
      problems,
      mounts: [],
      hidden: [],
      respelled: [],
      otherNames: [],
      leftOut: [],
    })
  else await out.write(formatConfigProblems(problems))
  throw commandFailure(
    `The configuration has ${pluralize(problems.length, 'problem')}. The sources in it were not checked.`,
  )
}

function formatConfigProblems(problems: readonly ConfigProblem[]): string {
  return problems.map((problem) => `${escapeText(formatConfigProblem(problem))}\n`).join('')
}

function formatWithheld(withheld: readonly WithheldPart[], { yellow }: Colours): string {
  return withheld
    .map(
      (part) =>
        `${yellow('SKIP ')}  ${escapeText(part.name)}  not checked, because you have not trusted it: ${formatEffects(part)}\n`,
    )
    .join('')
}

function formatReport(report: MountReport, { green, red }: Colours): string {
  const { address, provider, failure, problems, examined, complete, milliseconds } = report
  const extent = failure === undefined ? [`${formatCount(examined, 'entry', 'entries')} looked at`] : []
  const rest = failure !== undefined || complete ? [] : ['there are more']
  const facts = [address, provider, [...extent, ...rest].join(', '), `${milliseconds} ms`]
  const sign = hasProblem(report) ? red('WRONG') : green('ok   ')
  const head = [sign, ...facts.filter((part) => part !== '').map(escapeText)].join('  ')
  const faults = failure === undefined ? problems.map(formatProblem) : [failure]
  const parts = report.leftOut === undefined ? '' : formatLeftOutCounts(report.leftOut)
  const leftOut = parts === '' ? [] : [`left out: ${parts}`]
  const { unknownEncodings: unknown = [], ruleMisses = [] } = report
  const texts = pluralize(unknown.length, 'text')
  const names = unknown.slice(0, maxNamed).join(', ') + (unknown.length > maxNamed ? ', …' : '')
  const encodings =
    unknown.length === 0 ? [] : [`served as bytes: ${texts} in an encoding that is not known (${names})`]
  return [
    head,
    ...[...faults, ...leftOut, ...encodings, ...ruleMisses.map(formatRuleMiss)].map(
      (line) => `       ${escapeText(line)}`,
    ),
  ]
    .map((line) => `${line}\n`)
    .join('')
}

/**
 * Processes items concurrently, and yields the results in the order of the items.
 * @param most Maximum number of items processed at once.
 * @throws the first failure, in the order of the items. Work that is running then goes on unobserved.
 */
export async function* mapInOrder<Item, Result>(
  items: readonly Item[],
  most: number,
  work: (item: Item) => Promise<Result>,
): AsyncGenerator<Result> {
  const runs: Promise<Result>[] = []
  let running = 0
  let stopped = false
  const beginMore = (): void => {
    while (!stopped && running < most && runs.length < items.length) {
      running++
      const result = work(items[runs.length] as Item)
      runs.push(result)
      const onEnd = () => {
        running--
        beginMore()
      }
      result.then(onEnd, onEnd)
    }
  }
  beginMore()
  try {
    for (let i = 0; i < items.length; i++) {
      // `runs[i]` exists: item `i` begins at the latest when the items before it have ended.
      yield await (runs[i] as Promise<Result>)
    }
  } finally {
    stopped = true
  }
}
