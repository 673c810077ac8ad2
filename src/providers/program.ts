import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process'
import { accessSync, constants } from 'node:fs'
import { access, realpath, stat } from 'node:fs/promises'
import { delimiter, isAbsolute, join } from 'node:path'
import { type ChildLimits, limitedCommand } from '../core/kit/child-limits.ts'

/**
 * The absolute path of a program on the PATH of this process. Relative members of the PATH are passed over: what lies in the
 * working directory is not run. `undefined` where there is none.
 */
export async function findProgram(name: string): Promise<string | undefined> {
  const folders = (process.env.PATH ?? '').split(delimiter).filter(isAbsolute)
  for (const folder of folders) {
    const path = join(folder, name)
    if (await isProgram(path)) return path
  }
  return undefined
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

/** POSIX does not fix the place of the shell; every Linux and macOS that has one has it here. */
const shell = '/bin/sh'
let hasShell: boolean | undefined

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
  hasShell ??= canRunShell()
  if (!hasShell) return spawn(program, [...args], options)
  const command = limitedCommand(shell, program, args, limits)
  return spawn(command.program, [...command.args], options)
}

function canRunShell(): boolean {
  if (process.platform === 'win32') return false
  try {
    accessSync(shell, constants.X_OK)
    return true
  } catch {
    return false
  }
}
