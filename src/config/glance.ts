import type { Dirent } from 'node:fs'
import { lstat, readdir } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { createFormats } from '../providers/settings/formats.ts'
import { defaultConfig } from './default-file.ts'

/** The sources that a folder has, as far as the names at its top tell. */
export interface Glance {
  /** The names right in the folder. */
  readonly names: readonly string[]
  /** Whether it is the top of a git repository. */
  readonly git: boolean
  /** Whether there are configuration files right in it. */
  readonly settings: boolean
  /** Whether there is a file `.env`. (A folder of that name is one of Python's environments.) */
  readonly dotenv: boolean
  /** Folders of prompts, as tools name them. */
  readonly prompts: readonly string[]
}

/** Where people and their tools keep prompts. */
const promptFolders = ['prompts', '.github/prompts', '.claude/commands']

/** Looks at the names at the top of a folder. Rejects as `readdir` does for one that cannot be read. */
export async function glanceAt(folder: string): Promise<Glance> {
  const entries = await readdir(folder, { withFileTypes: true })
  const formatOf = createFormats({})
  const names = entries.map(({ name }) => name)
  return {
    names,
    git: names.includes('.git') && (await isRepository(join(folder, '.git'))) && (await isInPath('git')),
    settings: names.some((name) => name !== defaultConfig && formatOf(name) !== undefined),
    dotenv: entries.some((entry) => entry.name === '.env' && entry.isFile()),
    prompts: await promptsIn(folder, entries),
  }
}

/** Whether a `.git` is a repository, or a file that leads to one. */
async function isRepository(path: string): Promise<boolean> {
  const stats = await lstat(path)
  return stats.isFile() || (stats.isDirectory() && (await isThere(join(path, 'HEAD'))))
}

/** Whether a program of this name lies in a folder of PATH. */
async function isInPath(program: string): Promise<boolean> {
  const file = process.platform === 'win32' ? `${program}.exe` : program
  for (const folder of (process.env.PATH ?? '').split(delimiter))
    if (folder !== '' && (await isThere(join(folder, file)))) return true
  return false
}

function isThere(path: string): Promise<boolean> {
  return lstat(path).then(
    () => true,
    () => false,
  )
}

/** The folders of prompts that hold Markdown. */
async function promptsIn(folder: string, entries: readonly Dirent[]): Promise<readonly string[]> {
  const found: string[] = []
  for (const name of promptFolders) {
    const [top = ''] = name.split('/')
    if (!entries.some((entry) => entry.name === top && entry.isDirectory())) continue
    const files = await readdir(join(folder, name)).catch(() => [])
    if (files.some((file) => /\.md$/i.test(file) && !/^readme\.md$/i.test(file))) found.push(name)
  }
  return found
}
