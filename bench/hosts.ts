/**
 * `npx tsx bench/hosts.ts [hosts]`, after a build (Linux): measures the memory of the servers of several hosts for one folder, joined and
 * separate, and the time from the death of the first to the next answer. Memory is the proportional set size: pages that processes share
 * count once.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { type Session, startSession } from './session.ts'
import { fixed, median, progress, table } from './support.ts'

const hosts = Number(process.argv[2] ?? 10)
const files = 1000
const deaths = 5
// A short name: the path of a socket has a limit.
const home = mkdtempSync(join(tmpdir(), 'hosts-'))
const folder = join(home, 'notes')
const env = { ...process.env, XDG_STATE_HOME: join(home, 's') }

/** The proportional set size of a process, in MiB. */
function memoryOf(pid: number): number {
  return Number(/^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))?.[1] ?? Number.NaN) / 1024
}

const sum = (values: readonly number[]) => values.reduce((all, value) => all + value, 0)

async function openHosts(more: readonly string[]): Promise<readonly Session[]> {
  const sessions: Session[] = []
  for (let at = 0; at < hosts; at++) {
    const session = await startSession([folder, ...more], env)
    sessions.push(session)
    await session.ask('resources/list')
    // The first indexes the folder.
    if (at === 0) await pause(5000)
    await session.ask('resources/read', { uri: `file://${folder}/note-${at}.md` })
  }
  await pause(5000)
  return sessions
}

async function measureServers(more: readonly string[]): Promise<readonly number[]> {
  const sessions = await openHosts(more)
  const sizes = sessions.map(({ pid }) => memoryOf(pid))
  for (const session of sessions) await session.end()
  return sizes
}

async function measureBare(): Promise<readonly number[]> {
  const children: ChildProcess[] = []
  for (let at = 0; at < hosts; at++) children.push(spawn(process.execPath, ['-e', 'process.stdin.resume()']))
  await pause(3000)
  const sizes = children.map(({ pid = 0 }) => memoryOf(pid))
  for (const child of children) {
    child.stdin?.end()
    await once(child, 'exit')
  }
  return sizes
}

/** Kills the first of three servers, and returns the time until a second one has answered a read, in milliseconds. */
async function measureDeath(): Promise<number> {
  const [first, second, third] = [
    await startSession([folder], env),
    await startSession([folder], env),
    await startSession([folder], env),
  ]
  await second.ask('resources/list')
  const begun = performance.now()
  process.kill(first.pid, 'SIGKILL')
  const read = { uri: `file://${folder}/note-1.md` }
  await Promise.all([second.ask('resources/read', read), third.ask('resources/read', read)])
  const took = performance.now() - begun
  await second.end()
  await third.end()
  return took
}

try {
  mkdirSync(folder)
  for (let at = 0; at < files; at++)
    writeFileSync(join(folder, `note-${at}.md`), `# Note ${at}\n\n${'A line.\n'.repeat(100)}`)
  progress('joined')
  const joined = await measureServers([])
  progress('separate')
  const separate = await measureServers(['--no-share'])
  progress('bare Node')
  const bare = await measureBare()
  const row = (name: string, sizes: readonly number[]) => [
    name,
    fixed(sizes[0] ?? Number.NaN, 1),
    fixed(median(sizes.slice(1)), 1),
    fixed(sum(sizes), 0),
  ]
  const rows = [row('joined', joined), row('with `--no-share`', separate), row('bare Node', bare)]
  process.stdout.write(`${table(['', 'the first, MiB', 'each other, MiB', `all ${hosts}, MiB`], rows)}\n`)
  const times: number[] = []
  for (let at = 0; at < deaths; at++) times.push(await measureDeath())
  process.stdout.write(
    `Two joined hosts are answered ${fixed(median(times), 0)} ms (at most ${fixed(Math.max(...times), 0)} ms) after the first has died.\n`,
  )
} finally {
  rmSync(home, { recursive: true, force: true })
}
