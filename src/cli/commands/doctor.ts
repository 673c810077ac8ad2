import type { Command } from 'commander'
import { packageVersion } from '../operations/command-line.ts'
import { addSourceOptions, parseCount, type SourceOptions } from '../operations/source.ts'
import { exitCodeHelp, failed, misused } from '../terminal/exit.ts'
import { count, type Io, writeError, writeJson } from '../terminal/io.ts'
import { createLog } from '../terminal/log.ts'
import { createProgress } from '../terminal/progress.ts'
import { type Colours, coloursFor, escapeText } from '../terminal/text.ts'

interface DoctorOptions extends SourceOptions {
  readonly limit: number
  readonly json?: true
}

/** Result of one check. A fault has a fix: the next command, or a change and its place. */
export interface Diagnosis {
  readonly check: string
  readonly status: 'ok' | 'warning' | 'failed'
  readonly found: string
  readonly fix?: string
}

/** Receives the results and the progress of the checks. */
export interface Findings {
  tell(diagnosis: Diagnosis): void
  /** Shows the current step to a waiting person. */
  doing(what: string): void
}

export function define(command: Command, io: Io): void {
  command
    .description(
      `Finds out why something does not work. It checks in order: this machine, the configuration, secrets, programs, every mount, the
store and the index, HTTP and its tokens; or for a server, whether it can be reached and conforms to the protocol. For each fault
it prints a fix. It only reads.`,
    )
    .option('--limit <entries>', 'the number of entries to look at in each mount', parseCount, 200)
    .option('--json', 'print the report as JSON')
  addSourceOptions(command)
    .addHelpText(
      'after',
      `
Examples:
  hikidashi doctor                                      the configuration here
  hikidashi doctor --url http://127.0.0.1:8787/mcp      a running server
  hikidashi doctor --command "npx -y some-mcp-server"   a server of another project
  hikidashi doctor --json | jq '.checks[] | select(.status != "ok")'
${exitCodeHelp}`,
    )
    .action((options: DoctorOptions) => doctor(options, io))
}

async function doctor(options: DoctorOptions, io: Io): Promise<void> {
  if (options.header !== undefined && options.url === undefined) throw misused('--header needs --url.')
  const checks: Diagnosis[] = []
  const progress = createProgress(io, { what: 'Looking', besideOutput: true })
  const colours = coloursFor(io.out.isTerminal)
  const lines: Promise<void>[] = []
  const clean = (diagnosis: Diagnosis): Diagnosis => ({
    ...diagnosis,
    found: io.secrets.scrub(diagnosis.found),
    ...(diagnosis.fix === undefined ? {} : { fix: io.secrets.scrub(diagnosis.fix) }),
  })
  const findings: Findings = {
    tell: (diagnosis) => {
      checks.push(clean(diagnosis))
      if (!options.json) lines.push(io.out.write(format(clean(diagnosis), colours), { isStyled: true }))
    },
    doing: (what) => progress.set({ what: escapeText(what) }),
  }
  const log = createLog({ level: options.logLevel, format: 'text', write: writeError, scrubber: io.secrets })
  try {
    const { checkMachine } = await import('../operations/doctor/needs.ts')
    await checkMachine(findings)
    if (options.url !== undefined || options.command !== undefined) {
      const { checkServer } = await import('../operations/doctor/targets.ts')
      await checkServer(options, findings, log)
    } else {
      const { checkLocal } = await import('../operations/doctor/targets.ts')
      await checkLocal(options, findings, { log, secrets: io.secrets })
    }
  } finally {
    progress.end()
  }
  await Promise.all(lines)
  const wrong = checks.filter(({ status }) => status === 'failed').length
  const doubtful = checks.filter(({ status }) => status === 'warning').length
  if (options.json) await writeJson(io.out, { ok: wrong === 0, version: packageVersion(), checks })
  if (wrong > 0) throw failed(`${count(wrong, 'check')} of ${checks.length} failed. The remedy is behind each ->.`)
  const notes = doubtful === 0 ? '' : ` ${count(doubtful, 'note')} to read.`
  if (!options.json) io.say(`${count(checks.length, 'check')}, nothing wrong.${notes}`)
}

/** Width of the column of check names. */
const width = 13

function format({ check, status, found, fix }: Diagnosis, { green, yellow, red, bold }: Colours): string {
  const sign = status === 'ok' ? green('ok    ') : status === 'warning' ? yellow('note  ') : red('FAILED')
  const indent = ' '.repeat(6 + 2 + width + 2)
  const advice =
    fix === undefined ? [] : fix.split('\n').map((line, i) => `${indent}${i === 0 ? '->' : '  '} ${escapeText(line)}\n`)
  return [`${sign}  ${bold(check.padEnd(width))}  ${escapeText(found)}\n`, ...advice].join('')
}
