import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import * as fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { compileIgnores, type Ignores, isIgnored } from '../../src/providers/files/ignores.ts'
import { createFolder, type Folder } from '../support/folder.ts'
import { volumeOf } from '../support/volume.ts'

let folder: Folder

beforeEach(() => {
  folder = createFolder()
  execFileSync('git', ['-c', 'init.defaultBranch=main', 'init', '-q'], { cwd: folder.root })
})
afterEach(() => {
  folder.remove()
})

const seed = 20_261_122

/** What a file of patterns says of a path that it does not lie above: ignored, included again, or nothing. */
type Verdict = 'ignored' | 'included' | 'nothing'

/** Asks git of all paths at once. */
function askGit(paths: readonly string[], ...options: readonly string[]): readonly Verdict[] {
  const args = [...options, 'check-ignore', '--no-index', '-v', '-n', '--stdin', '-z']
  const input = Buffer.from(paths.map((path) => `${path}\0`).join(''))
  const told = execFileSync('git', args, { cwd: folder.root, input, maxBuffer: 2 ** 28, encoding: 'latin1' }).split(
    '\0',
  )
  return paths.map((_, at) => {
    const pattern = told[at * 4 + 2]
    return pattern === '' ? 'nothing' : pattern?.startsWith('!') ? 'included' : 'ignored'
  })
}

/** The verdict of the rules of one directory; below an ignored directory, everything is ignored. */
function judge(path: string, isDirectory: boolean, ignoresIn: (directory: string) => Ignores | undefined): Verdict {
  const segments = path.split('/')
  let base = ''
  for (const segment of segments.slice(0, -1)) {
    if (isIgnored(`${base}${segment}/`, ignoresIn(base))) return 'ignored'
    base += `${segment}/`
  }
  const whole = isDirectory ? `${path}/` : path
  for (let at = ignoresIn(base); at !== undefined; at = at.above) {
    const verdict = at.judge(whole.slice(at.base.length))
    if (verdict !== undefined) return verdict ? 'ignored' : 'included'
  }
  return 'nothing'
}

/** Whether this git takes `**` behind plain text for a whole segment: it does up to 2.51, and not where that was mended. */
function takesStarsBehindText(): boolean {
  folder.write({ 'probe/.gitignore': 'x/a**/b\n', 'probe/x/ay/z/': null })
  return askGit(['probe/x/ay/z/b'])[0] === 'ignored'
}

const plain = fc.constantFrom('a', 'b', 'ab', 'A', 'é', 'c.x', '-', ' ', ']', '!', '#', '.')
const wild = fc.constantFrom(
  ...[
    '*',
    '**',
    '***',
    '?',
    '\\',
    '\\*',
    '\\a',
    '\\A',
    '\\ ',
    '\\#',
    '\\!',
    '\\/',
    '\\\\',
    '[',
    '*.x',
    'a*',
    '*a',
    '*a*b',
  ],
  ...['[ab]', '[!ab]', '[^a]', '[a-c]', '[A-C]', '[c-a]', '[]a]', '[]-a]', '[a-]', '[-a]', '[\\]a]', '[a\\-c]', '[é]'],
  ...['[[:alpha:]]', '[![:digit:]]', '[[:upper:]]', '[[:lower:]x]', '[[:punct:]]', '[[:space:]]', '[[:nope:]]', '[[:]'],
  ...['[[:alnum:]-x]', '[a-[:digit:]]', '[[:xdigit:]', '[a/b]', '[!/]', '[a', '[\\', '[^]a]', '[A]', '[[:print:]]'],
)
const piece = fc.oneof({ weight: 3, arbitrary: plain }, { weight: 3, arbitrary: wild })
const segment = fc.array(piece, { minLength: 1, maxLength: 3 }).map((parts) => parts.join(''))
const deep = fc.oneof({ weight: 3, arbitrary: segment }, { weight: 1, arbitrary: fc.constant('**') })
const pattern = fc
  .tuple(
    fc.constantFrom('', '', '', '!', '!', '/', '!/', '#', '!!'),
    fc.array(deep, { minLength: 1, maxLength: 4 }),
    fc.constantFrom('', '', '', '/', '/', '//', ' ', '  ', '\\ ', ' \\', '\r', ' \r', '\t'),
  )
  .map(([start, segments, end]) => `${start}${segments.join('/')}${end}`)
