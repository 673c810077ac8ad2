import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isResourceError } from '../../src/core/errors.ts'
import {
  compileGlob,
  compileGlobProgram,
  compileGlobs,
  compileReach,
  escapeGlob,
  runGlob,
} from '../../src/core/glob.ts'
import { volumeOf } from '../support/volume.ts'

function check(glob: string, { yes, no }: { yes: readonly string[]; no: readonly string[] }): void {
  const matches = compileGlob(glob)
  const wrong = [...yes.filter((path) => !matches(path)), ...no.filter(matches)]
  expect({ glob, wrong }).toEqual({ glob, wrong: [] })
}

describe('globs', () => {
  it('keep * and ? within a segment', () => {
    check('src/*.ts', { yes: ['src/a.ts', 'src/.ts'], no: ['src/a/b.ts', 'a.ts', 'lib/src/a.ts', 'src/a.tsx'] })
    check('src/?.ts', { yes: ['src/a.ts', 'src/あ.ts', 'src/👪.ts'], no: ['src/ab.ts', 'src/.ts', 'src//.ts'] })
    check('a*b*c/d', { yes: ['abc/d', 'axbxbxc/d'], no: ['ab/c/d', 'abd/d'] })
    check('/*', { yes: ['a', 'a/'], no: ['a/b'] })
  })

  it('match an escaped name literally', () => {
    for (const name of ['!a', 'a!b', '*', '{a,b}', '[!x]', 'a\\b', '?'])
      check(`/${escapeGlob(name)}`, { yes: [name], no: ['a', 'ab', 'x'] })
    check(escapeGlob('!a'), { yes: ['!a'], no: ['a'] })
  })

  it('without a slash match the base name at any depth', () => {
    check('*.md', { yes: ['a.md', 'x/y/a.md', '.md', 'x/dir.md/'], no: ['a.md/b', 'a.mdx'] })
    check('/*.md', { yes: ['a.md'], no: ['x/a.md'] })
  })

  it('match any number of segments with **', () => {
    check('**', { yes: ['', 'a', 'a/b', 'a/b/'], no: [] })
    check('**/x', { yes: ['x', 'a/x', 'a/b/x'], no: ['ax', 'x/a', 'a/bx'] })
    check('x/**', { yes: ['x/a', 'x/a/b', 'x/a/'], no: ['x', 'x/', 'a/x/b', 'xa/b'] })
    check('a/**/b', { yes: ['a/b', 'a/x/b', 'a/x/y/b', 'a/b/b'], no: ['a/xb', 'ab', 'a/b/c'] })
    check('**/a/**/*.ts', { yes: ['a/x.ts', 'y/a/z/x.ts'], no: ['x.ts', 'b/x.ts'] })
    check('**/**/a/**/**', { yes: ['a/x', 'b/a/x/y'], no: ['a'] })
  })

  it('treat ** beside other characters as *', () => {
    check('a**/b', { yes: ['a/b', 'axy/b'], no: ['a/x/b'] })
    check('x/***', { yes: ['x/a'], no: [] })
  })

  it('with a slash at the end match a directory and everything below it', () => {
    check('node_modules/', {
      yes: ['node_modules/', 'node_modules/a/b', 'x/node_modules/a'],
      no: ['node_modules', 'x/'],
    })
    check('/build/', { yes: ['build/', 'build/a'], no: ['x/build/a', 'build'] })
    check('src/*/', { yes: ['src/a/', 'src/a/b'], no: ['src/a', 'src/'] })
    check('x/**/', { yes: ['x/a/', 'x/a/b', 'x/a/b/c'], no: ['x/a', 'x/'] })
    check('**/', { yes: ['a/', 'a/b'], no: ['a'] })
  })

  it('support character classes', () => {
    check('[abc].ts', { yes: ['a.ts'], no: ['d.ts', 'ab.ts', '.ts'] })
    check('[!a-c]x', { yes: ['dx', '-x'], no: ['ax', 'cx', 'y/x'] })
    check('[^a-c]x', { yes: ['dx'], no: ['ax'] })
    check('x[]-]', { yes: ['x]', 'x-'], no: ['x'] })
    check('x[a\\]\\-z]', { yes: ['x]', 'x-', 'xz', 'xa'], no: ['xb'] })
    check('[ぁ-ん]*', { yes: ['ひらがな'], no: ['カタカナ'] })
    check('[😀-😎]', { yes: ['😃'], no: ['🙃', '\ud83d'] })
    check('a[!b]c', { yes: ['axc'], no: ['a/c', 'abc'] })
  })

  it('expand braces, nested too', () => {
    check('*.{ts,js}', { yes: ['a.ts', 'x/a.js'], no: ['a.tsx', 'a.{ts,js}'] })
    check('{a,b{c,d}}/x{,y}', { yes: ['a/x', 'bc/xy', 'bd/x'], no: ['b/x', 'c/x'] })
    check('{docs/,*.md,/LICENSE}', { yes: ['docs/a', 'x/docs/', 'x/a.md', 'LICENSE'], no: ['docs', 'x/LICENSE'] })
    check('{**/,}x/y', { yes: ['x/y', 'a/x/y'], no: ['a/y'] })
    check('{[,],b}', { yes: [',', 'b'], no: ['[', '[,]'] })
    check('a,b', { yes: ['a,b'], no: ['a'] })
  })

  it('match an escaped character literally', () => {
    check('\\*\\?\\[\\{\\}\\!\\\\', { yes: ['*?[{}!\\'], no: ['a?[{}!\\'] })
    check('\\!important', { yes: ['!important'], no: ['important'] })
    check('\\[id\\].tsx', { yes: ['[id].tsx'], no: ['i.tsx'] })
    check('{a\\,b,c}', { yes: ['a,b', 'c'], no: ['a', 'b'] })
  })

  it('match names that begin with a dot', () => {
    check('*', { yes: ['.env', 'a/.env'], no: [] })
    check('**/config', { yes: ['.git/config'], no: [] })
  })

  it('ignore case when configured, whatever the neighbours of a letter', () => {
    const matches = compileGlob('**/*.{JPG,σΣ}', { ignoreCase: true })
    for (const path of ['a.jpg', 'X/A.JPG', 'a.jPg', 'a.ΣΣ', 'a.σσ']) expect(matches(path)).toBe(true)
    expect(compileGlob('[A-C]Ä', { ignoreCase: true })('bä')).toBe(true)
    expect(compileGlob('*.JPG')('a.jpg')).toBe(false)
  })

  it('match canonically equivalent texts, in literals, classes and alternatives', () => {
    const decomposed = 'が'.normalize('NFD')
    for (const [glob, path] of [
      ['が', decomposed],
      [decomposed, 'が'],
    ] as const) {
      // biome-ignore format: a table
      check(glob, { yes: [path, `a/${path}`], no: ['か'] })
      check(`${glob}/**`, { yes: [`${path}/a`], no: ['か/a'] })
      check(`x/${glob}/`, { yes: [`x/${path}/`, `x/${path}/a`], no: ['x/か/'] })
      check(`[${glob}]?.md`, { yes: [`${path}${path}.md`], no: ['かx.md'] })
      check(`{a,${glob}}`, { yes: [path], no: ['か'] })
      expect(compileReach([`${glob}/**`])(`${path}/`)).toBe('all')
      expect(compileGlob(glob.toUpperCase(), { ignoreCase: true })(path)).toBe(true)
    }
    check('?', { yes: ['é'.normalize('NFD'), '각'.normalize('NFD')], no: [] })
    check('\u212b.md', { yes: ['\u00c5.md', 'A\u030a.md'], no: ['A.md'] })
    expect(compileGlob('É*', { ignoreCase: true })('e\u0301x')).toBe(true)
  })

  it('in a list match if any of them does, and an empty list matches nothing', () => {
    const matches = compileGlobs(['*.md', 'src/'])
    expect(['a.md', 'src/x', 'x'].map(matches)).toEqual([true, true, false])
    expect(compileGlobs([])('a')).toBe(false)
  })

  it.each([
    ['', 'it is empty'],
    ['/', 'it has an empty segment'],
    ['a//b', 'it has an empty segment'],
    ['{a,}', 'it is empty'],
    ['a/./b', 'it has a segment "." or "..", which no path has'],
    ['../a', 'it has a segment "." or "..", which no path has'],
    ['!a', 'it begins with "!", and there is no negation; write "\\!" for the character'],
    ['a\\', 'it ends in a lone "\\"'],
    ['[a', 'a "[" has no "]"'],
    ['[]', 'a "[" has no "]"'],
    ['[a\\', 'a "[" has no "]"'],
    ['[a/b]', 'a class ([…]) holds a "/"'],
    ['[z-a]', 'a range in a class ([…]) is the wrong way round'],
    ['[[:alpha:]]', 'named classes ([:…:]) are not supported'],
    ['{a', 'a "{" has no "}"'],
    ['a}', 'a "}" has no "{"'],
    ['{id}', 'braces hold only one alternative; write "\\{" for the character'],
  ])('such as %j are refused with the reason', (glob, what) => {
    expect(() => compileGlob(glob)).toThrow(`The glob ${JSON.stringify(glob)} is malformed: ${what}.`)
  })

  it('have limits, and an error shows only the beginning of a glob beyond them', () => {
    expect(() => compileGlob('{a,b}'.repeat(9))).not.toThrow()
    expect(() => compileGlob('{a,b}'.repeat(10))).toThrow('it has more than 1000 alternatives.')
    expect(() => compileGlob(`{${','.repeat(1000)}}`)).toThrow('it has more than 1000 alternatives.')
    expect(() => compileGlob(`${'{a,'.repeat(21)}${'}'.repeat(21)}`)).toThrow('its braces are nested deeper than 20.')
    expect(() => compileGlob('a'.repeat(4096))).not.toThrow()
    expect(() => compileGlob('a'.repeat(4097))).toThrow(
      `The glob "${'a'.repeat(60)}…" is malformed: it is longer than 4096 characters.`,
    )
  })

  it('throw nothing but ResourceError, and only when they are compiled', () => {
    const globs = fc.string({ unit: fc.constantFrom(...'a*?[]{},!-\\/.é😀') })
    fc.assert(
      fc.property(globs, fc.string({ unit: 'binary' }), (glob, path) => {
        try {
          compileGlob(glob)
        } catch (error) {
          expect(isResourceError(error, 'invalid')).toBe(true)
          return
        }
        expect(typeof compileGlob(glob)(path)).toBe('boolean')
      }),
      { numRuns: volumeOf(2000, 500) },
    )
  })

  it('agree with a backtracking regular expression', () => {
    const segments = fc.array(
      fc.oneof(fc.constant('**'), fc.array(fc.constantFrom('a', 'b', '*', '?'), { minLength: 1, maxLength: 4 })),
      { minLength: 2, maxLength: 5 },
    )
    const paths = fc.array(fc.string({ unit: fc.constantFrom('a', 'b', 'c'), minLength: 1, maxLength: 3 }), {
      maxLength: 6,
    })
    let matched = 0
    fc.assert(
      fc.property(segments, paths, (glob, path) => {
        const written = glob.map((segment) =>
          segment === '**' ? '**' : (segment as string[]).join('').replace(/\*+/g, '*'),
        )
        fc.pre(written.some((segment) => segment !== '**'))
        const pattern = written.map((segment, index) => {
          const last = index === written.length - 1
          if (segment === '**') return last ? '.+' : '(?:[^/]+/)*'
          return segment.replaceAll('*', '[^/]*').replaceAll('?', '[^/]') + (last ? '' : '/')
        })
        const expected = new RegExp(`^${pattern.join('')}$`).test(path.join('/'))
        expect(compileGlob(written.join('/'))(path.join('/'))).toBe(expected)
        if (expected) matched++
      }),
      { numRuns: volumeOf(2000, 500) },
    )
    expect(matched).toBeGreaterThan(volumeOf(80, 20))
  })

  /** How many steps are looked at while a path is compared. */
  const looks = (glob: string, path: string) => {
    let count = 0
    const steps = new Proxy([...compileGlobProgram(glob).steps], {
      get: (target, key) => {
        if (key !== 'length') count++
        return Reflect.get(target, key)
      },
    })
    runGlob(
      { steps },
      Array.from(path, (character) => character.codePointAt(0) ?? 0),
    )
    return count
  }

  it.each([
    ['**/*/', 'x', 'ab/', 200],
    ['**/', '*/x/y', 'ab/', 200],
    ['**/a*/', 'x', 'ab/', 200],
    ['**/*a*/', '*/x', 'aa/', 200],
    ['*a', 'b', 'a', 600],
  ])(
    'take steps in proportion to the path and to the glob: %s, thirty times (PT39)',
    (repeated, end, segment, count) => {
      const glob = repeated.repeat(30) + end
      const path = segment.repeat(count)
      const steps = looks(glob, path)
      const size = compileGlobProgram(glob).steps.length
      expect(compileGlob(glob)(path)).toBe(false)
      expect(steps).toBeLessThanOrEqual(3 * size * path.length)
      expect(looks(glob, path + path)).toBeLessThanOrEqual(2.2 * steps)
    },
  )

  it.each([
    ['{a,b}'.repeat(9), 'ab'],
    [`${'{a,*b}'.repeat(9)}*c/d`, 'ab'],
    [`{${Array.from({ length: 512 }, (_, i) => `*${i}*a`).join(',')}}/x`, '1a'],
  ])(
    'with alternatives take steps in proportion to the length of the glob and of the path: %.40s (PT39)',
    (glob, segment) => {
      expect(compileGlobProgram(glob).steps.length).toBeLessThanOrEqual(4 * glob.length)
      const path = segment.repeat(50)
      expect(looks(glob, path)).toBeLessThanOrEqual(4 * glob.length * path.length)
    },
  )

  it('with braces match the same as their alternatives', () => {
    const part = fc.constantFrom('a', 'b', '*', '**', '?', '/', '.a', '[ab]')
    const sequence = fc.array(part, { maxLength: 3 }).map((parts) => parts.join(''))
    const piece = fc.oneof(sequence, fc.array(sequence, { minLength: 2, maxLength: 3 }))
    const path = fc.string({ unit: fc.constantFrom('a', 'b', '/', '.'), maxLength: 7 })
    let matched = 0
    const matcherOf = (glob: string) => {
      try {
        return compileGlob(glob)
      } catch {
        return undefined
      }
    }
    fc.assert(
      fc.property(fc.array(piece, { minLength: 1, maxLength: 4 }), fc.array(path), (pieces, paths) => {
        const glob = pieces.map((one) => (typeof one === 'string' ? one : `{${one.join(',')}}`)).join('')
        let written = ['']
        for (const one of pieces) written = written.flatMap((head) => [one].flat().map((tail) => head + tail))
        const each = written.map(matcherOf)
        const whole = matcherOf(glob)
        expect(whole === undefined, glob).toBe(each.includes(undefined))
        for (const one of whole === undefined ? [] : paths) {
          const expected = each.some((matches) => matches?.(one) === true)
          expect({ glob, one, matches: whole?.(one) }).toEqual({ glob, one, matches: expected })
          if (expected) matched++
        }
      }),
      { numRuns: volumeOf(2000, 500) },
    )
    expect(matched).toBeGreaterThan(100)
  })
})
