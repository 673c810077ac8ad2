import { runGlob } from '../../core/glob.ts'
import type { GlobStep } from '../../core/glob-syntax.ts'
import { compileIgnorePattern, lowerCase, plainLength } from './ignore-pattern.ts'

/**
 * Kinds of ignore rules, from the weakest: those of git, of `.ignore`, and of `.hikidashiignore`. A stronger kind decides over a weaker one,
 * and within a kind the deepest file with a matching rule decides.
 */
const kinds = ['git', 'ignore', 'own'] as const
export type IgnoreKind = (typeof kinds)[number]

/** A repository, at the base of its rules: rules of git from above do not apply in it. */
export interface IgnoringRepository {
  /** Directory of its configuration, as an absolute path; undefined if it is unknown. */
  readonly commonDir: string
  /** Paths of tracked files that its rules match, and their directories with a final `/`, below the base. git serves them. */
  readonly tracked: ReadonlySet<string>
}

/**
 * The rules of one file of ignore rules, linked to those of its parent directories. Immutable: changed rules are a new object, so decisions can
 * be cached by identity.
 */
export interface Ignores {
  readonly kind: IgnoreKind
  /** Set for the first rules of a repository. */
  readonly repository?: IgnoringRepository
  /** The directory of the rules, with a final `/`; `''` for the root. */
  readonly base: string
  readonly above: Ignores | undefined
  /** Maximum number of automaton steps that a path may take, parent directories included. */
  readonly steps: number
  /** Judges a path relative to the base: `true` ignored, `false` re-included, undefined when no rule matches. A directory's path ends in `/`. */
  judge(path: string): boolean | undefined
  /** Returns the line that decides about a path; undefined when none does. */
  lineFor(path: string): IgnoreLine | undefined
}

/** One line of an ignore file. */
export interface IgnoreLine {
  /** The path of the file, relative to the root. */
  readonly file: string
  /** Line number, from 1. Undefined: the whole file decides, because it has too many wildcards. */
  readonly line?: number
  readonly pattern: string
}

interface IgnoreRule {
  /** Line number. The last rule that matches decides. */
  readonly order: number
  readonly negated: boolean
  /** Whether the rule applies only to directories. */
  readonly directory: boolean
}

interface WildRule extends IgnoreRule {
  /** Whether the pattern is compared with the base name instead of the path. */
  readonly name: boolean
  /** The literal prefix of the pattern. */
  readonly start: string
  readonly steps: readonly GlobStep[]
}

/** As git does: names are case-sensitive, except on platforms whose file systems usually are not. */
const platformIgnoresCase = process.platform === 'darwin' || process.platform === 'win32'

interface CompileOptions {
  /** Default: `git`. */
  readonly kind?: IgnoreKind
  /** The path of the base below the directory of the file, for a file above the root. Default: the base is that directory. */
  readonly inside?: string
  readonly ignoreCase?: boolean
  /** The path of the file, relative to the root. Default: `.gitignore` in the base. */
  readonly file?: string
}

/**
 * Compiles a .gitignore file as git reads it (gitignore(5), and `dir.c` of git 2.39). Never throws: a malformed pattern matches nothing, as in
 * git.
 *
 * Judging a path takes, at worst, time proportional to its length times the length of the patterns with wildcards. Patterns without wildcards,
 * and those of `*` plus an ending, are hash look-ups.
 *
 * @param text One character per byte of the file (`latin1`).
 */
export function compileIgnores(
  text: string,
  base: string,
  above: Ignores | undefined,
  { kind = 'git', inside = '', ignoreCase = platformIgnoresCase, file = `${base}.gitignore` }: CompileOptions = {},
): Ignores {
  const [names, endings, paths] = [createTable(), createTable(), createTable()]
  const wild: WildRule[] = []
  const fold = (bytes: string) => (ignoreCase ? lowerCase(bytes) : bytes)
  for (const { order, line } of linesOf(text)) {
    const negated = line.startsWith('!')
    const written = negated ? line.slice(1) : line
    const directory = written.endsWith('/')
    const body = directory ? written.slice(0, -1) : written
    if (body === '') continue
    const rule: IgnoreRule = { order, negated, directory }
    const name = !body.includes('/')
    const pattern = body.startsWith('/') ? body.slice(1) : body
    const plain = plainLength(pattern)
    if (plain === pattern.length) (name ? names : paths).add(fold(pattern), rule)
    else if (name && pattern.startsWith('*') && plainLength(pattern.slice(1)) === pattern.length - 1)
      endings.add(fold(pattern.slice(1)), rule)
    else {
      const steps = compileIgnorePattern(pattern, { path: !name, ignoreCase })
      wild.push({ ...rule, name, start: fold(pattern.slice(0, plain)), steps })
    }
  }
  const lengths = [...new Set(endings.keys().map((ending) => ending.length))]
  wild.reverse()

  /** Returns the last rule that matches a path. */
  const find = (path: string): IgnoreRule | undefined => {
    const isDirectory = path.endsWith('/')
    const whole = fold(bytesOf(isDirectory ? path.slice(0, -1) : path))
    const name = whole.slice(whole.lastIndexOf('/') + 1)
    let last = later(names.get(name, isDirectory), paths.get(whole, isDirectory))
    for (const length of lengths)
      if (length <= name.length) last = later(last, endings.get(name.slice(name.length - length), isDirectory))
    const codes: { name?: readonly number[]; whole?: readonly number[] } = {}
    for (const rule of wild) {
      if (last !== undefined && rule.order < last.order) break
      const text = rule.name ? name : whole
      if ((rule.directory && !isDirectory) || !text.startsWith(rule.start)) continue
      const key = rule.name ? 'name' : 'whole'
      codes[key] ??= Array.from(text, (byte) => byte.charCodeAt(0))
      if (runGlob(rule, codes[key])) return rule
    }
    return last
  }
  const judge = (path: string): boolean | undefined => {
    const rule = find(inside + path)
    return rule === undefined ? undefined : !rule.negated
  }
  const lineFor = (path: string): IgnoreLine | undefined => {
    const rule = find(inside + path)
    if (rule === undefined) return undefined
    const pattern = Buffer.from(text.split('\n')[rule.order - 1] ?? '', 'latin1').toString()
    return { file, line: rule.order, pattern: pattern.replace(/^\ufeff|\r$/g, '') }
  }
  const steps = wild.reduce((sum, rule) => sum + rule.steps.length, above?.steps ?? 0)
  return { kind, base, above, steps, judge, lineFor }
}

