import { execFile } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

const cache = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'hikidashi', 'nodes')

/**
 * Installs a version of Node from npm into the cache folder of the user.
 *
 * @param platform The system that it is for. Default: this one.
 * @returns The path of its program.
 */
export async function installNode(version: string, platform = process.platform): Promise<string> {
  const isForWindows = platform === 'win32'
  const arch = platform === process.platform ? process.arch : 'x64'
  const name = `node-${isForWindows ? 'win' : platform}-${arch}`
  // npm removes what it was not told to install, so a folder has one program.
  const folder = join(cache, `${platform}-${arch}`, version)
  mkdirSync(folder, { recursive: true })
  const args = ['install', '--prefix', folder, '--no-save', '--no-audit', '--no-fund', '--force', `${name}@${version}`]
  await promisify(execFile)('npm', args, { cwd: folder, shell: process.platform === 'win32' })
  return join(folder, 'node_modules', name, 'bin', isForWindows ? 'node.exe' : 'node')
}

/** Installs a package into the cache folder of the user. Returns the path of its program, which has the name of the package. */
export async function installPackage(name: string): Promise<string> {
  const folder = join(cache, name)
  mkdirSync(folder, { recursive: true })
  const args = ['install', '--prefix', folder, '--no-save', '--no-audit', '--no-fund', name]
  await promisify(execFile)('npm', args, { cwd: folder, shell: process.platform === 'win32' })
  return join(folder, 'node_modules', '.bin', name)
}
