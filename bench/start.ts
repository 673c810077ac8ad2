/**
 * `npx tsx bench/start.ts [runs]`, after a build: measures the time until the first answer of a server, the CPU time until then, and the
 * memory at that time. The first run installs the other servers (`bench/peers`). Linux only: it reads `/proc`.
 */
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { installPeers, peersFolder } from './peers.ts'
import { fixed, median, progress, table } from './support.ts'

const runs = Number(process.argv[2] ?? 15)
const files = 200
const program = (name: string) => fileURLToPath(new URL(name, import.meta.url))
const peer = (path: string) => join(peersFolder, path)
const main = program('../dist/cli/main.js')
const temporary = mkdtempSync(join(tmpdir(), 'hikidashi-start-'))
/** A folder that is served without a configuration, and one with the configuration that `init` writes. */
const plain = join(temporary, 'plain')
const configured = join(temporary, 'configured')
const tenFile = join(temporary, 'ten.json')
const env = { ...process.env, XDG_STATE_HOME: join(temporary, 'state'), XDG_CACHE_HOME: join(temporary, 'cache') }

const clientInfo = { name: 'bench', version: '1' }
const initialize = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo }
const meta = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': clientInfo,
  'io.modelcontextprotocol/clientCapabilities': {},
}
const requestOf = (method: string, params: object) => `${JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })}\n`
const older = requestOf('initialize', initialize)
const newer = requestOf('server/discover', { _meta: meta })

interface Starter {
  readonly name: string
  readonly args: readonly string[]
  /** The request that is sent at once. It is empty for a command that answers without a request. */
  readonly request: string
  readonly folder?: string
}

const starters: readonly Starter[] = [
  { name: 'bare Node, one line of JSON', args: [program('servers/first-bare.mjs')], request: older },
  { name: 'the SDK, ten lines', args: [program('servers/first-sdk.mjs')], request: older },
  {
    name: '@modelcontextprotocol/server-filesystem',
    args: [peer('node_modules/@modelcontextprotocol/server-filesystem/dist/index.js'), plain],
    request: older,
  },
  { name: 'repomix --mcp', args: [peer('node_modules/repomix/bin/repomix.cjs'), '--mcp'], request: older },
  { name: 'fastmcp, ten lines', args: [peer('fastmcp.mjs')], request: older },
  { name: 'hikidashi, a folder', args: [main, 'serve', plain, '--stdio'], request: older },
  { name: 'the same, `server/discover`', args: [main, 'serve', plain, '--stdio'], request: newer },
  {
    name: 'hikidashi, what `init` writes',
    args: [main, 'serve', '--config', join(configured, 'hikidashi.json'), '--stdio'],
    request: older,
  },
  { name: 'hikidashi, ten mounts', args: [main, 'serve', '--config', tenFile, '--stdio'], request: older },
  { name: '`hikidashi ls`', args: [main, 'ls'], request: '', folder: plain },
]

interface Measured {
  readonly ms: number
  readonly cpu: number
  /** Resident memory, in MiB. `undefined`: the process had already ended. */
  readonly memory: number | undefined
}

/** CPU time of all threads of a process so far, in milliseconds. */
function cpuOf(pid: number): number {
  const spentBy = (id: string): number => {
    try {
      return Number(readFileSync(`/proc/${pid}/task/${id}/schedstat`, 'utf8').split(' ')[0])
    } catch {
      // The thread has just ended.
      return 0
    }
  }
  const threads = readdirSync(`/proc/${pid}/task`)
  return threads.reduce((sum, id) => sum + spentBy(id), 0) / 1e6
}

/** The resident memory of a process, in MiB. */
function memoryOf(pid: number): number | undefined {
  const kib = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
  return kib === undefined ? undefined : Number(kib) / 1024
}