/** Returns rules that ignore everything in a directory, because of a line. */
export function ignoreEverything(
  base: string,
  above: Ignores | undefined,
  line: IgnoreLine,
  kind: IgnoreKind = 'git',
): Ignores {
  return { kind, base, above, steps: above?.steps ?? 0, judge: () => true, lineFor: () => line }
}

/** Returns the beginning of the rules of a repository. */
export function beginRepository(base: string, above: Ignores | undefined, repository: IgnoringRepository): Ignores {
  const [judge, lineFor] = [() => undefined, () => undefined]
  return { kind: 'git', repository, base, above, steps: above?.steps ?? 0, judge, lineFor }
}

/** The repositories that a directory with these rules lies in, the innermost first. */
export function repositoriesOf(ignores: Ignores | undefined): readonly IgnoringRepository[] {
  const found: IgnoringRepository[] = []
  for (let at = ignores; at !== undefined; at = at.above) if (at.repository !== undefined) found.push(at.repository)
  return found
}

/** The decision about a path, and the rules that made it. */
interface Decision {
  readonly ignored: boolean
  readonly by: Ignores
  /** Whether git tracks the path, although its rules ignore it. */
  readonly tracked: boolean
}

function decide(path: string, ignores: Ignores | undefined): Decision | undefined {
  let found: Decision | undefined
  let isOutside = false
  for (let at = ignores; at !== undefined; at = at.above) {
    const { base, kind, repository } = at
    const rank = kinds.indexOf(kind)
    const isWeaker = found !== undefined && rank <= kinds.indexOf(found.by.kind)
    const below = path.slice(base.length)
    if (!isWeaker && !(rank === 0 && isOutside)) {
      const ignored = at.judge(below)
      if (ignored !== undefined) found = { ignored, by: at, tracked: false }
    }
    if (repository === undefined) continue
    if (!isOutside && found?.by.kind === 'git' && repository.tracked.has(below)) found = { ...found, tracked: true }
    isOutside = true
  }
  return found
}

/** Whether a path is ignored. A directory's path ends in `/`. */
export function isIgnored(path: string, ignores: Ignores | undefined): boolean {
  const found = decide(path, ignores)
  return found?.ignored === true && !found.tracked
}

/** Returns the line that ignores a path: the last match, in the file that decides. */
export function ignoringLine(path: string, ignores: Ignores | undefined): IgnoreLine | undefined {
  const found = decide(path, ignores)
  return found?.ignored === true ? found.by.lineFor(path.slice(found.by.base.length)) : undefined
}

/** The rules that ignore a path which is served only because git tracks it. */
export function overruled(path: string, ignores: Ignores | undefined): Ignores | undefined {
  const found = decide(path, ignores)
  return found?.ignored === true && found.tracked ? found.by : undefined
}

/** Returns the patterns of a file with their line numbers, without comments, empty lines and unescaped trailing spaces. */
function linesOf(text: string): readonly { readonly order: number; readonly line: string }[] {
  const body = text.startsWith('\xef\xbb\xbf') ? text.slice(3) : text
  return body.split('\n').flatMap((line, index) => {
    if (line === '' || line.startsWith('#')) return []
    const cut = (line.endsWith('\r') ? line.slice(0, -1) : line).replace(/\0.*$/s, '')
    return [{ order: index + 1, line: withoutSpaces(cut) }]
  })
}

function withoutSpaces(line: string): string {
  let end = 0
  for (let at = 0; at < line.length; at++) {
    if (line[at] === '\\') {
      at++
      // As git does: a line that ends in a lone backslash keeps its spaces.
      if (at === line.length) return line
      end = at + 1
    } else if (line[at] !== ' ') end = at + 1
  }
  return line.slice(0, end)
}

/** Returns a path with one character per byte. */
function bytesOf(path: string): string {
  return /[^\0-\x7f]/.test(path) ? Buffer.from(path).toString('latin1') : path
}

function later(a: IgnoreRule | undefined, b: IgnoreRule | undefined): IgnoreRule | undefined {
  return a === undefined || (b !== undefined && b.order > a.order) ? b : a
}

/** Hash table of rules by text. Among rules with the same text only the last can decide. */
function createTable() {
  const all = new Map<string, IgnoreRule>()
  const directories = new Map<string, IgnoreRule>()
  return {
    add: (text: string, rule: IgnoreRule) => (rule.directory ? directories : all).set(text, rule),
    get: (text: string, isDirectory: boolean) => later(all.get(text), isDirectory ? directories.get(text) : undefined),
    keys: () => [...all.keys(), ...directories.keys()],
  }
}
