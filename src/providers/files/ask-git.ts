import { once } from 'node:events'
import { mkdir, mkdtemp, readdir, rm, symlink, writeFile } from 'node:fs/promises'
import { homedir, tmpdir } from 'node:os'
import { dirname, isAbsolute, join, resolve } from 'node:path'
import { childLimits } from '../../core/kit/workers.ts'
import type { Checkout } from '../checkout.ts'
import { findProgram, spawnLimited } from '../program.ts'

/**
 * Two questions about a working tree that only git answers: which file of ignore rules its settings name, and which tracked files its rules
 * match. No command of the repository runs: `git config` only reads settings, and `git ls-files` runs in a git directory of our own, with no
 * settings but ours.
 */

/** Settings of a repository, of the user and of the machine. */
export interface GitSettings {
  /** The file of ignore rules for all repositories (`core.excludesFile`), as an absolute path. */
  readonly excludesFile: string
  readonly objectFormat: string
}

const timeoutMs = 5000
const maxOutputBytes = 16 * 1024 * 1024

/** The variables that tell git where the settings of the user and of the machine are. */
const settingsVariables = ['HOME', 'XDG_CONFIG_HOME', 'GIT_CONFIG_GLOBAL', 'GIT_CONFIG_SYSTEM', 'GIT_CONFIG_NOSYSTEM']

/** Returns the settings of a repository; the defaults of git if they cannot be read, or there is no git. */
export async function settingsOf({ gitDir, top }: Checkout): Promise<GitSettings> {
  const wanted = '^(core\\.excludesfile|extensions\\.objectformat)$'
  const env = { ...ownVariables(), GIT_DIR: gitDir }
  const output = await runGit(['config', '--null', '--type=path', '--get-regexp', wanted], dirname(gitDir), env)
  // The last value of a key counts.
  const values = new Map(
    (output ?? '').split('\0').map((record): [string, string] => {
      const end = record.indexOf('\n')
      return end === -1 ? [record, ''] : [record.slice(0, end), record.slice(end + 1)]
    }),
  )
  const named = values.get('core.excludesfile')
  return {
    excludesFile: named === undefined ? join(userFolder(), 'ignore') : resolve(top, named),
    objectFormat: values.get('extensions.objectformat') === 'sha256' ? 'sha256' : 'sha1',
  }
}

/** The folder of git's settings of this user. */
function userFolder(): string {
  return join(process.env.XDG_CONFIG_HOME || join(homedir(), '.config'), 'git')
}

/** The files of this user that have settings of git. */
export function userSettings(): readonly string[] {
  return [process.env.GIT_CONFIG_GLOBAL || join(homedir(), '.gitconfig'), join(userFolder(), 'config')]
}

function ownVariables(): Readonly<Record<string, string>> {
  return Object.fromEntries(settingsVariables.flatMap((name) => (process.env[name] ? [[name, process.env[name]]] : [])))
}

/**
 * Returns the paths of the tracked files that ignore rules match, relative to the top; none if there is no git, or no index.
 *
 * @param exclude The text of `info/exclude`, one character per byte.
 */
export async function trackedAndIgnored(
  { top, gitDir }: Checkout,
  { excludesFile, objectFormat }: GitSettings,
  exclude: string,
): Promise<readonly string[]> {
  const own = await mkdtemp(join(tmpdir(), 'hikidashi-ignored-'))
  try {
    for (const name of ['objects', 'refs', 'info']) await mkdir(join(own, name))
    await writeFile(join(own, 'HEAD'), 'ref: refs/heads/none\n')
    await writeFile(
      join(own, 'config'),
      `[core]\n\trepositoryformatversion = 1\n[extensions]\n\tobjectFormat = ${objectFormat}\n`,
    )
    await writeFile(join(own, 'info', 'exclude'), exclude, 'latin1')
    // The parts of a split index.
    for (const name of await readdir(gitDir))
      if (name.startsWith('sharedindex.')) await symlink(join(gitDir, name), join(own, name))
    const output = await runGit(
      ['-c', `core.excludesFile=${excludesFile}`, 'ls-files', '--cached', '--ignored', '--exclude-standard', '-z'],
      top,
      {
        ...{ GIT_DIR: own, GIT_WORK_TREE: top, GIT_INDEX_FILE: join(gitDir, 'index') },
        ...{ GIT_CONFIG_NOSYSTEM: '1', GIT_CONFIG_GLOBAL: '/dev/null', HOME: '/nonexistent' },
      },
    )
    return (output ?? '').split('\0').filter((path) => path !== '')
  } finally {
    await rm(own, { recursive: true, force: true })
  }
}

let git: Promise<string | undefined> | undefined

/** Runs git to its end. Returns its output; undefined if it fails, or there is none. */
async function runGit(
  args: readonly string[],
  cwd: string,
  env: Readonly<Record<string, string>>,
): Promise<string | undefined> {
  git ??= findProgram(process.platform === 'win32' ? 'git.exe' : 'git')
  const program = await git
  if (program === undefined || !isAbsolute(program)) return undefined
  const child = spawnLimited(program, ['--no-pager', ...args], childLimits.git(timeoutMs), {
    cwd,
    env: {
      ...{ PATH: `${dirname(program)}:/usr/bin:/bin`, LC_ALL: 'C', GIT_OPTIONAL_LOCKS: '0' },
      ...{ GIT_NO_LAZY_FETCH: '1', GIT_ALLOW_PROTOCOL: 'none', GIT_TERMINAL_PROMPT: '0' },
      ...env,
    },
    stdio: ['ignore', 'pipe', 'ignore'],
    timeout: timeoutMs,
    killSignal: 'SIGKILL',
    windowsHide: true,
  })
  const chunks: Buffer[] = []
  let length = 0
  child.stdout?.on('data', (chunk: Buffer) => {
    length += chunk.length
    if (length > maxOutputBytes) child.kill('SIGKILL')
    else chunks.push(chunk)
  })
  try {
    const [code] = await once(child, 'close')
    return code === 0 ? Buffer.concat(chunks).toString() : undefined
  } catch {
    return undefined
  }
}
