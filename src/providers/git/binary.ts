import { isAbsolute } from 'node:path'
import { invalid, type ResourceError } from '../../core/errors.ts'
import { findProgram, isProgram } from '../program.ts'

/** The oldest git that has what is used here: `GIT_CONFIG_GLOBAL` (2.32), `--diff-merges`, `--end-of-options`. */
const oldest = [2, 32] as const

const wanted = `git ${oldest.join('.')} or newer is needed: install it (https://git-scm.com), or name its path in the option "git".`

/**
 * The absolute path of the git to run. A name is looked for on the PATH of this process, whose relative members are
 * passed over: what lies in the working directory is not run.
 *
 * @throws ResourceError `invalid` (reason `git`) where there is none.
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
 * Checks what `git --version` printed.
 *
 * @throws ResourceError `invalid` (reason `git`) for a git that is too old, or what is no git.
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
