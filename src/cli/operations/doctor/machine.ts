import { readFileSync, statSync } from 'node:fs'
import type { Findings } from '../../commands/doctor.ts'
import { formatTime } from '../../terminal/io.ts'
import { packageVersion } from '../command-line.ts'

/** Checks the requirements of hikidashi itself. */
export async function checkMachine(
  { tell }: Findings,
  { version = process.versions.node, now = Date.now() }: { readonly version?: string; readonly now?: number } = {},
): Promise<void> {
  const wanted = wantedNode()
  const found = `Node ${version}, hikidashi ${packageVersion()}, ${process.platform} ${process.arch}`
  if (isAtLeast(version, wanted)) tell({ check: 'node', status: 'ok', found })
  else
    tell({
      check: 'node',
      status: 'failed',
      found: `${found}: Node ${wanted} or later is needed.`,
      fix: `Install it from https://nodejs.org, or: nvm install ${wanted.split('.')[0]}`,
    })
  const installed = statSync(new URL('../../../../package.json', import.meta.url)).mtimeMs
  // One hour: tolerates file systems of other machines and a wrong summer time.
  if (now > installed - 3_600_000) return tell({ check: 'clock', status: 'ok', found: formatTime(now) })
  tell({
    check: 'clock',
    status: 'failed',
    found: `It is ${formatTime(now)} here, before hikidashi was installed: tokens and certificates will be refused.`,
    fix: process.platform === 'linux' ? 'sudo timedatectl set-ntp true' : 'Set the clock of this machine.',
  })
}

/** The oldest Node that package.json allows. */
function wantedNode(): string {
  const text = readFileSync(new URL('../../../../package.json', import.meta.url), 'utf8')
  const { engines } = JSON.parse(text) as { readonly engines?: { readonly node?: string } }
  return engines?.node?.replace(/^>=/, '') ?? '20'
}

function isAtLeast(version: string, wanted: string): boolean {
  const [have, want] = [version, wanted].map((text) => text.split('.').map(Number))
  for (let i = 0; i < 3; i++) {
    const difference = (have?.[i] ?? 0) - (want?.[i] ?? 0)
    if (difference !== 0) return difference > 0
  }
  return true
}
