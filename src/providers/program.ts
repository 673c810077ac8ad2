import { constants } from 'node:fs'
import { access, realpath, stat } from 'node:fs/promises'
import { delimiter, isAbsolute, join } from 'node:path'

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
