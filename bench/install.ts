/**
 * `npx tsx bench/install.ts`, after a build: measures the installation of hikidashi and of other packages (`bench/peers/package.json`).
 * It downloads packages from the npm registry.
 */
import { execFileSync } from 'node:child_process'
import { existsSync, lstatSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { peerVersions } from './peers.ts'
import { fixed, progress, table } from './support.ts'

const root = resolve(import.meta.dirname, '..')
const folder = mkdtempSync(join(tmpdir(), 'hikidashi-install-'))
/** The packages that are compared with hikidashi, each installed by itself. */
const others = [
  ...[
    '@modelcontextprotocol/server-filesystem',
    '@modelcontextprotocol/server-everything',
    '@modelcontextprotocol/sdk',
  ],
  ...['fastmcp', 'tmcp', 'mcp-use', 'xmcp', 'repomix'],
]

/** The bytes of all files below a folder. */
function sizeOf(path: string): number {
  const stats = lstatSync(path)
  if (!stats.isDirectory()) return stats.size
  return readdirSync(path).reduce((sum, name) => sum + sizeOf(join(path, name)), 0)
}

/** Number of packages that are installed below a folder, at any depth. */
function packagesIn(modules: string): number {
  if (!existsSync(modules)) return 0
  const names = readdirSync(modules).flatMap((name) =>
    name.startsWith('@') ? readdirSync(join(modules, name)).map((inner) => join(name, inner)) : [name],
  )
  const packages = names.filter((name) => existsSync(join(modules, name, 'package.json')))
  return packages.reduce((sum, name) => sum + 1 + packagesIn(join(modules, name, 'node_modules')), 0)
}

function install(name: string, what: string): readonly string[] {
  progress(`installing ${name}`)
  const target = join(folder, name.replace(/\W+/g, '-'))
  mkdirSync(target)
  writeFileSync(join(target, 'package.json'), '{ "private": true }')
  const begun = performance.now()
  // Each installation begins with an empty cache, as on a new machine.
  const flags = ['--no-audit', '--no-fund', '--ignore-scripts', '--cache', join(target, '.cache')]
  execFileSync('npm', ['install', ...flags, what], { cwd: target, stdio: 'pipe' })
  const seconds = (performance.now() - begun) / 1000
  const modules = join(target, 'node_modules')
  return [name, fixed(sizeOf(modules) / 1e6), String(packagesIn(modules)), fixed(seconds)]
}

try {
  const packed = execFileSync('npm', ['pack', '--json', '--pack-destination', folder], {
    cwd: root,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  const [{ filename }] = JSON.parse(packed.slice(packed.indexOf('[\n'))) as [{ readonly filename: string }]
  const rows = [
    install('hikidashi', join(folder, filename)),
    ...others.map((name) => install(`${name} ${peerVersions()[name]}`, `${name}@${peerVersions()[name]}`)),
  ]
  process.stdout.write(`${table(['package', 'MB', 'packages', 'seconds'], rows)}\n`)
} finally {
  rmSync(folder, { recursive: true })
}
