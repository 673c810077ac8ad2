import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process'
import { accessSync, constants } from 'node:fs'
import { access, realpath, stat } from 'node:fs/promises'
import { join, posix, win32 } from 'node:path'
import { type ChildLimits, limitedCommand } from '../core/kit/workers.ts'

/**
 * Returns the absolute path of a program on the PATH of this process; `undefined` if there is none. Relative members of the
 * PATH are skipped, so that no program in the working directory runs.
 */
export async function findProgram(
  name: string,
  env: Environment = process.env,
  platform: NodeJS.Platform = process.platform,
): Promise<string | undefined> {
  const { delimiter, isAbsolute } = platform === 'win32' ? win32 : posix
  for (const folder of (env.PATH ?? '').split(delimiter).filter(isAbsolute))
    for (const file of programFiles(name, env, platform)) {
      const path = join(folder, file)
      if (await isProgram(path)) return path
    }
  return undefined
}

type Environment = Readonly<Record<string, string | undefined>>

/** Returns the names that the file of a program may have: on Windows, with each ending of PATHEXT, unless it has one already. */
export function programFiles(
  name: string,
  env: Environment = process.env,
  platform: NodeJS.Platform = process.platform,
): readonly string[] {
  if (platform !== 'win32') return [name]
  const endings = (env.PATHEXT || '.COM;.EXE;.BAT;.CMD').split(';').filter((ending) => ending !== '')
  const hasEnding = endings.some((ending) => name.toLowerCase().endsWith(ending.toLowerCase()))
  return hasEnding ? [name] : endings.map((ending) => name + ending.toLowerCase())
}

/** Whether a file can be run by this user. */
export async function isProgram(path: string): Promise<boolean> {
  try {
    await access(path, constants.X_OK)
    return (await stat(await realpath(path))).isFile()
  } catch {
    return false
  }
}

/** Path of the shell on Linux and macOS, although POSIX does not fix it. */
const shellPath = '/bin/sh'
let hasShell: boolean | undefined

/** Returns the path of a POSIX shell; `undefined` on Windows, and where there is no `/bin/sh`. */
export function findShell(): string | undefined {
  hasShell ??= canRunShell()
  return hasShell ? shellPath : undefined
}

/**
 * Starts a program with limits on its memory, time and files. On Windows, and where there is no `/bin/sh`, it starts without
 * them.
 *
 * @param program An absolute path.
 */
export function spawnLimited(
  program: string,
  args: readonly string[],
  limits: ChildLimits,
  options: SpawnOptions,
): ChildProcess {
  const shell = findShell()
  if (shell === undefined) return spawn(program, [...args], options)
  const command = limitedCommand(shell, program, args, limits)
  return spawn(command.program, [...command.args], options)
}

function canRunShell(): boolean {
  if (process.platform === 'win32') return false
  try {
    accessSync(shellPath, constants.X_OK)
    return true
  } catch {
    return false
  }
}
