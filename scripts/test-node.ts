import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { delimiter, dirname, resolve } from 'node:path'
import { promisify } from 'node:util'
import { installNode } from './nodes.ts'

// `npm run test:node -- 22 24 26.1.0`: runs the tests that depend on Node with these versions of it, one after the other; with `--whole`,
// `npm test`. npm brings each version as a package, which is kept in the cache folder of the user.

const root = resolve(import.meta.dirname, '..')

/** The quick tests, and further tests that depend on the version of Node. */
const paths = [
  'test/unit',
  'test/wire',
  'test/contract',
  'test/e2e/sqlite.test.ts',
  'test/attack/sqlite-memory.test.ts',
]

/**
 * Runs vitest, all its processes and the programs of tests with a Node. Returns whether all tests pass. Many random cases, and programs that
 * have to be installed, show nothing about Node that `npm test` does not show. A test that fails is tried once more: what depends on Node
 * fails again.
 */
async function test(node: string): Promise<boolean> {
  const part = isWhole ? {} : { HIKIDASHI_VOLUME: '0.02', HIKIDASHI_REQUIRE: '' }
  const env = { ...process.env, ...part, PATH: `${dirname(node)}${delimiter}${process.env.PATH ?? ''}` }
  const args = isWhole ? ['test'] : ['test', '--', '--retry=1', ...paths]
  const child = spawn('npm', args, { cwd: root, env, stdio: 'inherit', shell: process.platform === 'win32' })
  const [code] = await once(child, 'exit')
  return code === 0
}

const isWhole = process.argv.includes('--whole')
const versions = process.argv.slice(2).filter((argument) => argument !== '--whole')
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
