import { runGlob } from '../../core/glob.ts'
import type { GlobStep } from '../../core/glob-program.ts'
import { compileIgnorePattern, lowerCase, plainLength } from './ignore-pattern.ts'

/**
 * The rules of one .gitignore file, and those of the directories above. Immutable: other rules are another object, so
 * that whatever was decided with it can be compared by identity.
 */
export interface Ignores {
  /** The directory that the rules lie in, with its `/`; `''` for the root. */
  readonly base: string
  readonly above: Ignores | undefined
  /** How many steps of automata a path may have to pass, those of the directories above included. */
  readonly steps: number
  /** Judges a path relative to the base: `true` ignored, `false` re-included, else nothing. A directory's ends in `/`. */
  judge(path: string): boolean | undefined
  /** The line that decides about a path; `undefined` where none does. */
  lineFor(path: string): IgnoreLine | undefined
}

/** One line of a file of ignore rules. */
export interface IgnoreLine {
  /** The path of the file, relative to the root. */
  readonly file: string
  /** From 1. `undefined`: the file as a whole decides, since it has too many wildcards. */
  readonly line?: number
  readonly pattern: string
}

interface Rule {
  /** The number of its line. The last rule that matches decides. */
  readonly order: number
  readonly negated: boolean
  /** Whether it means directories only. */
  readonly directory: boolean
}

interface WildRule extends Rule {
  /** Whether it is compared with the base name, and not with the path. */
  readonly name: boolean
  /** What it begins with that means itself. */
  readonly start: string
  readonly steps: readonly GlobStep[]
}

/** As git does: names differ in case, except where file systems usually do not. */
const platformIgnoresCase = process.platform === 'darwin' || process.platform === 'win32'

export interface CompileOptions {
  readonly ignoreCase?: boolean
  /** The path of the file, relative to the root. Default `.gitignore` in the base. */
  readonly file?: string
}

/**
 * Compiles a .gitignore file as git reads it (gitignore(5), and `dir.c` of git 2.39). Nothing throws: a pattern that is
 * malformed matches nothing, as it does for git.
 *
 * A path is judged in time proportional to its length times that of the patterns with wildcards, at worst. Those without,
 * and those that are `*` and an ending, are looked up.
 *
 * @param text One character for each byte of the file (`latin1`).
 */
export function compileIgnores(
  text: string,
  base: string,
  above: Ignores | undefined,
  { ignoreCase = platformIgnoresCase, file = `${base}.gitignore` }: CompileOptions = {},
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
    const rule: Rule = { order, negated, directory }
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

  /** The last rule that matches a path. */
  const find = (path: string): Rule | undefined => {
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
    const rule = find(path)
    return rule === undefined ? undefined : !rule.negated
  }
  const lineFor = (path: string): IgnoreLine | undefined => {
    const rule = find(path)
    if (rule === undefined) return undefined
    const pattern = Buffer.from(text.split('\n')[rule.order - 1] ?? '', 'latin1').toString()
    return { file, line: rule.order, pattern: pattern.replace(/^\ufeff|\r$/g, '') }
  }
  const steps = wild.reduce((sum, rule) => sum + rule.steps.length, above?.steps ?? 0)
  return { base, above, steps, judge, lineFor }
}

/** Rules that ignore everything in a directory, whatever it is. */
export function ignoreEverything(base: string, above: Ignores | undefined): Ignores {
  const line = { file: `${base}.gitignore`, pattern: 'too many wildcards' }
  return { base, above, steps: above?.steps ?? 0, judge: () => true, lineFor: () => line }
}

/** Whether a path is ignored: the deepest file with a rule for it decides. A directory's path ends in `/`. */
export function isIgnored(path: string, ignores: Ignores | undefined): boolean {
  for (let at = ignores; at !== undefined; at = at.above) {
    const verdict = at.judge(path.slice(at.base.length))
    if (verdict !== undefined) return verdict
  }
  return false
}

/** The line that has a path ignored: the last that matches, in the deepest file with a rule for it. */
export function ignoringLine(path: string, ignores: Ignores | undefined): IgnoreLine | undefined {
  for (let at = ignores; at !== undefined; at = at.above) {
    const below = path.slice(at.base.length)
    const verdict = at.judge(below)
    if (verdict !== undefined) return verdict ? at.lineFor(below) : undefined
  }
  return undefined
}

/** The patterns of a file and the numbers of their lines: without comments, empty lines, and spaces at their ends that are not escaped. */
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
      // As git does: what ends in a lone backslash keeps its spaces.
      if (at === line.length) return line
      end = at + 1
    } else if (line[at] !== ' ') end = at + 1
  }
  return line.slice(0, end)
}

/** One character for each byte of a path. */
function bytesOf(path: string): string {
  return /[^\0-\x7f]/.test(path) ? Buffer.from(path).toString('latin1') : path
}

function later(a: Rule | undefined, b: Rule | undefined): Rule | undefined {
  return a === undefined || (b !== undefined && b.order > a.order) ? b : a
}

/** Rules by a text. Of those with the same one, only the last can decide. */
function createTable() {
  const all = new Map<string, Rule>()
  const directories = new Map<string, Rule>()
  return {
    add: (text: string, rule: Rule) => (rule.directory ? directories : all).set(text, rule),
    get: (text: string, isDirectory: boolean) => later(all.get(text), isDirectory ? directories.get(text) : undefined),
    keys: () => [...all.keys(), ...directories.keys()],
  }
}
