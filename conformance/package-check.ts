import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { commandOf } from './installed.ts'
import type { Command } from './suite.ts'

/**
 * `npm run package-check`: packs the package as it would be published, and has publint and `@arethetypeswrong/cli` judge the
 * tarball. Ends with 1 when either finds a fault.
 */
const root = resolve(import.meta.dirname, '..')

/** The exports that stand behind a `*` in package.json: the tools look at those that they are told of. */
function providerEntries(): readonly string[] {
  const table = readFileSync(join(root, 'src/providers/index.ts'), 'utf8')
  return [...table.matchAll(/import\('\.\/([\w-]+)\//g)].map(([, name]) => `./providers/${name}`)
}

function succeeds([program, ...before]: Command, args: readonly string[]): boolean {
  return spawnSync(program, [...before, ...args], { stdio: 'inherit' }).status === 0
}

const folder = mkdtempSync(join(tmpdir(), 'hikidashi-package-'))
try {
  const packed = execFileSync('npm', ['pack', '--silent', '--pack-destination', folder], {
    cwd: root,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
    shell: process.platform === 'win32',
  })
  const tarball = join(folder, packed.trim().split('\n').at(-1) ?? '')
  // The package is for ES modules alone: `require` of it works from Node 20.19 on, and older programs are told so.
  const entries = providerEntries()
  const judged = [
    succeeds(commandOf('publint'), [tarball, '--strict']),
    succeeds(commandOf('attw'), [tarball, '--profile', 'esm-only', '--include-entrypoints', ...entries]),
  ]
  process.exitCode = judged.every(Boolean) ? 0 : 1
} finally {
  rmSync(folder, { recursive: true })
}
