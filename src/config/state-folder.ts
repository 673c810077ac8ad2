import { homedir } from 'node:os'
import { basename, isAbsolute, join, resolve } from 'node:path'

/**
 * The folder in which hikidashi keeps what it remembers for this user: `$XDG_STATE_HOME/hikidashi`, by default
 * `~/.local/state/hikidashi`; on Windows `%LOCALAPPDATA%\hikidashi`. A relative value is ignored, as the XDG Base Directory
 * Specification demands: it would name a folder in whatever folder is current.
 */
export function stateFolder(env: Readonly<Record<string, string | undefined>> = process.env): string {
  const isWindows = process.platform === 'win32'
  const named = isWindows ? env.LOCALAPPDATA : env.XDG_STATE_HOME
  const byDefault = isWindows ? join(homedir(), 'AppData', 'Local') : join(homedir(), '.local', 'state')
  return join(named !== undefined && isAbsolute(named) ? named : byDefault, 'hikidashi')
}

/**
 * The file in the state folder that keeps the store of a configuration (by the folder that it lies in), or of folders that are served
 * without one.
 */
export function defaultStoreFile(
  folders: readonly string[],
  env?: Readonly<Record<string, string | undefined>>,
): string {
  const [first = ''] = folders
  const paths = folders.map((folder) => resolve(folder))
  // Loaded when it is needed: node:crypto takes a start several milliseconds.
  const { createHash } = process.getBuiltinModule('node:crypto')
  const digest = createHash('sha256').update(paths.join('\0')).digest('hex').slice(0, 8)
  return join(stateFolder(env), `${basename(first) || 'root'}-${digest}`, 'store.sqlite')
}
