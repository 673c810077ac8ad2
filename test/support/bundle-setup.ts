import { copyFileSync, existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { bundle } from '../../scripts/bundle.ts'
import { bundlesFolder, home, sharedFolderOf, stateFolderOf } from './bundle-folder.ts'

/** The programs that tests start: each is an entry `tests/NAME` of the bundle. */
const programs = ['support/attack-server', 'support/watch-child', 'fixtures/mcp/live-ours', 'support/host-file-writer']

const made: unique symbol = Symbol.for('hikidashi: the bundle of this run of vitest')
/** vitest sets up each of its projects, each time with a module of its own: what they share is kept here. */
const shared = globalThis as typeof globalThis & { [made]?: Promise<void> }

/** Before the tests: bundles what they start as processes and threads (`bundled.ts`, and the plugin in `vitest.config.ts`). */
export function setup(): Promise<void> {
  shared[made] ??= make(join(bundlesFolder, String(process.pid), 'dist'))
  return shared[made]
}

async function make(target: string): Promise<void> {
  removeOld()
  const root = dirname(target)
  mkdirSync(root, { recursive: true })
  process.once('exit', () => {
    for (const folder of [root, stateFolderOf(process.pid), sharedFolderOf(process.pid)])
      rmSync(folder, { recursive: true, force: true })
  })
  // The bundle reads these beside its own folder.
  for (const name of ['package.json', 'config.schema.json']) copyFileSync(join(home, name), join(root, name))
  const more = programs.map((path) => [`tests/${path.replace(/^.*\//, '')}`, join(home, `test/${path}.ts`)])
  await bundle({ target, more: Object.fromEntries(more) })
}

/** Removes what runs that were killed have left. */
function removeOld(): void {
  for (const name of existsSync(bundlesFolder) ? readdirSync(bundlesFolder) : [])
    if (!isRunning(Number(name))) rmSync(join(bundlesFolder, name), { recursive: true, force: true })
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}
