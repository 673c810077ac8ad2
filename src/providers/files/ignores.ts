import { runGlob } from '../../core/glob.ts'
import type { GlobStep } from '../../core/glob-syntax.ts'
import { toBinaryString } from '../../core/kit/utf8.ts'
import { baseName } from '../../core/path.ts'
import { namesCredentials } from '../../secrets/credential-files.ts'

interface Dialect {
  /** Whether the text is a path, where `*` stays within a segment and `**` may span several; otherwise it is one name. */
  readonly path: boolean
  /** Whether the text is in lower case (ASCII letters only) and letters are compared in lower case. */
  readonly ignoreCase: boolean
}

const slash = 0x2f
const special = /[*?[\\]/

export function literalPrefixLength(pattern: string): number {
  const at = pattern.search(special)
  return at === -1 ? pattern.length : at
}

export function asciiLowerCase(bytes: string): string {
  return bytes.replace(/[A-Z]+/g, (letters) => letters.toLowerCase())
}

/**
 * Compiles a pattern of git (`wildmatch.c` and `match_pathname` in `dir.c` of git 2.39) to steps of the automaton of `core/glob.ts`. Characters are
 * bytes, as in git: `?` matches half of an `é`. The steps end in `exact`: they match one path, and not the paths below it.
 *
 * git compares the literal prefix separately, and passes the rest to its matcher as a pattern of its own. So `**` right after that prefix counts as a
 * whole segment: `a**` + `/b` also matches `ab` and `ax/y/b`.
 *
 * @param pattern One character per byte.
 */
export function compileIgnorePattern(pattern: string, dialect: Dialect): readonly GlobStep[] {
  const { path, ignoreCase } = dialect
  const codeAt = (at: number) => pattern.charCodeAt(at)
  const plain = literalPrefixLength(pattern)
  const fold = (text: string) => (ignoreCase ? asciiLowerCase(text) : text)
  const steps: GlobStep[] = Array.from(fold(pattern.slice(0, plain)), (byte) => byte.charCodeAt(0))
  for (let at = plain; at < pattern.length; at++) {
    const byte = pattern[at]
    if (byte === '*') {
      let end = at
      while (pattern[end] === '*') end++
      const isSegment =
        path &&
        end - at > 1 &&
        (at === plain || codeAt(at - 1) === slash) &&
        (end === pattern.length || codeAt(end) === slash || pattern.startsWith('\\/', end))
      if (!isSegment) steps.push('star')
      else if (codeAt(end) === slash) {
        // Any number of segments, or none; without segments there is no slash either.
        steps.push({ to: [steps.length + 1, steps.length + 3] }, 'all', slash)
        end++
      } else steps.push('all')
      at = end - 1
    } else if (byte === '?') steps.push('any')
    else if (byte === '[') {
      const characterClass = readClass(pattern, at + 1, ignoreCase)
      if (characterClass === undefined) return [never]
      steps.push({ negated: characterClass.negated, ranges: characterClass.ranges })
      at = characterClass.end
    } else if (byte === '\\') {
      // As in git, an escaped letter is compared in its own case.
      at++
      if (at === pattern.length) return [never]
      steps.push(codeAt(at))
    } else steps.push(fold(byte ?? '').charCodeAt(0))
  }
  return [...steps, 'exact']
}

const never: GlobStep = { negated: false, ranges: [] }

type CharacterRange = readonly [number, number]

const digit: CharacterRange = [0x30, 0x39]
const upper: CharacterRange = [0x41, 0x5a]
const lower: CharacterRange = [0x61, 0x7a]
/** The named classes, ASCII only. `space` follows `sane_ctype` of git. */
const classesByName: Readonly<Record<string, readonly CharacterRange[]>> = {
  alnum: [digit, upper, lower],
  alpha: [upper, lower],
  blank: [[0x20, 0x20], [0x09, 0x09]],
  cntrl: [[0x00, 0x1f], [0x7f, 0x7f]],
  digit: [digit],
  graph: [[0x21, 0x7e]],
  lower: [lower],
  print: [[0x20, 0x7e]],
  punct: [[0x21, 0x2f], [0x3a, 0x40], [0x5b, 0x60], [0x7b, 0x7e]],
  space: [[0x20, 0x20], [0x09, 0x0a], [0x0d, 0x0d]],
  upper: [upper],
  xdigit: [digit, [0x41, 0x46], [0x61, 0x66]],
} // biome-ignore format: a table

/** Parses the class after a `[` and finds its `]`; undefined when malformed, so that the pattern matches nothing. */
function readClass(pattern: string, start: number, ignoreCase: boolean) {
  const negated = pattern[start] === '!' || pattern[start] === '^'
  const opening = start + (negated ? 1 : 0)
  const ranges: CharacterRange[] = []
  let previous: number | undefined
  let at = opening
  for (; at === opening || pattern[at] !== ']'; at++) {
    if (at >= pattern.length) return undefined
    if (pattern[at] === '\\') {
      at++
      if (at === pattern.length) return undefined
      previous = pattern.charCodeAt(at)
      ranges.push([previous, previous])
    } else if (isRange(pattern, at) && previous !== undefined) {
      at += pattern[at + 1] === '\\' ? 2 : 1
      if (at >= pattern.length) return undefined
      ranges.push(...rangesOf(previous, pattern.charCodeAt(at), ignoreCase))
      previous = undefined
    } else if (pattern.startsWith('[:', at)) {
      const end = pattern.indexOf(']', at + 2)
      if (end === -1) return undefined
      if (end === at + 2 || pattern[end - 1] !== ':') {
        previous = 0x5b
        ranges.push([previous, previous])
        continue
      }
      const name = pattern.slice(at + 2, end - 1)
      const characterRanges = Object.hasOwn(classesByName, name) ? classesByName[name] : undefined
      if (characterRanges === undefined) return undefined
      ranges.push(...characterRanges, ...(ignoreCase && name === 'upper' ? [lower] : []))
      previous = undefined
      at = end
    } else {
      previous = pattern.charCodeAt(at)
      ranges.push([previous, previous])
    }
  }
  return { negated, ranges, end: at }
}

/** Whether this position has a `-` that another character of the class follows. */
function isRange(pattern: string, at: number): boolean {
  return pattern[at] === '-' && at + 1 < pattern.length && pattern[at + 1] !== ']'
}

/** Returns a range and, when case is ignored, the range of its upper-case letters in lower case. */
function rangesOf(first: number, last: number, ignoreCase: boolean): readonly CharacterRange[] {
  const [from, to] = [Math.max(first, upper[0]), Math.min(last, upper[1])]
  return ignoreCase && from <= to
    ? [
        [first, last],
        [from + 32, to + 32],
      ]
    : [[first, last]]
}

/**
 * Kinds of ignore rules, from the weakest: those of git, of `.ignore`, and of `.hikidashiignore`. A stronger kind decides over a weaker one,
 * and within a kind the deepest file with a matching rule decides.
 */
const kinds = ['git', 'ignore', 'own'] as const
export type IgnoreKind = (typeof kinds)[number]

/** The repository that begins at the base of some rules. git's rules from above do not apply in it. */
export interface IgnoringRepository {
  /** The git directory that the working trees of the repository share, as an absolute path. */
  readonly commonDir: string
  /** Paths of tracked files that its rules match, and of their directories with a final `/`, relative to the base. They are not ignored. */
  readonly tracked: ReadonlySet<string>
}

/** Ignore rules, such as those of one file, linked to those of the parent directories. Immutable: changed rules are a new object. */
export interface Ignores {
  readonly kind: IgnoreKind
  /** Set for the first rules of a repository. */
  readonly repository?: IgnoringRepository
  /** The directory of the rules, with a final `/`; `''` for the root. */
  readonly base: string
  readonly above: Ignores | undefined
  /** Number of automaton steps of the patterns with wildcards, those of the rules above included. */
  readonly steps: number
  /** Judges a path relative to the base: `true` ignored, `false` re-included, undefined when no rule matches. A directory's path ends in `/`. */
  judge(path: string): boolean | undefined
  /** Returns the line that decides about a path; undefined when none does. */
  lineFor(path: string): IgnoreLine | undefined
}

export interface IgnoreLine {
  /** The path of the file of rules: relative to the root, or absolute. */
  readonly file: string
  /** Line number, from 1; undefined if no single line decides. */
  readonly line?: number
  readonly pattern: string
}

interface IgnoreRule {
  /** Line number. The last rule that matches decides. */
  readonly order: number
  readonly negated: boolean
  readonly directory: boolean
}

interface WildRule extends IgnoreRule {
  readonly name: boolean
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
  /** The path of the file, as {@link IgnoreLine} shows it. Default: `.gitignore` in the base. */
  readonly file?: string
}

/**
 * Compiles a .gitignore file as git reads it (gitignore(5), and `dir.c` of git 2.39). Never throws: a malformed pattern matches nothing, as in git.
 *
 * Judging a path takes, at worst, time proportional to its length times the length of the patterns with wildcards.
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
  const fold = (bytes: string) => (ignoreCase ? asciiLowerCase(bytes) : bytes)
  for (const { order, line } of ignorePatternLines(text)) {
    const negated = line.startsWith('!')
    const patternText = negated ? line.slice(1) : line
    const directory = patternText.endsWith('/')
    const body = directory ? patternText.slice(0, -1) : patternText
    if (body === '') continue
    const rule: IgnoreRule = { order, negated, directory }
    const name = !body.includes('/')
    const pattern = body.startsWith('/') ? body.slice(1) : body
    const plain = literalPrefixLength(pattern)
    if (plain === pattern.length) (name ? names : paths).add(fold(pattern), rule)
    else if (name && pattern.startsWith('*') && literalPrefixLength(pattern.slice(1)) === pattern.length - 1)
      endings.add(fold(pattern.slice(1)), rule)
    else {
      const steps = compileIgnorePattern(pattern, { path: !name, ignoreCase })
      wild.push({ ...rule, name, start: fold(pattern.slice(0, plain)), steps })
    }
  }
  const lengths = [...new Set(endings.keys().map((ending) => ending.length))]
  wild.reverse()

  const find = (path: string): IgnoreRule | undefined => {
    const isDirectory = path.endsWith('/')
    const whole = fold(toBinaryString(isDirectory ? path.slice(0, -1) : path))
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

/** Returns rules that match nothing, but mark where a repository begins. */
export function repositoryRules(base: string, above: Ignores | undefined, repository: IgnoringRepository): Ignores {
  const [judge, lineFor] = [() => undefined, () => undefined]
  return { kind: 'git', repository, base, above, steps: above?.steps ?? 0, judge, lineFor }
}

/** Returns the repositories that a directory with these rules lies in, the innermost first. */
export function repositoriesOf(ignores: Ignores | undefined): readonly IgnoringRepository[] {
  const repositories: IgnoringRepository[] = []
  for (let at = ignores; at !== undefined; at = at.above)
    if (at.repository !== undefined) repositories.push(at.repository)
  return repositories
}

interface Decision {
  readonly ignored: boolean
  readonly by: Ignores
  /** Whether git tracks the path, although its rules ignore it. */
  readonly tracked: boolean
}

function decide(path: string, ignores: Ignores | undefined): Decision | undefined {
  let decision: Decision | undefined
  let isOutside = false
  for (let at = ignores; at !== undefined; at = at.above) {
    const { base, kind, repository } = at
    const rank = kinds.indexOf(kind)
    const isWeaker = decision !== undefined && rank <= kinds.indexOf(decision.by.kind)
    const below = path.slice(base.length)
    if (!isWeaker && !(rank === 0 && isOutside)) {
      const ignored = at.judge(below)
      if (ignored !== undefined) decision = { ignored, by: at, tracked: false }
    }
    if (repository === undefined) continue
    if (!isOutside && decision?.by.kind === 'git' && repository.tracked.has(below))
      decision = { ...decision, tracked: true }
    isOutside = true
  }
  return decision
}

/** Whether a path is ignored. A directory's path ends in `/`. */
export function isIgnored(path: string, ignores: Ignores | undefined): boolean {
  const decision = decide(path, ignores)
  return decision?.ignored === true && !decision.tracked
}

/** Returns the line that ignores a path: the last match, in the file that decides. */
export function ignoringLine(path: string, ignores: Ignores | undefined): IgnoreLine | undefined {
  const decision = decide(path, ignores)
  return decision?.ignored === true ? decision.by.lineFor(path.slice(decision.by.base.length)) : undefined
}

/** Returns the rules that ignore a path which is served only because git tracks it; undefined for any other path. */
export function rulesOverruledByGit(path: string, ignores: Ignores | undefined): Ignores | undefined {
  const decision = decide(path, ignores)
  return decision?.ignored === true && decision.tracked ? decision.by : undefined
}

/** Returns the patterns of a file with their line numbers, without comments, empty lines and unescaped trailing spaces. */
function ignorePatternLines(text: string): readonly { readonly order: number; readonly line: string }[] {
  const body = text.startsWith('\xef\xbb\xbf') ? text.slice(3) : text
  return body.split('\n').flatMap((line, index) => {
    if (line === '' || line.startsWith('#')) return []
    const text = (line.endsWith('\r') ? line.slice(0, -1) : line).replace(/\0.*$/s, '')
    return [{ order: index + 1, line: withoutSpaces(text) }]
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

function later(a: IgnoreRule | undefined, b: IgnoreRule | undefined): IgnoreRule | undefined {
  return a === undefined || (b !== undefined && b.order > a.order) ? b : a
}

function createTable() {
  const all = new Map<string, IgnoreRule>()
  const directories = new Map<string, IgnoreRule>()
  return {
    add: (text: string, rule: IgnoreRule) => (rule.directory ? directories : all).set(text, rule),
    get: (text: string, isDirectory: boolean) => later(all.get(text), isDirectory ? directories.get(text) : undefined),
    keys: () => [...all.keys(), ...directories.keys()],
  }
}

/**
 * Files and directories by their folded name. Names that are often real content (`build`, `dist`, `target`, `vendor`, `env`) are not among them:
 * .gitignore decides about those.
 */
const names = new Set([
  ...['.git', 'git~1', '.hg', '.svn', '.jj', '.sl', '.pijul', '.bzr', '_darcs', '.got', '.fslckout', '_fossil_'],
  ...['node_modules', 'bower_components', 'jspm_packages', '.pnpm-store', '.venv', 'venv', '__pycache__', '.cache'],
  ...['.pytest_cache', '.mypy_cache', '.ruff_cache', '.tox', '.nox', '.eggs', '.hypothesis', '.ipynb_checkpoints'],
  ...['.next', '.nuxt', '.svelte-kit', '.turbo', '.parcel-cache', '.angular', '.docusaurus', '.nyc_output', '.gradle'],
  ...['.terraform', '.serverless', '.dart_tool', '.stack-work', '.direnv'],
  ...['.ds_store', 'thumbs.db', '.spotlight-v100', '.fseventsd', '.trashes', '$recycle.bin', 'lost+found'],
])

/** Files and directories by their name and the name of their parent directory. */
const places = new Set(['.yarn/cache', '.yarn/unplugged'])

const patterns = new RegExp(
  [
    // Environment files, except examples, samples and templates.
    '^\\.(?:env|dev\\.vars)(?!.*\\.(example|sample|template)$)',
    '^(?!(example|sample|template)\\.).*\\.env$',
    // Backups and swap files of editors and office programs, and deleted files that are still open (NFS, FUSE).
    '~$|^\\.#|^#.*#$|\\.sw[n-p]$|^~\\$|^\\.~lock\\.|^\\._|^\\.nfs[0-9a-f]{8}|^\\.fuse_hidden',
  ].join('|'),
)

/** Whether a path that is left out by default holds credentials, judged by its name: a known name of keys, or an environment file. */
export function isSecretName(path: string): boolean {
  const name = foldName(baseName(path))
  return namesCredentials(foldPath(path, name)) || /^\.(?:env|dev\.vars)|\.env$/.test(name)
}

/** Whether a path is left out by default, in any letter case. A directory's path ends in `/`. */
export function isExcludedByDefault(path: string): boolean {
  const name = foldName(baseName(path))
  if (names.has(name) || patterns.test(name)) return true
  const folded = foldPath(path, name)
  if (namesCredentials(folded)) return true
  const body = folded.endsWith('/') ? folded.slice(0, -1) : folded
  return places.has(body.slice(body.lastIndexOf('/', body.length - name.length - 2) + 1))
}

/** Returns the last three segments of a path, folded by {@link foldName}, after a `/` if there are more. No name in the tables has more segments. */
function foldPath(path: string, name: string): string {
  const isFolder = path.endsWith('/')
  const above = (isFolder ? path.slice(0, -1) : path).split('/').slice(0, -1)
  const near = above.slice(-2).map(foldName)
  return [...(above.length > 2 ? [''] : []), ...near, name].join('/') + (isFolder ? '/' : '')
}

/** Whether a path is an environment file: `.env`, `.env.local`, `prod.env`, `.dev.vars`. False for the backups of editors. */
export function isDotenv(path: string): boolean {
  return /^\.(?:env|dev\.vars)(\..+)?$|\.env$/.test(baseName(path)) && !/\/$|~$|\.sw[n-p]$/.test(path)
}

/** Invisible characters, which some file systems ignore in a name (HFS+, case-folding ext4). */
const unseen = /\p{Default_Ignorable_Code_Point}/gu

/**
 * Returns the same text for spellings that some file systems treat as one name: `.GIT`, `.ſsh` (U+017F), `.git.` (NTFS, SMB), letters with zero-width
 * marks in between. It also maps different names to one text, so it serves only to decide what is left out.
 */
export function foldName(name: string): string {
  if (!/[^\x21-\x7e]|[A-Z]|\.$/.test(name)) return name
  const plain = name.normalize('NFKC').replace(unseen, '').toUpperCase().toLowerCase()
  return plain.replace(/(?<=[^. ])[. ]+$/, '')
}
