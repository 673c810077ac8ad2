import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { compileGlobs } from '../../src/core/glob.ts'
import { createSlices } from '../../src/core/kit/event-loop-yield.ts'
import { comparePaths } from '../../src/core/path.ts'
import { createGit } from '../../src/providers/git/index.ts'
import { type BatchObject, createAnswerReader, type GitTree, parseTree } from '../../src/providers/git/objects.ts'
import { escapeLine, escapeLines, parseTime } from '../../src/providers/git/pages.ts'
import { createRefNames, parseRefs, type RefList } from '../../src/providers/git/refs.ts'
import { completeGitOptions } from '../../src/providers/git/repository.ts'
import { ask, createGitFolder } from '../support/git.ts'
import { rawTree } from '../support/git-hostile.ts'

const keysOf = (tree: GitTree) => Array.from({ length: tree.length }, (_, index) => tree.keyAt(index))

/** A list of refs; they come in any order. */
function listOf(names: readonly string[]): Promise<RefList> {
  const lines = names.map((name) => ` ${id(name.length)} ${name}/\n`).join('')
  return parseRefs(Buffer.from(lines), 40, () => true, createSlices())
}

const id = (i: number) => i.toString(16).padStart(40, '0')

describe('the answers of git cat-file', () => {
  const objects = fc.array(
    fc.record({
      size: fc.integer({ min: 0, max: 300 }),
      missing: fc.boolean(),
      fill: fc.integer({ min: 0, max: 255 }),
    }),
    { maxLength: 12 },
  )

  test('are parsed to the same objects, however they are split into chunks', () => {
    fc.assert(
      fc.property(objects, fc.array(fc.integer({ min: 1, max: 90 }), { minLength: 1 }), (wanted, sizes) => {
        const output = Buffer.concat(
          wanted.map(({ size, missing, fill }, i) =>
            missing
              ? Buffer.from(`${id(i)}^{commit} missing\n`)
              : Buffer.concat([Buffer.from(`${id(i)} blob ${size}\n`), Buffer.alloc(size, fill), Buffer.from('\n')]),
          ),
        )
        const answers: (BatchObject | undefined)[] = []
        const read = createAnswerReader(true, {
          limit: () => 200,
          answer: (found) => answers.push(found),
          tooLarge: (found) => answers.push(found),
          broken: () => expect.unreachable(),
        })
        for (let at = 0, i = 0; at < output.length; i++) {
          const end = at + (sizes[i % sizes.length] ?? 1)
          read(output.subarray(at, end))
          at = end
        }
        const expected = wanted.map(({ size, missing, fill }, i) => {
          if (missing) return undefined
          const facts = { oid: id(i), type: 'blob', size }
          return size > 200 ? facts : { ...facts, bytes: Buffer.alloc(size, fill) }
        })
        expect(answers).toEqual(expected)
      }),
    )
  })

  test.each(['hello\n', `${id(1)} blob x\n`, `${'a'.repeat(2000)}`, `${id(1)} blob 1 2\n`])(
    'are reported as broken if they contain %j',
    (text) => {
      let broken = 0
      const unexpected = () => expect.unreachable()
      const events = { limit: () => 10, answer: unexpected, tooLarge: unexpected, broken: () => broken++ }
      const read = createAnswerReader(true, events)
      read(Buffer.from(text))
      read(Buffer.from(`${id(1)} blob 1\nx\n`))
      expect(broken).toBe(1)
    },
  )
})

