import { stat } from 'node:fs/promises'
import { homedir } from 'node:os'
import { resolve } from 'node:path'
import type { Finding } from './problem.ts'

/** A folder as a configuration names it: relative to a folder, or to the home folder by `~/`. Answers the absolute path. */
export function resolveFolder(name: string, from: string): string {
  return /^~(?=[\\/]|$)/.test(name) ? resolve(homedir(), name.slice(2)) : resolve(from, name)
}

/** Checks a file to serve and returns findings at its key; none when the file exists. */
export async function checkFile(path: string, key: Finding['path']): Promise<readonly Finding[]> {
  const finding = (message: string, fix: string) => [{ path: key, message, fix }]
  try {
    const stats = await stat(path)
    return stats.isFile() ? [] : finding(`${path} is not a file.`, 'Name a file.')
  } catch (error) {
    const code = codeOf(error)
    if (!isMissing(code)) return finding(`The file ${path} cannot be opened (${code}).`, 'Let this user read it.')
    return finding(`There is no file ${path}.`, `Create it, or correct the path; ${relativePaths}`)
  }
}

/** Checks a folder to serve and returns findings at its key; none when the folder exists. */
export async function checkFolder(path: string, key: Finding['path']): Promise<readonly Finding[]> {
  const finding = (message: string, fix: string) => [{ path: key, message, fix }]
  try {
    if ((await stat(path)).isDirectory()) return []
    return finding(`${path} is not a folder.`, 'Name the folder that it is in, and what to take from it in "include".')
  } catch (error) {
    const code = codeOf(error)
    if (!isMissing(code)) return finding(`The folder ${path} cannot be opened (${code}).`, 'Let this user read it.')
    return finding(`There is no folder ${path}.`, `Create it, or correct the path; ${relativePaths}`)
  }
}

const relativePaths = 'a relative one starts at the configuration file.'

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'unknown'
}

function isMissing(code: string): boolean {
  return code === 'ENOENT' || code === 'ENOTDIR'
}
