import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { progress } from './support.ts'

/** The folder with a separate installation of other servers. Its `package.json` names their exact versions. */
export const peersFolder = resolve(import.meta.dirname, 'peers')

/** Installs the other servers from the lock file, unless they are installed. */
export function installPeers(): void {
  if (existsSync(join(peersFolder, 'node_modules/.package-lock.json'))) return
  progress('installing the other servers')
  execFileSync('npm', ['ci'], { cwd: peersFolder, stdio: ['ignore', 'ignore', 'inherit'] })
}

/** The other servers by their names in the registry, each with its exact version. */
export function peerVersions(): Readonly<Record<string, string>> {
  const { dependencies } = JSON.parse(readFileSync(join(peersFolder, 'package.json'), 'utf8')) as {
    readonly dependencies: Readonly<Record<string, string>>
  }
  return dependencies
}
