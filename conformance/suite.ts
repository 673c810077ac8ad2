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

/** How one scenario ended. */
export interface Outcome {
  readonly scenario: string
  readonly passed: number
  readonly skipped: number
  /** What speaks against it, in the words of the suite. Empty: it passes. */
  readonly faults: readonly string[]
}

/** The suite checks every message against the schema, whatever the scenario; that alone is no scenario passed. */
const always = 'wire-schema-valid'

/** So long may one run of the suite take, in milliseconds. */
const patience = 120_000

/**
 * Every server scenario that the suite has for a revision: what it requires, and what it runs without scoring; or, where
 * it has no set of requirements, what it lists for the revision.
 */
export async function listScenarios(command: Command, revision: SuiteRevision): Promise<readonly string[]> {
  const set = withRequirements.includes(revision) ? '--requirements' : '--spec-version'
  const { code, output } = await run(command, ['list', '--server', set, revision])
  if (code !== 0) throw new Error(`the suite could not list its scenarios: ${output.trim()}`)
  const [scored = '', unscored = ''] = output.split('Run and reported, but never scored:')
  const names = (text: string, pattern: RegExp) => [...text.matchAll(pattern)].map((match) => match[1] ?? '')
  const server = scored.split('Client scenarios')[0] ?? ''
  // Behind a name stand the revisions that it is for, but not in a set of requirements.
  return [...names(server, /^ {2}- (\S+)(?: \[[\d,-]+\])?$/gm), ...names(unscored, /^ +- (\S+) \[server\]$/gm)]
}

/** Runs one scenario, on the wire of the revision, and reads every check that it made. */
export async function runScenario(
  command: Command,
  url: string,
  revision: SuiteRevision,
  scenario: string,
  more: readonly string[] = [],
): Promise<Outcome> {
  const folder = await mkdtemp(join(tmpdir(), 'hikidashi-conformance-'))
  try {
    const { code, output } = await run(command, [
      'server',
      ...['--url', url, '--spec-version', revision, '--scenario', scenario, '--output-dir', folder],
      ...more,
    ])
    return judge(scenario, code, output, await readChecks(folder))
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** A scenario passes when the suite says so, a check of its own succeeded, and none failed or warned. */
export function judge(scenario: string, code: number, output: string, checks: readonly Check[]): Outcome {
  const faults = checks
    .filter(({ status }) => status === 'FAILURE' || status === 'WARNING')
    .map(({ id, errorMessage }) => `${id}: ${errorMessage ?? 'no reason given'}`)
  const passed = checks.filter(({ id, status }) => status === 'SUCCESS' && id !== always).length
  if (checks.length === 0) faults.push(`it did not run: ${output.trim().split('\n').at(-1) ?? 'no output'}`)
  else if (passed === 0) faults.push('it checked nothing')
  if (code !== 0 && faults.length === 0) faults.push(`the suite ended with code ${code}`)
  return { scenario, passed, skipped: checks.filter(({ status }) => status === 'SKIPPED').length, faults }
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
