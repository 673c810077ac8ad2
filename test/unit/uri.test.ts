import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { isResourceError } from '../../src/core/errors.ts'
import { afterSubtree, comparePaths, isPath, segmentFault } from '../../src/core/path.ts'
import { encodePath, fileAddress, formatUri, parseAddress, parseQuery, parseUri } from '../../src/core/uri.ts'
import { volumeOf } from '../support/volume.ts'

const refusalOf = (uri: string): unknown => {
  try {
    parseUri(uri)
  } catch (error) {
    if (isResourceError(error, 'invalid')) return `${error.detail.reason}: ${error.message}`
    throw error
  }
  return undefined
}

describe('parsing a URI', () => {
  test('gives the decoded segments of the path', () => {
    expect(parseUri('file:///srv/%E6%97%A5%E6%9C%AC/a%20b.txt')).toEqual({
      scheme: 'file',
      authority: '',
      segments: ['srv', '日本', 'a b.txt'],
      directory: false,
    })
  })

  test.each([
    ['%5Bid%5D.tsx', '[id].tsx'],
    ['%40scope', '@scope'],
    ['a%2Bb', 'a+b'],
    ['%E6%97%A5.md', '日.md'],
    ['%61', 'a'],
    ['a b', 'a%20b'],
    ['100%', '100%25'],
    ['%zz', '%25zz'],
  ])('takes %s and %s for the same path', (one, other) => {
    expect(parseUri(`file:///r/${one}`).segments).toEqual(parseUri(`file:///r/${other}`).segments)
  })

  test.each([
    ['FILE:///r/A', 'file:///r/A'],
    ['file:/r/A', 'file:///r/A'],
    ['file://localhost/r/A', 'file:///r/A'],
    ['GIT://Repo.Example/r/A', 'git://repo.example/r/A'],
    ['DATA:,A', 'data:,A'],
  ])('takes %s and %s for the same URI', (one, other) => {
    expect(parseUri(one)).toEqual(parseUri(other))
    expect(parseAddress(one).text).toBe(other)
  })

  test('refuses an address without an authority and a path', () => {
    for (const text of ['docs://', 'docs:///', 'docs:////'])
      expect(() => parseAddress(text), text).toThrow(/authority|path/)
    expect(parseAddress('file:///').text).toBe('file://')
  })

  test('recognizes a directory by the slash at the end', () => {
    expect(parseUri('file:///a/b/').directory).toBe(true)
    expect(parseUri('file:///a/b').directory).toBe(false)
    expect(parseUri('file:///a/b/').segments).toEqual(['a', 'b'])
  })

  test('decodes exactly once', () => {
    expect(parseUri('file:///%252e%252e/x').segments).toEqual(['%2e%2e', 'x'])
  })

  test.each([
    ['file:///r/../x', 'is not valid: dot-segment'],
    ['file:///r/%2e%2E/x', 'is not valid: dot-segment'],
    ['file:///r/.', 'is not valid: dot-segment'],
    ['file:///r/a%2fb', 'an encoded slash (%2F)'],
    ['file:///r/a\\b', 'a raw backslash'],
    ['file:///r//b', 'is not valid: empty-segment'],
    ['file:////r', 'is not valid: empty-segment'],
    ['file:///r/a%00', 'is not valid: control-character'],
    ['file:///r/a%0Ab', 'is not valid: control-character'],
    ['file:///r/a\tb', 'is not valid: control-character'],
    ['file:///r/%E2%80%A8', 'is not valid: control-character'],
    ['file:///r/%c0%ae', 'escapes (%) that are not valid'],
    ['file:///r/%ED%A0%80', 'escapes (%) that are not valid'],
    ['file:///r/\ud800', 'a lone surrogate'],
    ['git://user@host/a', 'userinfo'],
    ['file:///r/a#f', 'a fragment (#)'],
    ['file:///r/a#', 'a fragment (#)'],
    ['file://host/r', 'no host other than localhost'],
    ['file://localhost:22/r', 'no host other than localhost'],
    [' file:///r', 'white space'],
    ['file:///r\u200b', 'white space'],
    ['file:r/a', 'not of the form scheme://authority/path'],
    ['git:/r/a', 'not of the form scheme://authority/path'],
    ['file://localhost', 'neither an authority nor a path'],
    ['file://', 'neither an authority nor a path'],
    ['://', 'not of the form scheme://authority/path'],
    ['', 'not of the form scheme://authority/path'],
    [`file:///${'a/'.repeat(5000)}`, 'longer than'],
    [`file:///${'日'.repeat(3000)}`, 'longer than'],
  ])('refuses %j with the error "%s"', (uri, sentence) => {
    expect(refusalOf(uri)).toContain('uri: ')
    expect(refusalOf(uri)).toContain(sentence)
  })

  test('never throws anything but a ResourceError', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string({ unit: 'binary' }), fc.webUrl(), fc.string()), (text) => {
        refusalOf(text)
        refusalOf(`file:///${text}`)
      }),
      { numRuns: volumeOf(2000) },
    )
  })
})