describe('the parser of git trees', () => {
  test('gives the entries in path order, each name once, in whatever order they are stored', async () => {
    const name = fc.oneof(
      fc.constantFrom('a', 'a-b', 'a.txt', 'a0', 'b', '\u{ff71}', '\u{20bb7}'),
      fc.string({ minLength: 1 }),
    )
    const entry = fc.tuple(fc.constantFrom('100644', '100755', '40000', '120000', '160000'), name)
    await fc.assert(
      fc.asyncProperty(fc.array(entry), async (entries) => {
        const clean = entries.filter(([, text]) => !text.includes('\0') && text.isWellFormed())
        const tree = await parseTree(
          id(1),
          rawTree(clean.map(([mode, text]) => [mode, text, id(7)])),
          20,
          createSlices(),
        )
        const keys = keysOf(tree)
        expect([...keys].sort(comparePaths)).toEqual(keys)
        const entriesOfTree = keys.map((_, index) => tree.entryAt(index))
        expect(new Set(entriesOfTree.map((one) => one?.name)).size).toBe(tree.length)
        for (const [index, one] of entriesOfTree.entries()) {
          expect(keys[index]).toBe(one?.kind === 'directory' ? `${one.name}/` : one?.name)
          expect(tree.indexOf(one?.name ?? '', one?.kind === 'directory')).toBe(index)
          expect(tree.indexOf(one?.name ?? '', one?.kind !== 'directory')).toBe(-1)
        }
      }),
    )
  })

  test('gives the complete entries of a truncated tree', async () => {
    const bytes = rawTree([
      ['100644', 'a', id(1)],
      ['100644', 'b', id(2)],
    ])
    for (let length = 0; length <= bytes.length; length++) {
      const tree = await parseTree(id(1), bytes.subarray(0, length), 20, createSlices())
      expect(keysOf(tree)).toEqual(['a', 'b'].slice(0, Math.floor(length / 29)))
    }
  })
})

describe('names of refs in paths', () => {
  test('may be short if they are unambiguous', async () => {
    const refs = ['heads/main', 'heads/a/b', 'tags/a', 'heads/both', 'tags/both', 'heads/log', 'notes/x'].map(
      (name) => `refs/${name}`,
    )
    const names = createRefNames(await listOf(refs))
    const found = (path: string) => {
      const at = names.find(path)
      return at === undefined || at === 'ambiguous' ? at : `${at.ref.name}:${at.rest}`
    }
    expect(found('main')).toBe('refs/heads/main:')
    expect(found('main/x/y')).toBe('refs/heads/main:x/y')
    expect(found('a/b/c')).toBe('refs/heads/a/b:c')
    expect(found('a/c/b')).toBe('refs/tags/a:c/b')
    expect(found('both/x')).toBe('ambiguous')
    expect(found('refs/tags/both/x')).toBe('refs/tags/both:x')
    expect(found('log/x')).toBeUndefined()
    expect(found('refs/heads/log/x')).toBe('refs/heads/log:x')
    expect(found('notes/x')).toBeUndefined()
    expect(found('refs/notes/x/y')).toBe('refs/notes/x:y')
    expect(found('constructor')).toBeUndefined()
    expect(found('__proto__/x')).toBeUndefined()
    expect(refs.map((one) => names.shortest(one))).toEqual([
      'main',
      'a/b',
      'a',
      'refs/heads/both',
      'refs/tags/both',
      'refs/heads/log',
      'refs/notes/x',
    ])
  })

  test('are limited by the globs of the option "refs", of which git gets the part before a wildcard; by default, only HEAD, branches and tags are served', () => {
    const patterns = (...refs: string[]) => completeGitOptions({ repository: '/', refs }).patterns
    expect(patterns('HEAD', 'refs/heads/**', 'refs/tags/v*')).toEqual(['refs/heads', 'refs/tags'])
    expect(patterns('refs/heads/main')).toEqual(['refs/heads/main'])
    expect(patterns('main', 'v[12]')).toEqual(['refs'])
    expect(patterns('/refs/heads/{a,b}/c')).toEqual(['refs/heads'])
    const { serves } = completeGitOptions({ repository: '/' })
    expect(['HEAD', 'refs/heads/a/b', 'refs/tags/v1'].every(serves)).toBe(true)
    expect(['refs/stash', 'refs/pull/1/head', 'refs/remotes/origin/main', 'FETCH_HEAD'].some(serves)).toBe(false)
    expect(compileGlobs(['main'])('refs/heads/main')).toBe(true)
  })
})

