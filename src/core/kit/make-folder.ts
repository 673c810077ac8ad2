import { existsSync, mkdirSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { errorCodeOf } from '../errors.ts'

/**
 * Creates a folder and the missing ones above it, one by one. It does not use `recursive`: on a path below /proc, Node never returns from
 * that.
 *
 * @param mode The permissions of created folders. By default those of the process.
 * @throws the error of the system.
 */
export function makeFolder(folder: string, mode?: number): void {
  if (statSync(folder, { throwIfNoEntry: false })?.isDirectory()) return
  const above = dirname(folder)
  if (above !== folder && !existsSync(above)) makeFolder(above, mode)
  try {
    mkdirSync(folder, { mode })
  } catch (error) {
    // Another process has made it meanwhile.
    if (errorCodeOf(error) !== 'EEXIST' || !statSync(folder).isDirectory()) throw error
  }
}
