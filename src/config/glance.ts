import { type Dirent, lstatSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { createFormats } from '../providers/settings/formats.ts'
import { defaultConfig } from './folder.ts'

/** The sources in a folder, judged by the names at its top. */
export interface Glance {
  /** The direct children of the folder. */
  readonly names: readonly string[]
  /** Whether it is the root of a git repository. */
  readonly git: boolean
  /** Whether it directly contains configuration files. */
  readonly settings: boolean
  /** Whether there is a file `.env`. (A folder of that name is a Python environment.) */
  readonly dotenv: boolean
  /** Usual folders of prompts that exist. */
  readonly prompts: readonly string[]
  /** Usual folders of skills that exist. */
  readonly skills: readonly string[]
}

/** Usual folders of prompts. */
const promptFolders = ['prompts', '.github/prompts', '.claude/commands']

/** Folders in which coding agents look for skills. */
const skillFolders = ['.claude/skills', '.agents/skills', 'skills']

/** Examines the names at the top of a folder. Rejects like `readdir` if it cannot be read. */
export async function glanceAt(folder: string): Promise<Glance> {
  const entries = await readdir(folder, { withFileTypes: true })
  const formatOf = createFormats({})
  const names = entries.map(({ name }) => name)
  return {
    names,
    git: names.includes('.git') && isRepository(join(folder, '.git')) && isInPath('git'),
    settings: names.some((name) => name !== defaultConfig && formatOf(name) !== undefined),
    dotenv: entries.some((entry) => entry.name === '.env' && entry.isFile()),
    prompts: await promptsIn(folder, entries),
    skills: await skillsIn(folder, entries),
  }
}

/** Whether a `.git` is a repository, or a file that leads to one. */
function isRepository(path: string): boolean {
  const stats = lstatSync(path)
  return stats.isFile() || (stats.isDirectory() && isThere(join(path, 'HEAD')))
}

/** Whether a folder of PATH contains a program of this name. */
function isInPath(program: string): boolean {
  const file = process.platform === 'win32' ? `${program}.exe` : program
  for (const folder of (process.env.PATH ?? '').split(delimiter))
    if (folder !== '' && isThere(join(folder, file))) return true
  return false
}

/** Synchronous, without the thread pool: a start waits for up to a dozen of these calls. */
function isThere(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) !== undefined
  } catch {
    return false
  }
}

/** The folders of prompts that contain Markdown. */
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

/** The folders of skills that contain a skill. A folder behind a symbolic link is left out, because the link may lead anywhere. */
async function skillsIn(folder: string, entries: readonly Dirent[]): Promise<readonly string[]> {
  const found: string[] = []
  for (const name of skillFolders) {
    const [top = ''] = name.split('/')
    if (!entries.some((entry) => entry.name === top && entry.isDirectory())) continue
    const root = join(folder, name)
    if (!lstatSync(root, { throwIfNoEntry: false })?.isDirectory()) continue
    const within = await readdir(root, { withFileTypes: true }).catch(() => [])
    const isSkill = (entry: Dirent) => entry.isDirectory() && isThere(join(root, entry.name, 'SKILL.md'))
    if (within.some(isSkill)) found.push(name)
  }
  return found
}
