import { isAbsolute } from 'node:path'
import { invalid, type ResourceError } from '../../core/errors.ts'
import { findProgram, isProgram } from '../program.ts'

/** The oldest git with all features used here: `GIT_CONFIG_GLOBAL` (2.32), `--diff-merges`, `--end-of-options`. */
const oldest = [2, 32] as const

const wanted = `git ${oldest.join('.')} or newer is needed: install it (https://git-scm.com), or name its path in the option "git".`

/**
 * Returns the absolute path of the git to run. A name is searched on the PATH of this process without its relative members, so that no program
 * in the working directory runs.
 *
 * @throws ResourceError `invalid` (reason `git`) when there is none.
 */
export async function findGit(name: string): Promise<string> {
  if (isAbsolute(name)) {
    if (await isProgram(name)) return name
    throw fault(`There is no program ${JSON.stringify(name)}.`)
  }
  if (/[\\/]/.test(name))
    throw fault(`The option "git" is neither a name nor an absolute path: ${JSON.stringify(name)}.`)
  const found = await findProgram(name)
  if (found !== undefined) return found
  throw fault(`There is no ${JSON.stringify(name)} on the PATH.`)
}

/**
 * Checks the output of `git --version`.
 *
 * @throws ResourceError `invalid` (reason `git`) for a git that is too old, or a program that is not git.
 */
export function checkVersion(path: string, printed: string): void {
  const found = /^git version (\d+)\.(\d+)/.exec(printed)
  if (found === null) throw fault(`${JSON.stringify(path)} is not git: it does not say its version.`)
  const [major, minor] = [Number(found[1]), Number(found[2])]
  if (major > oldest[0] || (major === oldest[0] && minor >= oldest[1])) return
  throw fault(`${JSON.stringify(path)} is git ${major}.${minor}, which is too old.`)
}

function fault(what: string): ResourceError {
  return invalid(`${what} ${wanted}`, 'git')
}
