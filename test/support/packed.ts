import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { home, sharedVariable } from './run-folders.ts'

const run = promisify(execFile)

/**
 * The tarball of the package with its declarations, as it was built: it is packed once for all files of a run of tests, which takes the
 * processor several seconds. The test command builds before.
 *
 * @param declare Writes the declarations, where this process has read the sources already. By default a process of its own does.
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
      // Another file packs it. If it fails there, it is tried here.
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
