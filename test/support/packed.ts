import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { home, sharedVariable } from './run-folders.ts'

const run = promisify(execFile)

/**
 * Returns the tarball of the built package with its declarations. It is packed once for a test run, because that takes several
 * seconds of CPU. The test command builds before.
 * @param declare Writes the declarations, if this process has already read the sources. By default a separate process does it.
 */
export async function packedPackage(declare: () => unknown = declareInChild): Promise<string> {
  const shared = process.env[sharedVariable] ?? mkdtempSync(join(tmpdir(), 'hikidashi-packed-'))
  mkdirSync(shared, { recursive: true })
  const known = join(shared, 'packed')
  const lock = join(shared, 'packing')
  while (!existsSync(known)) {
    try {
      mkdirSync(lock)
    } catch {
      // Another test file is packing it. If that fails, this one tries.
      await new Promise((resolve) => setTimeout(resolve, 100))
      continue
    }
    try {
      if (!existsSync(known)) await pack(shared, known, declare)
    } finally {
      rmdirSync(lock)
    }
  }
  const [name = ''] = readdirSync(known)
  return join(known, name)
}

const declareInChild = () =>
  run(process.execPath, ['--import', 'tsx', join(home, 'scripts/declarations.ts')], { cwd: home })

async function pack(shared: string, known: string, declare: () => unknown): Promise<void> {
  const made = mkdtempSync(join(shared, 'made-'))
  await declare()
  await run('npm', ['pack', '--ignore-scripts', '--pack-destination', made], { cwd: home })
  renameSync(made, known)
}
