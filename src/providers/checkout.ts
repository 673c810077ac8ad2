import { lstat, readFile, realpath, stat } from 'node:fs/promises'
import { basename, dirname, join, resolve, sep } from 'node:path'
import { tryRealPath } from '../core/kit/within.ts'

/** A working tree of a git repository. Its paths are absolute and without symbolic links. */
export interface Checkout {
  /** The folder of the checked-out files. */
  readonly top: string
  readonly gitDir: string
  /** Directory of the configuration, `info/exclude` and the objects; equals `gitDir` except for a linked working tree. */
  readonly commonDir: string
}

export const gitDirectoryNames = ['HEAD', 'objects', 'refs', 'packed-refs'] as const

/** `packed-refs` may stand for `refs`, because some copies lose empty folders. */
export function isGitDirectory(has: (name: (typeof gitDirectoryNames)[number]) => boolean): boolean {
  return has('HEAD') && has('objects') && (has('refs') || has('packed-refs'))
}

/** Maximum size of a file that contains the path of a git directory, in bytes. */
export const maxPointerBytes = 4096 + 'gitdir: \n'.length

/** Returns the absolute path of the git directory that the text of a `.git` file in `folder` names; undefined if it names none. */
export function gitDirIn(text: string, folder: string): string | undefined {
  const target = /^gitdir: (.+?)[\r\n]*$/.exec(text)?.[1]
  return target === undefined ? undefined : resolve(folder, target)
}

/** Returns the working tree whose top is a folder; undefined if there is none. */
export async function checkoutAt(folder: string): Promise<Checkout | undefined> {
  try {
    const top = await realpath(folder)
    const dotGit = join(top, '.git')
    const isFile = (await stat(dotGit)).isFile()
    const gitDirPath = isFile ? gitDirIn(await smallText(dotGit), top) : dotGit
    if (gitDirPath === undefined) return undefined
    const gitDir = await realpath(gitDirPath)
    const common = (await smallText(join(gitDir, 'commondir')).catch(() => undefined))?.trim()
    const commonDir = common === undefined ? gitDir : await realpath(resolve(gitDir, common))
    const names = new Set(await findExistingNames(commonDir, gitDirectoryNames))
    if (!(await exists(join(gitDir, 'HEAD'))) || !isGitDirectory((name) => names.has(name))) return undefined
    return gitDir === commonDir && (await isBare(commonDir)) ? undefined : { top, gitDir, commonDir }
  } catch {
    return undefined
  }
}

/** Returns the working tree of the nearest `.git`, from a folder upwards; undefined if there is none, or it leads to no working tree. */
export async function checkoutAround(folder: string): Promise<Checkout | undefined> {
  for (let at = folder; ; at = dirname(at)) {
    if (await exists(join(at, '.git'))) return checkoutAt(at)
    if (at === dirname(at)) return undefined
  }
}

/** Returns the nearest git directory, from a folder upwards; undefined if there is none, or a folder with `.git` comes before it. */
export async function gitDirectoryAround(folder: string): Promise<string | undefined> {
  for (let at = folder; at !== dirname(at); at = dirname(at)) {
    const names = new Set(await findExistingNames(at, ['.git', ...gitDirectoryNames]))
    if (names.has('.git')) return undefined
    if (isGitDirectory((name) => names.has(name))) return at
  }
  return undefined
}

/**
 * Whether a folder inside a served root is another working tree of a repository: its `.git` file leads to `worktrees/NAME` of a repository
 * that the folder lies in, or whose main working tree lies in the root.
 *
 * @param target The git directory that the `.git` file leads to.
 * @param around The common directories of the repositories that the folder lies in.
 */
export async function isOtherCheckout(target: string, root: string, around: readonly string[]): Promise<boolean> {
  const [worktrees, name] = [dirname(target), basename(target)]
  if (basename(worktrees) !== 'worktrees') return false
  const common = await tryRealPath(dirname(worktrees))
  if (common !== undefined && around.includes(common)) return true
  // If the repository was moved, or is seen from a container, the path in the `.git` file is wrong: the name of the working tree decides.
  if (common === undefined) {
    const flags = await Promise.all(around.map((one) => exists(join(one, 'worktrees', name))))
    return flags.includes(true)
  }
  const main = dirname(common)
  const isInside = main === root || main.startsWith(root.endsWith(sep) ? root : root + sep)
  return isInside && basename(common) === '.git' && !(await isBare(common))
}

/** Does the same as {@link isOtherCheckout} for a path relative to a root. `around` is the working tree that the root lies in, if any. */
export async function isOtherCheckoutIn(root: string, folder: string, around: Checkout | undefined): Promise<boolean> {
  const [top, at] = await Promise.all([realpath(root), realpath(join(root, folder))])
  const target = gitDirIn(await smallText(join(at, '.git')).catch(() => ''), at)
  return target !== undefined && (await isOtherCheckout(target, top, around === undefined ? [] : [around.commonDir]))
}

async function findExistingNames<N extends string>(folder: string, names: readonly N[]): Promise<readonly N[]> {
  const flags = await Promise.all(names.map((name) => exists(join(folder, name))))
  return names.filter((_, index) => flags[index])
}

async function exists(path: string): Promise<boolean> {
  return lstat(path).then(
    () => true,
    () => false,
  )
}

async function isBare(commonDir: string): Promise<boolean> {
  const texts = ['config', 'config.worktree'].map((name) =>
    smallText(join(commonDir, name), 1024 * 1024).catch(() => ''),
  )
  const text = (await Promise.all(texts)).join('\n')
  return /^\s*bare\s*(?:=\s*(?:true|yes|on|1)\s*)?(?:[#;].*)?$/im.test(text)
}

async function smallText(path: string, limit = maxPointerBytes): Promise<string> {
  const stats = await stat(path)
  if (!stats.isFile() || stats.size > limit) throw new Error(`${path} is not a file of at most ${limit} bytes.`)
  return readFile(path, 'utf8')
}
