import { homedir } from 'node:os'
import { posix, win32 } from 'node:path'
import type { Place } from './types.ts'

/** This machine, and the current folder of the command. */
export function placeHere(folder = process.cwd()): Place {
  return { platform: process.platform, env: process.env, home: homedir(), folder }
}

export function joined({ platform }: Pick<Place, 'platform'>, ...parts: readonly string[]): string {
  return (platform === 'win32' ? win32 : posix).join(...parts)
}

/** Returns an environment variable; undefined if it is empty. */
export function saying({ env }: Place, name: string): string | undefined {
  const value = env[name]
  return value === undefined || value === '' ? undefined : value
}

/** Returns the folder for settings of programs on Linux, and of terminal programs on macOS. */
export function configFolder(place: Place): string {
  return saying(place, 'XDG_CONFIG_HOME') ?? joined(place, place.home, '.config')
}

/** Returns the folder for settings of desktop programs. */
export function applicationFolder(place: Place): string {
  if (place.platform === 'win32') return saying(place, 'APPDATA') ?? joined(place, place.home, 'AppData', 'Roaming')
  if (place.platform === 'darwin') return joined(place, place.home, 'Library', 'Application Support')
  return configFolder(place)
}

/** A file in the folder of the project. */
export function inProject(...parts: readonly string[]): (place: Place) => readonly string[] {
  return (place) => [joined(place, place.folder, ...parts)]
}
