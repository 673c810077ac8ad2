import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync } from 'node:fs'
import { homedir } from 'node:os'
import { delimiter, dirname, join, resolve } from 'node:path'
import { promisify } from 'node:util'

// `npm run test:node -- 22 24 26.1.0`: runs the tests that depend on Node with these versions of it, one after the other. npm brings
// each version as a package, which is kept in the cache folder of the user.

const root = resolve(import.meta.dirname, '..')
const vitest = join(root, 'node_modules/vitest/vitest.mjs')
const cache = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'hikidashi', 'nodes')

/** The quick tests, and further tests that depend on the version of Node. */
const paths = [
  'test/unit',
  'test/wire',
  'test/contract',
  'test/e2e/sqlite.test.ts',
  'test/attack/sqlite-memory.test.ts',
]

/** Installs a version of Node, and returns the path of its program. */
async function installNode(version: string): Promise<string> {
  const isWindows = process.platform === 'win32'
  const name = `node-${isWindows ? 'win' : process.platform}-${process.arch}`
  const folder = join(cache, version)
  mkdirSync(folder, { recursive: true })
  const args = ['install', '--prefix', folder, '--no-audit', '--no-fund', '--force', `${name}@${version}`]
  await promisify(execFile)('npm', args, { cwd: folder, shell: isWindows })
  return join(folder, 'node_modules', name, 'bin', isWindows ? 'node.exe' : 'node')
}

/**
 * Runs vitest, all its processes and the programs of tests with a Node. Returns whether all tests pass. Many random cases, and programs that
 * have to be installed, show nothing about Node that `npm test` does not show. A test that fails is tried once more: what depends on Node
 * fails again.
 */
async function test(node: string): Promise<boolean> {
  const path = `${dirname(node)}${delimiter}${process.env.PATH ?? ''}`
  const env = { ...process.env, HIKIDASHI_VOLUME: '0.02', HIKIDASHI_REQUIRE: '', PATH: path }
  const child = spawn(node, [vitest, 'run', '--retry=1', ...paths], { cwd: root, env, stdio: 'inherit' })
  const [code] = await once(child, 'exit')
  return code === 0
}

const versions = process.argv.slice(2)
if (versions.some((version) => !/^\d+(?:\.\d+){0,2}$/.test(version)) || versions.length === 0) {
  process.stderr.write('Name versions of Node: npm run test:node -- 22 24\n')
  process.exit(2)
}
const failed = new Set<string>()
for (const version of versions) {
  const node = await installNode(version)
  const { stdout } = await promisify(execFile)(node, ['--version'])
  process.stdout.write(`\n== Node ${stdout}`)
  if (!(await test(node))) failed.add(version)
}
if (failed.size > 0) {
  process.stderr.write(`Tests fail with Node ${[...failed].join(', ')}.\n`)
  process.exit(1)
}
