import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { commandOf } from './installed.ts'
import type { Command } from './suite.ts'

/**
 * `npm run package-check`: packs the package as for publication, and checks the tarball with publint and `@arethetypeswrong/cli`. Exits
 * with 1 if either finds a fault.
 */
const root = resolve(import.meta.dirname, '..')

/** Returns the exports that match the `*` in package.json, because the tools check only exports that are named. */
function providerEntries(): readonly string[] {
  const table = readFileSync(join(root, 'src/providers/table.ts'), 'utf8')
  return [...table.matchAll(/from '\.\/([\w-]+)\//g)].map(([, name]) => `./providers/${name}`)
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
  // The package contains only ES modules. `require` of it works from Node 20.19 on.
  const entries = providerEntries()
  const judged = [
    succeeds(commandOf('publint'), [tarball, '--strict']),
    succeeds(commandOf('attw'), [tarball, '--profile', 'esm-only', '--include-entrypoints', ...entries]),
  ]
  process.exitCode = judged.every(Boolean) ? 0 : 1
} finally {
  rmSync(folder, { recursive: true })
}
