import { execFileSync } from 'node:child_process'
import { copyFileSync, mkdirSync, readdirSync, rmSync, statSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import type { TestProject } from 'vitest/node'
import { bundle } from '../../scripts/bundle.ts'
import { bundleFolder, home, runFolderOf, temporaryFolderOf } from './run-folders.ts'

/** The test programs: each is an entry `tests/NAME` of the bundle. */
const programs = [
  ...['attack/harness/server', 'attack/harness/watch-child', 'fixtures/mcp/live-ours', 'support/host-file-writer'],
  'support/cli-parts',
]

const begun: unique symbol = Symbol.for('hikidashi: the setup of this run of vitest')
/** vitest runs the set-up of each project in its own module, so shared state is global. */
const shared = globalThis as typeof globalThis & { [begun]?: Promise<void> }

/** Runs before the tests: builds `dist/` and the test programs, unless they are newer than their sources. */
export function setup(project: TestProject): Promise<void> {
  shared[begun] ??= begin(project)
  return shared[begun]
}

async function begin({ vitest }: TestProject): Promise<void> {
  mkdirSync(temporaryFolderOf(process.pid), { recursive: true })
  // vitest removes its folders while tests still write to them.
  const folders = [vitest.getRootProject(), ...vitest.projects].map(({ tmpDir }) => tmpDir)
  process.once('exit', () => {
    for (const folder of [runFolderOf(process.pid), ...folders]) remove(folder)
  })
  const changed = newest([
    'package-lock.json',
    'scripts',
    'src',
    'test/support',
    'test/attack/harness',
    'test/fixtures/mcp',
  ])
  if (changed > newest(['dist/sbom.cdx.json']))
    execFileSync(process.execPath, ['--import', 'tsx', 'scripts/build.ts'], { cwd: home, stdio: 'inherit' })
  if (changed <= newest([join(bundleFolder, 'index.js')])) return
  const root = dirname(bundleFolder)
  rmSync(root, { recursive: true, force: true })
  mkdirSync(root, { recursive: true })
  // The bundle reads these files beside its folder.
  for (const name of ['package.json', 'config.schema.json']) copyFileSync(join(home, name), join(root, name))
  const more = programs.map((path) => [`tests/${path.replace(/^.*\//, '')}`, join(home, `test/${path}.ts`)])
  await bundle({ target: bundleFolder, more: Object.fromEntries(more) })
}

/**
 * Returns the modification time of the newest file, in milliseconds since 1970; 0 if there is none. Paths are relative to the
 * root; a folder stands for its files.
 */
function newest(paths: readonly string[]): number {
  const times = paths.map((path) => {
    const stat = statSync(resolve(home, path), { throwIfNoEntry: false })
    return stat?.isDirectory()
      ? newest(readdirSync(resolve(home, path)).map((name) => join(path, name)))
      : stat?.mtimeMs
  })
  return Math.max(0, ...times.map((time) => time ?? 0))
}

/** Removes as much of a folder as possible: a process of an interrupted test may still write to it. */
function remove(folder: string): void {
  try {
    rmSync(folder, { recursive: true, force: true, maxRetries: 3 })
  } catch {
    // It is among temporary files, which the system removes.
  }
}
