import ignore from 'ignore'

/** Judges a path relative to the directory that the rules lie in: `true` ignored, `false` re-included, else nothing. */
type Judge = (path: string) => boolean | undefined

/**
 * The rules of one .gitignore file, and those of the directories above. Immutable: other rules are another object, so
 * that whatever was decided with it can be compared by identity.
 */
export interface Ignores {
  /** The directory that the rules lie in, with its `/`; `''` for the root. */
  readonly base: string
  readonly above: Ignores | undefined
  readonly judge: Judge
  /** The same rules, but for a directory below `base`, which a deeper file has re-included. */
  readmit(directory: string): Ignores
}

/** As git does: names differ in case, except where file systems usually do not. */
const ignorecase = process.platform === 'darwin' || process.platform === 'win32'

/** Compiles the text of a .gitignore file. A line that does not compile is passed over: nothing throws. */
export function compileIgnores(text: string, base: string, above: Ignores | undefined): Ignores {
  return ignoresOf(text.split(/\r?\n/).filter(compiles), base, above)
}

function ignoresOf(lines: readonly string[], base: string, above: Ignores | undefined): Ignores {
  return {
    base,
    above,
    judge: createJudge(lines),
    readmit: (directory) => {
      const path = directory.slice(base.length).replace(/[*?[\]\\ !#]/g, '\\$&')
      return ignoresOf([...lines, `!/${path}`], base, above)
    },
  }
}

function compiles(line: string): boolean {
  try {
    ignore().add(line).test('a')
    return true
  } catch {
    return false
  }
}

/** How many paths are judged before the compiled rules are thrown away with what the library remembers of each path. */
const memory = 10_000

function createJudge(lines: readonly string[]): Judge {
  const compile = () => ignore({ ignorecase, allowRelativePaths: true }).add(lines as string[])
  let rules = compile()
  let judged = 0
  return (path) => {
    if (++judged > memory) {
      rules = compile()
      judged = 0
    }
    const { ignored, unignored } = rules.test(path)
    return ignored ? true : unignored ? false : undefined
  }
}

/** Whether a path is ignored: the deepest file with a rule for it decides. A directory's path ends in `/`. */
export function isIgnored(path: string, ignores: Ignores | undefined): boolean {
  for (let at = ignores; at !== undefined; at = at.above) {
    const verdict = at.judge(path.slice(at.base.length))
    if (verdict !== undefined) return verdict
  }
  return false
}

/**
 * The rules as they stand inside a directory that is not ignored. Where outer rules ignore it and deeper ones include it
 * again, git goes on to judge what is in it by itself; the library would take it as ignored with its directory.
 */
export function ignoresInside(directory: string, ignores: Ignores | undefined): Ignores | undefined {
  if (ignores === undefined) return undefined
  const above = ignoresInside(directory, ignores.above)
  const own = ignores.judge(directory.slice(ignores.base.length)) === true ? ignores.readmit(directory) : ignores
  return above === ignores.above ? own : { ...own, above }
}
