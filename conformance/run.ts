import { clients } from './clients/declared.ts'
import { checkTable } from './clients/documented.ts'
import { runClients } from './clients/run.ts'
import { hosts, runHosts } from './hosts/run.ts'
import { commandOf, installed } from './installed.ts'
import { runOfficial } from './official.ts'
import { findClients } from './tools.ts'

/**
 * `npm run conformance`: runs the official conformance suite against our server, sessions of third-party clients, and hosts to which a
 * folder is added. `suite`, `clients` or `hosts` runs only these. `--write` updates the table of the clients in the documentation.
 *
 * Exits with 1 if a required scenario fails, does not run or checks nothing, if the server does not answer, if the suite has a scenario
 * that scenarios.ts does not mention, if a client fails a step or leaves out one that is not declared, if the table in the documentation
 * differs from the results of the sessions, or if a host does not list, search and read.
 */
const say = (line: string) => process.stdout.write(`${line}\n`)

const [words, options] = [
  process.argv.slice(2).filter((word) => !word.startsWith('-')),
  process.argv.slice(2).filter((word) => word.startsWith('-')),
]

const wants = (part: string) => words.length === 0 || words.includes(part)

async function runSuite(): Promise<number> {
  const wrong = await runOfficial(commandOf('conformance'), commandOf('conformance-0.1'))
  say(wrong === 0 ? '\nEvery required scenario passes.' : `\n${wrong} required scenarios do not pass.`)
  return wrong
}

async function runSessions(): Promise<number> {
  const { node } = installed(() => findClients(clients.map(({ name }) => name)))
  say('\nSessions of clients')
  const outcomes = await runClients(node, ({ client, transport, revision, did, faults }) => {
    const verdict = faults.length === 0 ? 'pass' : 'FAIL'
    const title = `${client.name}${client.form === undefined ? '' : `, ${client.form}`}`
    say(`  ${verdict}  ${title.padEnd(40)} ${transport.padEnd(5)} ${revision.padEnd(10)} ${did.length} steps done`)
    for (const fault of faults) say(`        ${fault}`)
  })
  const failed = outcomes.filter(({ faults }) => faults.length > 0).length
  if (failed > 0) {
    say(`\n${failed} sessions failed.`)
    return failed
  }
  const stale = await checkTable(outcomes, { write: options.includes('--write') })
  say(stale === undefined ? '\nEvery session passes.' : `\n${stale}`)
  return stale === undefined ? 0 : 1
}

async function runAllHosts(): Promise<number> {
  const { node } = installed(() =>
    findClients(hosts.flatMap(({ dependency, isScript }) => (isScript ? [dependency] : []))),
  )
  say('\nHosts, to which `hikidashi add HOST DIR` adds a folder')
  const outcomes = await runHosts(node, ({ host, faults }) => {
    say(
      `  ${faults.length === 0 ? 'pass' : 'FAIL'}  ${host.name.padEnd(12)} lists, searches and reads; its hook gives a context`,
    )
    for (const fault of faults) say(`        ${fault}`)
  })
  return outcomes.filter(({ faults }) => faults.length > 0).length
}

let wrong = 0
if (wants('suite')) wrong += await runSuite()
if (wants('clients')) wrong += await runSessions()
if (wants('hosts')) wrong += await runAllHosts()
process.exitCode = wrong === 0 ? 0 : 1
