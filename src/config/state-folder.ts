import { isAbsolute, join } from 'node:path'
import { homeFolder } from '../core/kit/home.ts'

/**
 * The state folder of this user: `$XDG_STATE_HOME/hikidashi`, by default `~/.local/state/hikidashi`; on Windows
 * `%LOCALAPPDATA%\hikidashi`. A relative value is ignored, as the XDG Base Directory Specification demands.
 */
export function stateFolder(env: Readonly<Record<string, string | undefined>> = process.env): string {
  const isWindows = process.platform === 'win32'
  const stateHome = isWindows ? env.LOCALAPPDATA : env.XDG_STATE_HOME
  const byDefault = isWindows ? join(homeFolder(), 'AppData', 'Local') : join(homeFolder(), '.local', 'state')
  return join(stateHome !== undefined && isAbsolute(stateHome) ? stateHome : byDefault, 'hikidashi')
}

/** The file name of the configuration in the current folder. */
export const defaultConfigName = 'hikidashi.json'
