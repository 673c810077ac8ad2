import { type Command, InvalidArgumentError } from 'commander'
import { type MountSettings, openMount, type PlannedMount } from '../config/build.ts'
import { lazyStore } from '../config/lazy-store.ts'
import { type ConfigProblem, formatConfigProblem } from '../config/problem.ts'
import { createCatalog, type Mount } from '../core/catalog.ts'
import { isResourceError } from '../core/errors.ts'
import type { Log } from '../core/log.ts'
import type { Principal } from '../core/provider.ts'
import { checkProvider, formatProblem, type Problem, type Report } from '../testing/index.ts'
import { exitCodeHelp, failed } from './exit.ts'
import { count } from './format.ts'
import type { Io } from './io.ts'
import { writeJson } from './json.ts'
import { planLocal } from './local.ts'
import { createLog } from './log.ts'
import { escapeText } from './text.ts'

interface CheckOptions {
  readonly config?: string
  readonly limit: number
  readonly json?: true
}

export function define(command: Command, io: Io): void {
  command
    .description(
      'Checks the configuration, and then every source in it: opens it, and compares its answers with what a provider promises. It only reads.',
    )
    .option('--config <file>', 'check this configuration; by default hikidashi.json here, else the current folder')
    .option('--limit <entries>', 'look at so many entries of each source', parseLimit, 1000)
    .option('--json', 'print the report as JSON')
    .addHelpText(
      'after',
      `
Examples:
  hikidashi check
  hikidashi check --config deploy/hikidashi.json --json
${exitCodeHelp}`,
    )
    .action((options: CheckOptions) => check(options, io))
}

function parseLimit(value: string): number {
  const limit = Number(value)
  if (!Number.isSafeInteger(limit) || limit < 1) throw new InvalidArgumentError('It is a whole number, at least 1.')
  return limit
}

/** What was found out about one mount. */
interface MountReport {
  readonly address: string
  readonly provider: string
  /** Why it could not be opened. */
  readonly failure?: string
  readonly problems: readonly Problem[]
  readonly examined: number
  readonly complete: boolean
  readonly milliseconds: number
}

async function check(options: CheckOptions, io: Io): Promise<void> {
  const scrubber = io.secrets
  const write = (line: string) => void process.stderr.write(line)
  const log = createLog({ level: 'warn', format: 'text', write, scrubber })
  const planned = await planLocal(options.config === undefined ? {} : { config: options.config }, io.secrets)
  if ('problems' in planned) return reportConfig(planned.problems, options, io)
  const { local } = planned
  const store = local.config === undefined ? undefined : lazyStore(local.config.store, log)
  const file = local.config?.file ?? null
  const reports: MountReport[] = []
  const opened: Mount[] = []
  for (const mount of local.mounts) {
    const report = await checkMount(
      mount,
      options.limit,
      { log, scrubber, ...(store === undefined ? {} : { store }) },
      (it) => opened.push(it),
    )
    reports.push(report)
    if (!options.json) await io.out.write(formatReport(report))
  }
  // Where clients say who they are, their roles come from elsewhere.
  const hidden = local.config?.auth === undefined ? await hiddenFrom(local.principal, opened, log) : []
  await store?.close()
  const wrong = reports.filter(isWrong).length
  if (options.json) await writeJson(io.out, { file, ok: wrong === 0, problems: [], mounts: reports, hidden })
  else
    for (const address of hidden)
      io.say(
        `Note: no client sees ${address}: its access rules name roles, and "roles" in the configuration gives none of them.`,
      )
  if (wrong > 0) throw failed(`Something is wrong with ${wrong} of ${count(reports.length, 'mount')}.`)
  if (!options.json) io.say(`${file ?? 'The current folder'}: ${count(reports.length, 'mount')}, nothing wrong.`)
}

async function reportConfig(problems: readonly ConfigProblem[], { json }: CheckOptions, { out }: Io): Promise<void> {
  const [first] = problems
  if (json) await writeJson(out, { file: first?.file ?? null, ok: false, problems, mounts: [], hidden: [] })
  else await out.write(problems.map((problem) => `${escapeText(formatConfigProblem(problem))}\n`).join(''))
  throw failed(`The configuration has ${count(problems.length, 'problem')}. The sources in it were not checked.`)
}

async function checkMount(
  planned: PlannedMount,
  limit: number,
  settings: MountSettings,
  keep: (mount: Mount) => void,
): Promise<MountReport> {
  const start = performance.now()
  const clean = (text: string) => settings.scrubber?.scrub(text) ?? text
  const report = (rest: Partial<MountReport>): MountReport => ({
    address: planned.address,
    provider: planned.config.provider,
    problems: [],
    examined: 0,
    complete: false,
    ...rest,
    milliseconds: Math.round(performance.now() - start),
  })
  try {
    const mount = await openMount(planned, settings)
    keep(mount)
    const { problems, ...rest } = await checkTwice(mount, limit)
    return report({ ...rest, problems: problems.map((problem) => ({ ...problem, seen: clean(problem.seen) })) })
  } catch (error) {
    if (!isResourceError(error)) throw error
    return report({ failure: clean(error.message) })
  }
}

/** A live source may change while it is looked at, and then seems to contradict itself. It will not do so twice. */
async function checkTwice({ provider }: Mount, limit: number): Promise<Report> {
  const report = await checkProvider(provider, {}, { limit })
  return report.problems.length === 0 ? report : checkProvider(provider, {}, { limit })
}

/** The mounts that are there, and that the principal sees nothing of. */
async function hiddenFrom(principal: Principal, mounts: readonly Mount[], log: Log): Promise<readonly string[]> {
  const catalog = createCatalog({ mounts, log })
  try {
    const visible = new Set((await catalog.view(principal).mounts()).map(({ uri }) => uri))
    return mounts.map(({ address }) => address.replace(/\/$/, '')).filter((address) => !visible.has(address))
  } finally {
    await catalog.close()
  }
}

function isWrong({ failure, problems }: MountReport): boolean {
  return failure !== undefined || problems.length > 0
}

function formatReport(report: MountReport): string {
  const { address, provider, failure, problems, examined, complete, milliseconds } = report
  const extent = failure === undefined ? [`${count(examined, 'entry').replace('entrys', 'entries')} looked at`] : []
  const rest = failure !== undefined || complete ? [] : ['there are more']
  const head = [
    isWrong(report) ? 'WRONG' : 'ok   ',
    address,
    provider,
    [...extent, ...rest].join(', '),
    `${milliseconds} ms`,
  ]
  const faults = failure === undefined ? problems.map(formatProblem) : [failure]
  return `${[head.filter((part) => part !== '').join('  '), ...faults.map((fault) => `       ${fault}`)].map(escapeText).join('\n')}\n`
}
