import { spawn } from 'node:child_process'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type SuiteRevision, withRequirements } from './scenarios.ts'

export type Command = readonly [node: string, script: string]

type Status = 'SUCCESS' | 'FAILURE' | 'WARNING' | 'SKIPPED' | 'INFO'

interface Check {
  readonly id: string
  readonly status: Status
  readonly errorMessage?: string
}

/** The result of one scenario. */
export interface Outcome {
  readonly scenario: string
  readonly passed: number
  /** The faults, mostly in the words of the suite. Empty: the scenario passes. */
  readonly faults: readonly string[]
}

/** The check of every message against the schema, which runs in all scenarios. Alone it does not count as a passed scenario. */
const always = 'wire-schema-valid'

/** Time-out of one run of the suite, in milliseconds. */
const patience = 120_000

/**
 * Lists the server scenarios of the suite for a revision: those that it requires or runs without scoring, or, if there is no set of
 * requirements, those that it lists for the revision.
 */
export async function listScenarios(command: Command, revision: SuiteRevision): Promise<readonly string[]> {
  const set = withRequirements.includes(revision) ? '--requirements' : '--spec-version'
  const { code, output } = await run(command, ['list', '--server', set, revision])
  if (code !== 0) throw new Error(`the suite could not list its scenarios: ${output.trim()}`)
  const [scored = '', unscored = ''] = output.split('Run and reported, but never scored:')
  const names = (text: string, pattern: RegExp) => [...text.matchAll(pattern)].map((match) => match[1] ?? '')
  const server = scored.split('Client scenarios')[0] ?? ''
  // The revisions of a scenario follow its name, except in a set of requirements.
  return [...names(server, /^ {2}- (\S+)(?: \[[\d,-]+\])?$/gm), ...names(unscored, /^ +- (\S+) \[server\]$/gm)]
}

/** Runs one scenario in a revision, and reads the results of its checks. */
export const runScenario = (
  command: Command,
  url: string,
  revision: SuiteRevision,
  scenario: string,
  more: readonly string[] = [],
): Promise<Outcome> => runJudged(command, ['server', '--url', url, ...more], revision, scenario)

/** Runs one scenario of the suite for clients: the suite starts a server, and the client with the URL of it as last argument. */
export const runClientScenario = (
  command: Command,
  client: string,
  revision: SuiteRevision,
  scenario: string,
): Promise<Outcome> => runJudged(command, ['client', '--command', client], revision, scenario)

async function runJudged(
  command: Command,
  begin: readonly string[],
  revision: SuiteRevision,
  scenario: string,
): Promise<Outcome> {
  const folder = await mkdtemp(join(tmpdir(), 'hikidashi-conformance-'))
  try {
    const { code, output } = await run(command, [
      ...begin,
      ...['--spec-version', revision, '--scenario', scenario, '--output-dir', folder],
    ])
    return judge(scenario, code, output, await readChecks(folder))
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** Judges a scenario. It passes if the suite exits with 0, one of its own checks succeeded, and none failed, warned or was skipped. */
export function judge(scenario: string, code: number, output: string, checks: readonly Check[]): Outcome {
  const faults = checks
    .filter(({ status }) => status === 'FAILURE' || status === 'WARNING' || status === 'SKIPPED')
    .map(({ id, status, errorMessage }) => {
      return `${id}: ${errorMessage ?? (status === 'SKIPPED' ? 'it was skipped' : 'no reason given')}`
    })
  const passed = checks.filter(({ id, status }) => status === 'SUCCESS' && id !== always).length
  if (checks.length === 0) faults.push(`it did not run: ${output.trim().split('\n').at(-1) ?? 'no output'}`)
  else if (passed === 0) faults.push('it checked nothing')
  if (code !== 0 && faults.length === 0) faults.push(`the suite ended with code ${code}`)
  return { scenario, passed, faults }
}

async function readChecks(folder: string): Promise<readonly Check[]> {
  const checks: Check[] = []
  for (const name of await readdir(folder))
    checks.push(...(JSON.parse(await readFile(join(folder, name, 'checks.json'), 'utf8')) as Check[]))
  return checks
}

function run([node, script]: Command, args: readonly string[]): Promise<{ code: number; output: string }> {
  return new Promise((resolve, reject) => {
    const child = spawn(node, [script, ...args], { stdio: ['ignore', 'pipe', 'pipe'], timeout: patience })
    let output = ''
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text: string) => {
        output += text
      })
    child.on('error', reject)
    child.on('close', (code) => resolve({ code: code ?? 1, output }))
  })
}
