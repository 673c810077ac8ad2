import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process'
import { accessSync, constants } from 'node:fs'
import { type ChildLimits, limitedCommand } from '../core/kit/child-limits.ts'

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