const rules = fc.array(pattern, { minLength: 1, maxLength: 4 })

const names = ['a', 'b', 'ab', 'A', 'aB', 'é', 'c.x', '-', 'a ', ']', '!', '#a', 'ba', 'a-b', '9', 'a\\', 'a*b', '[a']
const name = fc.constantFrom(...names)

interface Case {
  /** The files of patterns, by the directories that they lie in. */
  readonly files: readonly (readonly [string, readonly string[]])[]
  readonly paths: readonly string[]
}

const corpus: fc.Arbitrary<Case> = fc.record({
  files: fc.tuple(
    rules.map((lines) => ['', lines] as const),
    fc.tuple(fc.constantFrom('a/', 'b/', 'ab/', 'a/b/'), rules),
  ),
  paths: fc.array(
    fc.array(name, { minLength: 1, maxLength: 4 }).map((parts) => parts.join('/')),
    { minLength: 40, maxLength: 40 },
  ),
})

describe('.gitignore', () => {
  test.each([false, true])('matches as git does for any patterns and paths (case ignored: %s)', (ignoreCase) => {
    const quirk = takesStarsBehindText()
    const cases = fc.sample(corpus, { seed, numRuns: volumeOf(240, 120) })
    const asked: string[] = []
    const ours: Verdict[] = []
    const shown: unknown[] = []
    for (const [index, { files, paths }] of cases.entries()) {
      const home = `set${index}/`
      const kept = files.map(([at, lines]) => [at, quirk ? lines : lines.filter(isOneForAllVersions)] as const)
      const compiled = new Map<string, Ignores>()
      for (const [at, lines] of kept) {
        const text = `${lines.join('\n')}\n`
        folder.write({ [`${home}${at}.gitignore`]: text })
        const bytes = Buffer.from(text).toString('latin1')
        compiled.set(at, compileIgnores(bytes, at, at === '' ? undefined : compiled.get(''), { ignoreCase }))
      }
      const [, [inner]] = kept as [unknown, readonly [string, unknown]]
      const ignoresIn = (directory: string) => compiled.get(directory.startsWith(inner) ? inner : '')
      for (const [at, path] of paths.entries()) {
        // A directory has to be there, for git to know that it is one.
        const isDirectory = at % 3 === 0
        if (isDirectory) fs.mkdirSync(folder.at(`${home}${path}`), { recursive: true })
      }
      for (const path of paths) {
        asked.push(`${home}${path}`)
        const isDirectory = fs.existsSync(folder.at(`${home}${path}`))
        ours.push(judge(path, isDirectory, ignoresIn))
        shown.push({ path, isDirectory, files: kept })
      }
    }
    const theirs = askGit(asked, '-c', `core.ignorecase=${ignoreCase}`)
    const wrong = shown.filter((_, at) => ours[at] !== theirs[at])
    const told = wrong.slice(0, 5).map((one) => {
      const at = shown.indexOf(one)
      return { ...(one as object), ours: ours[at], theirs: theirs[at] }
    })
    expect({ wrong: wrong.length, told }, JSON.stringify(told, null, 1)).toEqual({ wrong: 0, told: [] })
    expect(asked.length).toBeGreaterThanOrEqual(volumeOf(8000, 2000))
    // Enough of each: a matcher that says nothing would agree with patterns that never match.
    for (const verdict of ['ignored', 'included', 'nothing'] as const)
      expect(theirs.filter((one) => one === verdict).length, verdict).toBeGreaterThan(volumeOf(400, 100))
  })
})

/** Whether all versions of git take a pattern for the same: see {@link takesStarsBehindText}. */
function isOneForAllVersions(line: string): boolean {
  return !/^[!/]*[^*?[\\]*[^*?[\\/]\*\*/.test(line)
}