describe('the parameter since of a log', () => {
  const now = Date.UTC(2026, 10, 21)
  test.each([
    ['2026-11-21', 1_795_219_200],
    ['2026-11-21T10:00', 1_795_255_200],
    ['2026-11-21 10:00:30Z', 1_795_255_230],
    ['2026-11-21T10:00:30.5+09:00', 1_795_222_830],
    ['1 day', 1_795_132_800],
    ['2 weeks ago', 1_794_009_600],
    ['3.days.ago', 1_794_960_000],
    ['1900-01-01', 0],
  ])('accepts the time %j', (text, seconds) => {
    expect(parseTime('since', text, now)).toBe(seconds)
  })

  test.each([
    '',
    'now',
    'yesterday',
    '2026',
    '2026-13-01',
    '2026-02-30x',
    '-1 day',
    '1 fortnight',
    '1795219200',
    '2026-11-21T25:00',
  ])('refuses the time %j', (text) => {
    expect(() => parseTime('since', text, now)).toThrow('is not a time')
  })
})

describe('escaped text of git', () => {
  test('shows characters that would be invisible', () => {
    expect(escapeLine('a\u001b[0m\u202eb\n\tc\u{10ffff}')).toBe('a\\u{1b}[0m\\u{202e}b\\u{a}\\u{9}c\u{10ffff}')
    expect(escapeLines('a\r\nb\tc\rd\u2028')).toBe('a\nb\tc\\u{d}d\\u{2028}')
    expect(escapeLine('😀😀', 1).isWellFormed()).toBe(true)
  })
})

describe('the dates of files in git', () => {
  test('are those of the newest commit that gave a file its content, in random histories', async () => {
    for (const seed of [1, 2, 3, 4]) await compareRandomHistory(seed)
  })
})

/** Twenty-five commits with merges of up to three parents, which take any version of a file. */
async function compareRandomHistory(seed: number): Promise<void> {
  let state = seed * 7919
  const random = (below: number) => {
    state = (state * 1_103_515_245 + 12_345) & 0x7fffffff
    return (state >> 8) % below
  }
  const count = 25
  const commits: { readonly files: Map<string, string>; readonly parents: readonly number[] }[] = []
  let input = ''
  for (let i = 0; i < count; i++) {
    const parents = new Set(i === 0 ? [] : [random(i)])
    if (i > 2 && random(3) === 0) parents.add(random(i))
    if (i > 4 && random(10) === 0) parents.add(random(i))
    const files = new Map<string, string>()
    for (const parent of parents)
      for (const [path, text] of commits[parent]?.files ?? [])
        if (!files.has(path) || random(2) === 0) files.set(path, text)
    for (let n = parents.size > 1 ? random(2) : 1 + random(2); n > 0; n--) {
      const path = `${['', 'd/'][random(2)]}f${random(6)}`
      if (random(8) === 0) files.delete(path)
      else files.set(path, `v${random(4)}`)
    }
    commits.push({ files, parents: [...parents] })
    input += `commit refs/heads/b${i}\nmark :${i + 1}\ncommitter x <x@x> ${1_700_000_000 + i * 100} +0000\ndata 1\nc\n`
    for (const [n, parent] of [...parents].entries()) input += `${n === 0 ? 'from' : 'merge'} :${parent + 1}\n`
    input += 'deleteall\n'
    for (const [path, text] of files) input += `M 100644 inline ${path}\ndata ${text.length}\n${text}\n`
    input += '\n'
  }
  const historyOf = (i: number): readonly number[] => [
    ...new Set([i, ...(commits[i]?.parents ?? []).flatMap((parent) => historyOf(parent))]),
  ]
  const folder = createGitFolder()
  const repository = folder.repository('random')
  repository.feed(input, 'fast-import', '--quiet')
  const provider = await createGit({ repository: repository.dir }, { dateBudgetMs: 60_000 })
  try {
    // One after the other: each walk begins with what the one before knows.
    for (const branch of [count - 8, count - 1, count - 5, count - 2]) {
      const prefix = `refs/heads/b${branch}/`
      for (const { path, modified } of await ask(provider).list({ prefix })) {
        const name = path.slice(prefix.length)
        const content = commits[branch]?.files.get(name)
        const writes = historyOf(branch).filter((i) => {
          const { files, parents } = commits[i] ?? { files: new Map<string, string>(), parents: [] }
          return files.get(name) === content && parents.every((parent) => commits[parent]?.files.get(name) !== content)
        })
        expect(modified, `seed ${seed}, ${path}`).toBe((1_700_000_000 + Math.max(...writes) * 100) * 1000)
      }
    }
  } finally {
    await provider.close?.()
    folder.dispose()
  }
}
