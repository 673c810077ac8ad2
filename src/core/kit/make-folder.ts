import { existsSync, mkdirSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { errorCodeOf } from '../errors.ts'

/**
 * Creates a folder and the missing ones above it, one by one: on a path below /proc, Node does not return from `mkdir`
 * with `recursive`.
 */
export function makeFolder(folder: string, mode?: number): void {
  if (statSync(folder, { throwIfNoEntry: false })?.isDirectory()) return
  const above = dirname(folder)
  if (above !== folder && !existsSync(above)) makeFolder(above, mode)
  try {
    mkdirSync(folder, { mode })
  } catch (error) {
    // Another process has made the folder meanwhile.
    if (errorCodeOf(error) !== 'EEXIST' || !statSync(folder).isDirectory()) throw error
  }
}
