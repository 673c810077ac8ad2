import { type Dirent, lstatSync } from 'node:fs'
import { readdir, stat } from 'node:fs/promises'
import { basename, delimiter, join, resolve } from 'node:path'
import { errorCodeOf } from '../core/errors.ts'
import { openWithin } from '../core/kit/within.ts'
import { isGitDirectory } from '../providers/checkout.ts'
import { compileFormatRules } from '../providers/settings/formats.ts'
import { pathExists } from '../schema/values.ts'
import type { Finding } from './problem.ts'
import { defaultConfigName, stateFolder } from './state-folder.ts'

const remedies = {
  file: 'Name a file instead.',
  folder: 'Name the folder that contains it. In a mount of files, "include" can then name the file.',
}

export async function pathExistenceFindings(
  kind: 'file' | 'folder',
  path: string,
  key: Finding['path'] = [],
): Promise<readonly Finding[]> {
  const finding = (message: string, fix: string) => [{ path: key, message, fix }]
  try {
    const stats = await stat(path)
    if (kind === 'file' ? stats.isFile() : stats.isDirectory()) return []
    return finding(`${path} is not a ${kind}.`, remedies[kind])
  } catch (error) {
    const code = errorCodeOf(error) ?? 'unknown'
    if (!isMissing(code)) return finding(`The ${kind} ${path} cannot be opened (${code}).`, 'Let this user read it.')
    return finding(`There is no ${kind} ${path}.`, `Create it, or correct the path. ${relativePaths}`)
  }
}

const relativePaths = 'A relative path starts at the configuration file.'

function isMissing(code: string): boolean {
  return code === 'ENOENT' || code === 'ENOTDIR'
}

/** @param folders The folder of a configuration, or the folders that are served without one. */
export function defaultStoreFile(
  folders: readonly string[],
  env?: Readonly<Record<string, string | undefined>>,
): string {
  const paths = folders.map((folder) => resolve(folder))
  const [first = ''] = paths
  // Loading node:crypto slows down a start.
  const { createHash } = process.getBuiltinModule('node:crypto')
  const digest = createHash('sha256').update(paths.join('\0')).digest('hex').slice(0, 8)
  return join(stateFolder(env), `${basename(first) || 'root'}-${digest}`, 'store.sqlite')
}

export interface FolderSources {
  /** Names of the direct children; empty for a git directory. */
  readonly names: readonly string[]
  /** Whether the folder has a git history that can be served. */
  readonly git: boolean
  readonly lacksGit?: boolean
  /** Whether the folder is a git directory itself, such as a bare repository. */
  readonly bare?: boolean
  /** Whether the folder directly contains files of settings, besides hikidashi.json. */
  readonly settings: boolean
  /** Whether there is a file `.env`. (A folder of that name is a Python environment.) */
  readonly dotenv: boolean
  readonly prompts: readonly string[]
  readonly skills: readonly string[]
}

const promptFolders = ['prompts', '.github/prompts', '.claude/commands']

/** Folders in which coding agents look for skills. */
const skillFolders = ['.claude/skills', '.agents/skills', 'skills']

/** Rejects like `readdir`. */
export async function inspectFolder(folder: string): Promise<FolderSources> {
  const entries = await readdir(folder, { withFileTypes: true })
  const formatOf = compileFormatRules({})
  const names = entries.map(({ name }) => name)
  const hasRepository = names.includes('.git') && isRepository(join(folder, '.git'))
  const hasGit = hasRepository && isInPath('git')
  if (isGitDirectory((name) => names.includes(name)) && !names.includes('.git'))
    return { names: [], git: true, bare: true, settings: false, dotenv: false, prompts: [], skills: [] }
  return {
    names,
    git: hasGit,
    ...(hasRepository && !hasGit ? { lacksGit: true } : {}),
    settings: names.some((name) => name !== defaultConfigName && formatOf(name) !== undefined),
    dotenv: entries.some((entry) => entry.name === '.env' && entry.isFile()),
    prompts: await promptsIn(folder),
    skills: await skillsIn(folder),
  }
}

/** A file `.git` leads to a repository elsewhere. */
function isRepository(path: string): boolean {
  const stats = lstatSync(path)
  return stats.isFile() || (stats.isDirectory() && pathExists(join(path, 'HEAD')))
}

function isInPath(program: string): boolean {
  const file = process.platform === 'win32' ? `${program}.exe` : program
  return (process.env.PATH ?? '').split(delimiter).some((folder) => folder !== '' && pathExists(join(folder, file)))
}

async function promptsIn(folder: string): Promise<readonly string[]> {
  const names: string[] = []
  for (const name of promptFolders)
    await lookInto(folder, name, (entries) => {
      if (entries.some((file) => /\.md$/i.test(file.name) && !/^readme\.md$/i.test(file.name))) names.push(name)
    })
  return names
}

async function skillsIn(folder: string): Promise<readonly string[]> {
  const names: string[] = []
  for (const name of skillFolders)
    await lookInto(folder, name, (entries, at) => {
      if (entries.some((entry) => entry.isDirectory() && pathExists(join(at, entry.name, 'SKILL.md')))) names.push(name)
    })
  return names
}

/** A symbolic link is skipped, because it may lead anywhere. */
async function lookInto(folder: string, name: string, look: (entries: readonly Dirent[], at: string) => void) {
  await openWithin(join(folder, name), { folder, symlinks: 'deny' }, async ({ at }) =>
    look(await readdir(at, { withFileTypes: true }), at),
  ).catch(() => {})
}
