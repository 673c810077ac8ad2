import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'

/**
 * `npm run audit:bundle [SBOM]`: asks the registry for known vulnerabilities of exactly the npm packages that are bundled, in the versions that
 * `dist/sbom.cdx.json` lists. `npm audit` in the repository would see no dependencies, because bundled packages are devDependencies.
 *
 * Exits with 1 for a vulnerability, and with 2 if the registry gives no answer. SQLite and PDFium are compiled into two of the packages; the
 * registry has no advisories for them.
 */
interface Component {
  readonly name: string
  readonly version: string
}

/** Returns the files of a project that depends on the components, each under an alias, because some are bundled in several versions. */
function projectOf(components: readonly Component[]) {
  const aliased = components.map((component, index) => ({ alias: `bundled-${index}`, ...component }))
  const dependencies = Object.fromEntries(
    aliased.map(({ alias, name, version }) => [alias, `npm:${name}@${version}`] as const),
  )
  const own = { name: 'bundle', version: '0.0.0', dependencies }
  const packages = Object.fromEntries(
    aliased.map(({ alias, name, version }) => [`node_modules/${alias}`, { name, version }] as const),
  )
  return { own, lock: { ...own, lockfileVersion: 3, requires: true, packages: { '': own, ...packages } } }
}

interface Audit {
  readonly vulnerabilities?: Readonly<
    Record<string, { readonly name: string; readonly severity: string; readonly via: readonly unknown[] }>
  >
  readonly message?: string
}

function auditOf(components: readonly Component[]): { readonly audit: Audit; readonly said: string } {
  const folder = mkdtempSync(join(tmpdir(), 'hikidashi-audit-'))
  try {
    const { own, lock } = projectOf(components)
    writeFileSync(join(folder, 'package.json'), JSON.stringify(own))
    writeFileSync(join(folder, 'package-lock.json'), JSON.stringify(lock))
    const { stdout, stderr } = spawnSync('npm', ['audit', '--package-lock-only', '--json', '--audit=true'], {
      cwd: folder,
      encoding: 'utf8',
      maxBuffer: 64 * 2 ** 20,
      shell: process.platform === 'win32',
    })
    return { audit: parsed(stdout), said: stderr.trim() }
  } finally {
    rmSync(folder, { recursive: true })
  }
}

function parsed(text: string): Audit {
  try {
    return JSON.parse(text) as Audit
  } catch {
    return {}
  }
}

const file = resolve(process.argv[2] ?? join(import.meta.dirname, '../dist/sbom.cdx.json'))
const { components } = JSON.parse(readFileSync(file, 'utf8')) as { readonly components: readonly Component[] }
const { audit, said } = auditOf(components)
if (components.length === 0 || audit.vulnerabilities === undefined) {
  process.stderr.write(`The bundled packages could not be audited: ${audit.message ?? said}\n`)
  process.exitCode = 2
} else {
  const found = Object.values(audit.vulnerabilities)
  for (const { name, severity, via } of found) process.stderr.write(`${severity}: ${name} ${JSON.stringify(via)}\n`)
  process.stderr.write(`${components.length} bundled packages, ${found.length} with known vulnerabilities.\n`)
  process.exitCode = found.length === 0 ? 0 : 1
}
