import { serveFixtures } from './fixtures.ts'
import { reasonNotToRun, required, revisions, type SuiteRevision } from './scenarios.ts'
import { type Command, listScenarios, type Outcome, runScenario } from './suite.ts'
import { findTool, installTools } from './tools.ts'

/**
 * `npm run conformance`: the official conformance suite against our server over HTTP, on each revision that it knows.
 * Ends with 1 when a required scenario fails, does not run or checks nothing, when the server does not answer, and when
 * the suite has a scenario that nobody has decided about.
 */
const say = (line: string) => process.stdout.write(`${line}\n`)

function suiteCommand(): Command {
  const found = findTool('conformance')
  if ('command' in found) return found.command
  process.stderr.write(`${found.missing}. Installing it now…\n`)
  const installed = installTools() ? findTool('conformance') : found
  if ('command' in installed) return installed.command
  process.stderr.write(`The conformance suite cannot run: ${installed.missing}.\n`)
  process.exit(1)
}

/** Against a port where nothing listens, the suite still counts dozens of checks as passed. */
async function isAlive(url: string, revision: SuiteRevision): Promise<boolean> {
  const clientInfo = { name: 'liveness', version: '0' }
  const stateless = revision === '2026-07-28'
  const meta = {
    'io.modelcontextprotocol/protocolVersion': revision,
    'io.modelcontextprotocol/clientCapabilities': {},
    'io.modelcontextprotocol/clientInfo': clientInfo,
  }
  const method = stateless ? 'server/discover' : 'initialize'
  const params = stateless ? { _meta: meta } : { protocolVersion: revision, capabilities: {}, clientInfo }
  try {
    const response = await fetch(url, {
      method: 'POST',
      headers: {
        'Content-Type': 'application/json',
        Accept: 'application/json, text/event-stream',
        ...(stateless ? { 'MCP-Protocol-Version': revision, 'Mcp-Method': method } : {}),
      },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
    })
    const { result } = (await response.json()) as { result?: Record<string, unknown> }
    return response.status === 200 && (stateless || result?.protocolVersion === revision) && result !== undefined
  } catch {
    return false
  }
}

function report({ scenario, passed, skipped, faults }: Outcome): void {
  const verdict = faults.length === 0 ? 'pass' : 'FAIL'
  const left = skipped === 0 ? '' : `, ${skipped} not applicable`
  say(`  ${verdict}  ${scenario.padEnd(32)} ${String(passed).padStart(3)} checks passed${left}`)
  for (const fault of faults) say(`        ${fault}`)
}

/** Runs what a revision requires. The number of things that are wrong. */
async function runRevision(command: Command, url: string, revision: SuiteRevision): Promise<number> {
  say(`\n${revision}`)
  const listed = await listScenarios(command, revision)
  let wrong = 0
  for (const scenario of required[revision]) {
    if (!(await isAlive(url, revision))) {
      say(`  FAIL  ${scenario}: the server does not answer`)
      return wrong + 1
    }
    const outcome: Outcome = listed.includes(scenario)
      ? await runScenario(command, url, revision, scenario)
      : { scenario, passed: 0, skipped: 0, faults: ['it did not run: the suite has no such scenario'] }
    report(outcome)
    if (outcome.faults.length > 0) wrong++
  }
  const others = listed.filter((scenario) => !required[revision].includes(scenario))
  for (const reason of new Set(others.map(reasonNotToRun))) {
    const scenarios = others.filter((scenario) => reasonNotToRun(scenario) === reason)
    if (reason === undefined) wrong += scenarios.length
    say(reason === undefined ? '  FAIL  nobody has decided about:' : `  -     not run: ${reason}`)
    for (const scenario of scenarios) say(`          ${scenario}`)
  }
  if (!(await isAlive(url, revision))) {
    say('  FAIL  the server does not answer any more')
    wrong++
  }
  return wrong
}

const command = suiteCommand()
const service = await serveFixtures()
let wrong = 0
try {
  for (const revision of revisions) wrong += await runRevision(command, service.url, revision)
} finally {
  await service.close()
}
say(wrong === 0 ? '\nEvery required scenario passes.' : `\n${wrong} required scenarios do not pass.`)
process.exitCode = wrong === 0 ? 0 : 1
