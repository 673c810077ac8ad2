import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { TestProject } from 'vitest/node'
import { bundle } from '../../scripts/bundle.ts'
import { bundlesFolder, home, runFolderOf, temporaryFolderOf } from './bundle-folder.ts'
import { compileSource } from './compiled-source.ts'

/** The programs that tests start: each is an entry `tests/NAME` of the bundle. */
const programs = [
  ...['support/attack-server', 'support/watch-child', 'fixtures/mcp/live-ours', 'support/host-file-writer'],
  'support/cli-parts',
]

const made: unique symbol = Symbol.for('hikidashi: the bundle of this run of vitest')
/** vitest sets up each of its projects, each time with a module of its own: what they share is kept here. */
const shared = globalThis as typeof globalThis & { [made]?: Promise<void> }

/** Before the tests: bundles what they start as processes and threads (`bundled.ts`, and the plugin in `vitest.config.ts`). */
export function setup(project: TestProject): Promise<void> {
  shared[made] ??= make(join(bundlesFolder, String(process.pid), 'dist'), project)
  return shared[made]
}

/** Beside the bundle of a run: the paths of the folders that it leaves elsewhere, a line for each. */
const elsewhere = 'elsewhere'

async function make(target: string, { vitest }: TestProject): Promise<void> {
  // A run that was killed.
  for (const name of existsSync(bundlesFolder) ? readdirSync(bundlesFolder) : [])
    if (!isRunning(Number(name))) removeRun(join(bundlesFolder, name))
  const root = dirname(target)
  for (const folder of [root, temporaryFolderOf(process.pid)]) mkdirSync(folder, { recursive: true })
  // vitest removes its own folders while it still writes to them.
  const folders = [vitest.getRootProject(), ...vitest.projects].map(({ tmpDir }) => tmpDir)
  writeFileSync(join(root, elsewhere), [runFolderOf(process.pid), ...folders].join('\n'))
  process.once('exit', () => removeRun(root))
  // The bundle reads these beside its own folder.
  for (const name of ['package.json', 'config.schema.json']) copyFileSync(join(home, name), join(root, name))
  const more = programs.map((path) => [`tests/${path.replace(/^.*\//, '')}`, join(home, `test/${path}.ts`)])
  await Promise.all([bundle({ target, more: Object.fromEntries(more) }), compileSource()])
}

/** Removes what a run has left, by the folder of its bundle. The next run removes what is still written to. */
function removeRun(root: string): void {
  const list = join(root, elsewhere)
  const folders = existsSync(list) ? readFileSync(list, 'utf8').split('\n') : []
  for (const folder of [...folders, join(root, 'dist')]) remove(folder)
  if (folders.every((folder) => !existsSync(folder))) remove(root)
}

/** Removes a folder as far as it can: a process of a test that was interrupted may still write to it. */
function remove(folder: string): void {
  try {
    rmSync(folder, { recursive: true, force: true, maxRetries: 3 })
  } catch {
    // It is tried again by the next run.
  }
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}