describe('a canonical URI', () => {
  test('parses back to the path that it was made from', () => {
    const address = parseAddress('file:///root dir')
    expect(address.text).toBe('file:///root%20dir')
    const segment = fc.string({ unit: 'grapheme', minLength: 1 }).filter((text) => segmentFault(text) === undefined)
    fc.assert(
      fc.property(fc.array(segment, { minLength: 1, maxLength: 5 }), (segments) => {
        const uri = formatUri(address, segments.join('/'))
        expect(uri).toMatch(/^[\x21-\x7e]+$/)
        expect(parseUri(uri).segments).toEqual(['root dir', ...segments])
      }),
    )
  })

  test('escapes only characters that a segment may not hold', () => {
    expect(encodePath("a-b_c.d~e/!$&'()*+,;=:@/[x]{y}?#%")).toBe("a-b_c.d~e/!$&'()*+,;=:@/%5Bx%5D%7By%7D%3F%23%25")
  })

  test('of a local path is a file URI', () => {
    expect(fileAddress('/srv/日 本')).toBe('file:///srv/%E6%97%A5%20%E6%9C%AC')
  })
})

describe('the query of a URI', () => {
  test('gives decoded parameters, with + unchanged', () => {
    expect([...parseQuery('lines=10-40&q=a%26b+c')]).toEqual([
      ['lines', '10-40'],
      ['q', 'a&b+c'],
    ])
  })

  test.each(['', 'a=1&a=2', '=x', 'a=%ff', 'a=%00'])('is refused if it is %j', (query) => {
    expect(() => parseQuery(query)).toThrow()
  })
})

describe('paths', () => {
  test('are sorted by their bytes in UTF-8', () => {
    const paths = ['a-b', 'a.txt', 'a/b', 'a0', 'ｶ', '𠮷', '\u{10ffff}', 'é', 'e\u0301']
    const sorted = [...paths].sort(comparePaths)
    expect(sorted).toEqual([...paths].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b))))
    // JavaScript's own order is another one, which is why this test can fail.
    expect(sorted).not.toEqual([...paths].sort())
  })

  test('are sorted as Buffer.compare sorts them, for any text', () => {
    const text = fc.string({ unit: 'binary' }).filter((s) => s.isWellFormed())
    fc.assert(
      fc.property(text, text, (a, b) => {
        expect(Math.sign(comparePaths(a, b))).toBe(Buffer.compare(Buffer.from(a), Buffer.from(b)))
      }),
    )
  })

  test('within a directory sort before the key of its end, and the paths behind the directory after that key', () => {
    const key = afterSubtree('a/')
    expect(comparePaths('a/\u{10ffff}', key)).toBeLessThan(0)
    expect(comparePaths('a/z/z', key)).toBeLessThan(0)
    expect(comparePaths('a0', key)).toBeGreaterThan(0)
  })

  test.each(['', 'a', 'a/', 'a/b', '..a', 'a..b', '...'])('such as %j are valid', (path) =>
    expect(isPath(path)).toBe(true),
  )
  test.each(['/', '/a', 'a//b', '.', 'a/..', 'a/./b', 'a\u0000', '\ud800'])('such as %j are invalid', (path) =>
    expect(isPath(path)).toBe(false),
  )
})
