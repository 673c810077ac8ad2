import { type SpawnOptions, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, cpSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { installNode } from './nodes.ts'

// `npm run test:windows`: drives the built commands with Node for Windows under wine. `--json FILE` keeps the report.

/** Major versions of Node for Windows, the best one first. wine 8 does not run 24. */
const versions = ['24', '22']

interface Result {
  readonly name: string
  readonly fault?: string
  /** What wine cannot do even without hikidashi. */
  readonly wine?: string
}

const root = resolve(import.meta.dirname, '..')
const folder = mkdtempSync(join(tmpdir(), 'hikidashi-windows-'))
const env = {
  ...process.env,
  WINEPREFIX: join(folder, 'wine'),
  WINEDEBUG: '-all',
  WINEDLLOVERRIDES: 'mscoree,mshtml,winedbg.exe=',
  NODE_SKIP_PLATFORM_CHECK: '1',
}

/** Runs a program under wine. Its standard streams are files: `node.exe` ends with an error if they are pipes of Unix. */
async function wine(args: readonly string[], timeoutMs: number): Promise<{ code: number; out: string; err: string }> {
  const [out, err] = [join(folder, 'out'), join(folder, 'err')]
  const files = [openSync(out, 'w'), openSync(err, 'w')]
  const stdio: SpawnOptions['stdio'] = ['ignore', ...files]
  const child = spawn('wine', args, { cwd: folder, env, stdio, timeout: timeoutMs, killSignal: 'SIGKILL' })
  try {
    const [code] = await once(child, 'exit')
    return { code: code ?? 1, out: readFileSync(out, 'utf8'), err: readFileSync(err, 'utf8') }
  } finally {
    for (const file of files) closeSync(file)
  }
}

async function hasWine(): Promise<boolean> {
  return wine(['--version'], 20_000).then(
    ({ code }) => code === 0,
    () => false,
  )
}

/** The newest Node for Windows that this wine runs. */
async function startableNode(): Promise<string | undefined> {
  for (const version of versions) {
    const node = await installNode(version, 'win32')
    const { code, out } = await wine([node, '--print', 'process.version'], 60_000)
    if (code !== 0) continue
    process.stdout.write(`Node ${out.trim()} for Windows\n`)
    return node
  }
  return undefined
}

async function main(): Promise<number> {
  if (!(await hasWine())) {
    const isRequired = (process.env.HIKIDASHI_REQUIRE ?? '').split(',').includes('wine')
    process.stdout.write('Skipped: wine is not installed. On Debian: apt-get install wine wine64\n')
    return isRequired ? 1 : 0
  }
  await wine(['wineboot', '-i'], 120_000)
  await wine(['winecfg', '-v', 'win10'], 60_000)
  const node = await startableNode()
  if (node === undefined) {
    process.stdout.write('Skipped: this wine runs no supported version of Node for Windows.\n')
    return 0
  }
  const installed = join(folder, 'in stalled 引き出し')
  mkdirSync(installed)
  for (const name of ['dist', 'package.json', 'config.schema.json'])
    cpSync(join(root, name), join(installed, name), { recursive: true })
  const named = process.argv.indexOf('--json')
  const report = named < 0 ? join(folder, 'report.json') : resolve(process.argv[named + 1] ?? 'windows.json')
  const windowsPath = (path: string) => `Z:${path.replaceAll('/', '\\')}`
  const drive = join(import.meta.dirname, 'platforms/drive.mjs')
  const { err } = await wine([node, ...[drive, installed, report].map(windowsPath)], 420_000)
  let results: readonly Result[]
  try {
    results = JSON.parse(readFileSync(report, 'utf8')) as readonly Result[]
  } catch {
    process.stderr.write(`The drive ended without a report, in wine or in itself:\n${err}\n`)
    return 1
  }
  for (const { name, fault, wine } of results) {
    const verdict = fault === undefined ? 'works' : wine === undefined ? 'FAILS' : `wine's: ${wine}`
    process.stdout.write(
      `${verdict.padEnd(6)} ${name}${fault === undefined ? '' : `\n         ${fault.replaceAll('\n', '\n         ')}`}\n`,
    )
  }
  return results.some(({ fault, wine }) => fault !== undefined && wine === undefined) ? 1 : 0
}

try {
  process.exitCode = await main()
} finally {
  const server = spawn('wineserver', ['-k'], { env, stdio: 'ignore' })
  await once(server, 'exit').catch(() => {})
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
}
