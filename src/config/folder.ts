import { stat } from 'node:fs/promises'
import { homedir } from 'node:os'
import { basename, isAbsolute, join, relative, resolve, sep } from 'node:path'
import { errorCodeOf } from '../core/errors.ts'
import type { Finding } from './problem.ts'

/** Checks a file to serve. Returns findings at its key, or no findings when the file exists. */
export async function checkFile(path: string, key: Finding['path']): Promise<readonly Finding[]> {
  const finding = (message: string, fix: string) => [{ path: key, message, fix }]
  try {
    const stats = await stat(path)
    return stats.isFile() ? [] : finding(`${path} is not a file.`, 'Name a file.')
  } catch (error) {
    const code = errorCodeOf(error) ?? 'unknown'
    if (!isMissing(code)) return finding(`The file ${path} cannot be opened (${code}).`, 'Let this user read it.')
    return finding(`There is no file ${path}.`, `Create it, or correct the path; ${relativePaths}`)
  }
}

/** Checks a folder to serve. Returns findings at its key, or no findings when the folder exists. */
export async function checkFolder(path: string, key: Finding['path']): Promise<readonly Finding[]> {
  const finding = (message: string, fix: string) => [{ path: key, message, fix }]
  try {
    if ((await stat(path)).isDirectory()) return []
    return finding(`${path} is not a folder.`, 'Name the folder that it is in, and what to take from it in "include".')
  } catch (error) {
    const code = errorCodeOf(error) ?? 'unknown'
    if (!isMissing(code)) return finding(`The folder ${path} cannot be opened (${code}).`, 'Let this user read it.')
    return finding(`There is no folder ${path}.`, `Create it, or correct the path; ${relativePaths}`)
  }
}

const relativePaths = 'a relative one starts at the configuration file.'

function isMissing(code: string): boolean {
  return code === 'ENOENT' || code === 'ENOTDIR'
}

/**
 * The state folder of hikidashi for this user: `$XDG_STATE_HOME/hikidashi`, by default `~/.local/state/hikidashi`; on Windows
 * `%LOCALAPPDATA%\hikidashi`. A relative value is ignored, as the XDG Base Directory Specification demands, because its meaning
 * would depend on the current folder.
 */
export function stateFolder(env: Readonly<Record<string, string | undefined>> = process.env): string {
  const isWindows = process.platform === 'win32'
  const named = isWindows ? env.LOCALAPPDATA : env.XDG_STATE_HOME
  const byDefault = isWindows ? join(homedir(), 'AppData', 'Local') : join(homedir(), '.local', 'state')
  return join(named !== undefined && isAbsolute(named) ? named : byDefault, 'hikidashi')
}

/** The file in the state folder with the store of a configuration (by its folder), or of folders without a configuration. */
export function defaultStoreFile(
  folders: readonly string[],
  env?: Readonly<Record<string, string | undefined>>,
): string {
  const [first = ''] = folders
  const paths = folders.map((folder) => resolve(folder))
  // Loaded at its first use, because loading node:crypto slows down a start.
  const { createHash } = process.getBuiltinModule('node:crypto')
  const digest = createHash('sha256').update(paths.join('\0')).digest('hex').slice(0, 8)
  return join(stateFolder(env), `${basename(first) || 'root'}-${digest}`, 'store.sqlite')
}

/** The file name of the configuration in the current folder. */
export const defaultConfig = 'hikidashi.json'

/** Whether a path lies in a folder, or is the folder. */
export function isInside(file: string, folder: string): boolean {
  const path = relative(folder, file)
  return !isAbsolute(path) && path !== '..' && !path.startsWith(`..${sep}`)
}