async function firstAnswer({ name, args, request, folder = temporary }: Starter): Promise<Measured> {
  const begun = performance.now()
  const child = spawn(process.execPath, [...args], { cwd: folder, env, stdio: ['pipe', 'pipe', 'ignore'] })
  const ended = once(child, 'exit')
  child.stdin.write(request)
  await Promise.race([
    once(child.stdout, 'data'),
    ended.then(([code]) => Promise.reject(new Error(`${name} ended with ${code} before it answered.`))),
  ])
  const ms = performance.now() - begun
  const pid = child.pid ?? 0
  const measured = { ms, cpu: cpuOf(pid), memory: memoryOf(pid) }
  child.kill('SIGKILL')
  await ended
  return measured
}

function makeFolder(folder: string): void {
  for (let i = 0; i < files; i++) {
    const group = join(folder, `group-${i % 10}`)
    mkdirSync(group, { recursive: true })
    writeFileSync(join(group, `file-${i}.md`), `# File ${i}\n\nA paragraph of text.\n`)
  }
  const git = (...args: readonly string[]) => execFileSync('git', args, { cwd: folder, stdio: 'ignore' })
  git('init', '--quiet')
  git('add', '.')
  git('-c', 'user.name=a', '-c', 'user.email=a@example.com', 'commit', '--quiet', '--message', 'all')
}

/** Ten mounts of ten kinds, none of which needs a network. */
function writeTenMounts(): void {
  const empty = join(temporary, 'empty.db')
  writeFileSync(empty, '')
  mkdirSync(join(temporary, 'prompts'))
  writeFileSync(join(temporary, 'prompts/review.md'), 'Review what follows.\n')
  const mounts = {
    'file:///plain': { provider: 'files', root: plain },
    'git://plain': { provider: 'git', repository: plain },
    'config://plain': { provider: 'settings', root: plain },
    'env://here': { provider: 'env', allow: ['LANG'] },
    'prompts://here': { provider: 'prompts', root: join(temporary, 'prompts') },
    'sqlite://here': { provider: 'sqlite', file: empty },
    'inline://here': { provider: 'inline', resources: { 'one.md': { text: 'One.' } } },
    'packages://here': { provider: 'packages', root: plain },
    'results://here': { provider: 'results' },
    'search://here': { provider: 'search', over: ['file:///plain'] },
  }
  const store = { sqlite: join(temporary, 'store.sqlite') }
  writeFileSync(tenFile, JSON.stringify({ store, mounts }))
}

try {
  installPeers()
  makeFolder(plain)
  makeFolder(configured)
  writeTenMounts()
  execFileSync(process.execPath, [main, 'init', '.'], { cwd: configured, env, stdio: 'ignore' })
  const measured = new Map<string, Measured[]>(starters.map(({ name }) => [name, []]))
  // Run in turns, so that other work of the machine affects all of them. The first round warms the file cache, and does not count.
  for (let run = 0; run <= runs; run++) {
    progress(run === 0 ? 'warming up' : `run ${run} of ${runs}`)
    // Each round begins with another starter, so that none always runs right after the heaviest.
    const first = run % starters.length
    for (const starter of [...starters.slice(first), ...starters.slice(0, first)]) {
      const one = await firstAnswer(starter)
      if (run > 0) measured.get(starter.name)?.push(one)
    }
  }
  const bare = measured.get(starters[0]?.name ?? '') ?? []
  const rows = starters.map(({ name }) => {
    const all = measured.get(name) ?? []
    // Compare each with bare Node of the same round.
    const ratio = (of: 'ms' | 'cpu') => median(all.map((one, run) => one[of] / (bare[run]?.[of] ?? Number.NaN)))
    const memory = all.flatMap((one) => one.memory ?? [])
    return [
      name,
      fixed(median(all.map(({ ms }) => ms)), 0),
      `${fixed(ratio('ms'), 2)} ×`,
      fixed(median(all.map(({ cpu }) => cpu)), 0),
      `${fixed(ratio('cpu'), 2)} ×`,
      memory.length === 0 ? '–' : fixed(median(memory), 0),
    ]
  })
  process.stdout.write(`${table(['', 'ms', 'to bare Node', 'CPU, ms', 'to bare Node', 'memory, MiB'], rows)}\n`)
} finally {
  rmSync(temporary, { recursive: true, force: true })
}
