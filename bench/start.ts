/** How long a client waits for the first answer, and the CPU until then: `npx tsx bench/start.ts [runs]`, after a build. */
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { fixed, median, progress, table } from './support.ts'

const runs = Number(process.argv[2] ?? 15)
const files = 200
const program = (name: string) => fileURLToPath(new URL(name, import.meta.url))
const main = program('../dist/cli/main.js')
const folder = mkdtempSync(join(tmpdir(), 'hikidashi-start-'))

const meta = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': { name: 'bench', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': {},
}
const clientInfo = { name: 'bench', version: '1' }
const requests: Readonly<Record<string, object>> = {
  initialize: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo },
  'server/discover': { _meta: meta },
}

/** The CPU time of a process so far, of all its threads, in milliseconds (Linux). */
function cpuOf(pid: number): number {
  const threads = readdirSync(`/proc/${pid}/task`)
  const spent = threads.map((id) => Number(readFileSync(`/proc/${pid}/task/${id}/schedstat`, 'utf8').split(' ')[0]))
  return spent.reduce((sum, ns) => sum + ns, 0) / 1e6
}

async function firstAnswer(args: readonly string[], method: string): Promise<{ ms: number; cpu: number }> {
  const begun = performance.now()
  const child = spawn(process.execPath, [...args], { cwd: folder, stdio: ['pipe', 'pipe', 'ignore'] })
  child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: requests[method] })}\n`)
  await once(child.stdout, 'data')
  const measured = { ms: performance.now() - begun, cpu: cpuOf(child.pid ?? 0) }
  child.kill('SIGKILL')
  await once(child, 'exit')
  return measured
}

try {
  for (let i = 0; i < files; i++) {
    const group = join(folder, `group-${i % 10}`)
    mkdirSync(group, { recursive: true })
    writeFileSync(join(group, `file-${i}.md`), `# File ${i}\n\nA paragraph of text.\n`)
  }
  const git = (...args: readonly string[]) => execFileSync('git', args, { cwd: folder, stdio: 'ignore' })
  git('init', '--quiet')
  git('add', '.')
  git('-c', 'user.name=a', '-c', 'user.email=a@example.com', 'commit', '--quiet', '--message', 'all')
  execFileSync(process.execPath, [main, 'init', '.'], { cwd: folder, stdio: 'ignore' })
  const servers: readonly (readonly [name: string, args: readonly string[]])[] = [
    ['bare Node, one line of JSON', [program('servers/first-bare.mjs')]],
    ['the SDK, ten lines', [program('servers/first-sdk.mjs')]],
    ['hikidashi, a folder', [main, 'serve', folder, '--stdio']],
    ['hikidashi, what `init` writes', [main, 'serve', '--config', 'hikidashi.json', '--stdio']],
  ]
  const measured = new Map<string, { ms: number[]; cpu: number[] }>()
  // In turns, so that what else the machine does falls on all of them.
  for (let run = 0; run < runs; run++) {
    progress(`run ${run + 1} of ${runs}`)
    for (const [name, args] of servers)
      for (const method of Object.keys(requests)) {
        const key = `${name} ${method}`
        const all = measured.get(key) ?? { ms: [], cpu: [] }
        measured.set(key, all)
        const { ms, cpu } = await firstAnswer(args, method)
        all.ms.push(ms)
        all.cpu.push(cpu)
      }
  }
  const rows = servers.map(([name]) => [
    name,
    ...Object.keys(requests).flatMap((method) => {
      const { ms = [], cpu = [] } = measured.get(`${name} ${method}`) ?? {}
      return [fixed(median(ms), 0), fixed(median(cpu), 0)]
    }),
  ])
  const head = ['server', ...Object.keys(requests).flatMap((method) => [`\`${method}\`, ms`, 'CPU, ms'])]
  process.stdout.write(`${table(head, rows)}\n`)
} finally {
  rmSync(folder, { recursive: true, force: true })
}
