import { fileURLToPath } from 'node:url'
import { serveFixtures } from './fixtures.ts'
import {
  reasonNotToRun,
  required,
  requiredOfClient,
  requiredOfExtensions,
  requiredOfLatest,
  revisions,
  type SuiteRevision,
} from './scenarios.ts'
import { type Command, listScenarios, type Outcome, runClientScenario, runScenario } from './suite.ts'

const say = (line: string) => process.stdout.write(`${line}\n`)

/**
 * Runs the official conformance suite against our server over HTTP and against our client, for each revision, and the required scenarios
 * of the previous suite. Resolves to the number of faults.
 */
export async function runOfficial(suite: Command, latest: Command): Promise<number> {
  const service = await serveFixtures()
  let wrong = 0
  try {
    for (const revision of revisions) {
      wrong += await runRevision(suite, service.url, revision)
      wrong += await runExtensions(suite, service.url, revision)
      wrong += await runClient(suite, revision)
      wrong += await runLatest(latest, service.url, revision)
    }
  } finally {
    await service.close()
  }
  return wrong
}

/** Runs the required scenarios of the suite that npm tags as latest. Resolves to the number of faults. */
async function runLatest(command: Command, url: string, revision: SuiteRevision): Promise<number> {
  let wrong = 0
  for (const scenario of requiredOfLatest[revision] ?? []) {
    say(`\n${revision}, suite 0.1.16`)
    const outcome = await runScenario(command, url, revision, scenario)
    report(outcome)
    if (outcome.faults.length > 0) wrong++
  }
  return wrong
}

/** Runs the required scenarios for clients. Resolves to the number of faults. */
async function runClient(command: Command, revision: SuiteRevision): Promise<number> {
  const client = `"${process.execPath}" --import tsx "${fileURLToPath(new URL('./mounted-client.ts', import.meta.url))}"`
  let wrong = 0
  for (const scenario of requiredOfClient[revision] ?? []) {
    const outcome = await runClientScenario(command, client, revision, scenario)
    report(outcome)
    if (outcome.faults.length > 0) wrong++
  }
  return wrong
}

/** Runs the required scenarios of extensions. Resolves to the number of faults. */
async function runExtensions(command: Command, url: string, revision: SuiteRevision): Promise<number> {
  let wrong = 0
  for (const scenario of requiredOfExtensions[revision] ?? []) {
    const outcome = await runScenario(command, url, revision, scenario, ['--force'])
    report(outcome)
    if (outcome.faults.length > 0) wrong++
  }
  return wrong
}

/** Whether the server answers. Without this test, the suite counts dozens of checks as passed even if nothing listens on the port. */
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

function report({ scenario, passed, faults }: Outcome): void {
  const verdict = faults.length === 0 ? 'pass' : 'FAIL'
  say(`  ${verdict}  ${scenario.padEnd(32)} ${String(passed).padStart(3)} checks passed`)
  for (const fault of faults) say(`        ${fault}`)
}

/** Runs the required scenarios of a revision. Resolves to the number of faults. */
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
      : { scenario, passed: 0, faults: ['it did not run: the suite has no such scenario'] }
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
