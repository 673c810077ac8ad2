import { execFileSync } from 'node:child_process'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { commandFor, shellWord } from '../../src/explorer/web/preview/details.tsx'
import {
  classifyLink,
  isSameOrigin,
  lineRangeIn,
  parentOf,
  resolveReference,
  uriWithParameter,
  withPart,
} from '../../src/explorer/web/preview/model/reference.ts'

describe('references in documents', () => {
  test('resolve as RFC 3986 has it (section 5.4.1)', () => {
    const base = 'http://a/b/c/d;p?q'
    const cases = {
      g: 'http://a/b/c/g',
      './g': 'http://a/b/c/g',
      'g/': 'http://a/b/c/g/',
      '/g': 'http://a/g',
      '//g': 'http://g',
      '?y': 'http://a/b/c/d;p?y',
      'g?y': 'http://a/b/c/g?y',
      '': 'http://a/b/c/d;p?q',
      '.': 'http://a/b/c/',
      '..': 'http://a/b/',
      '../g': 'http://a/b/g',
      '../../g': 'http://a/g',
      '../../../g': 'http://a/g',
      'g;x=1/../y': 'http://a/b/c/y',
    }
    for (const [reference, uri] of Object.entries(cases)) expect(resolveReference(base, reference)?.uri).toBe(uri)
    expect(resolveReference(base, 'g#s')).toEqual({ uri: 'http://a/b/c/g', fragment: 's' })
  })

  test('are resolved against URIs of any scheme with a hierarchical path, with invalid characters escaped', () => {
    expect(resolveReference('git://app/HEAD/docs/a.md?lines=1-9', '../図 1.png')?.uri).toBe(
      'git://app/HEAD/%E5%9B%B3%201.png',
    )
    expect(resolveReference('notes://team', 'x.md')?.uri).toBe('notes://team/x.md')
    expect(resolveReference('note:today', 'x.md')).toBeUndefined()
    expect(resolveReference('file:///a/b.md?lines=3-4', '#top')).toEqual({ uri: 'file:///a/b.md', fragment: 'top' })
    expect(resolveReference('file:///a/b.md', '100%.md')?.uri).toBe('file:///a/100%25.md')
    expect(resolveReference('file:///a/b.md', '\ud800')?.uri).toBe('file:///a/%EF%BF%BD')
  })

  test('are opened in the explorer, in a new window, or not at all, depending on their scheme', () => {
    const kindOf = (reference: string) => classifyLink('file:///a/b.md', reference).kind
    expect(['c.md', '/c', 'file:///x', 'sqlite://shop/x'].map(kindOf)).toEqual(Array(4).fill('inside'))
    expect(['https://example.org/', 'mailto:a@example.org'].map(kindOf)).toEqual(['outside', 'outside'])
    const bad = ['javascript:alert(1)', ' JavaScript:x', 'data:text/html,x', 'vbscript:x', 'blob:x', 'java\nscript:x']
    expect(bad.map(kindOf).filter((kind) => kind === 'outside')).toEqual([])
    expect(bad.slice(0, 5).map(kindOf)).toEqual(Array(5).fill('none'))
  })
})

describe('parts of a resource in the explorer', () => {
  test('are requested in the query of its URI, beside other parameters, and a range of lines is read from it', () => {
    expect(withPart('a://b/c?as=text&lines=1-2', 'lines=5-9')).toBe('a://b/c?as=text&lines=5-9')
    expect(withPart('a://b/c?lines=1-2', undefined)).toBe('a://b/c')
    expect(withPart('a://b/c?tail=10', undefined)).toBe('a://b/c')
    expect(uriWithParameter('a://b/c', 'as', 'text')).toBe('a://b/c?as=text')
    expect(lineRangeIn('a://b?lines=4-')).toEqual({ first: 4 })
    expect(lineRangeIn('a://b?as=text&lines=4')).toEqual({ first: 4, last: 4 })
    expect(lineRangeIn('a://b?bytes=4')).toBeUndefined()
  })

  test('are placed in the folder of the whole resource', () => {
    expect(parentOf('file:///a/b.md?lines=1')).toBe('file:///a/')
    expect(parentOf('file:///a/b/')).toBe('file:///a/')
    expect(parentOf('sqlite://shop/overview')).toBe('sqlite://shop/')
    expect(parentOf('memo:x')).toBeUndefined()
    expect(parentOf('sqlite://shop')).toBeUndefined()
  })
})

describe('the shell command that reads a resource', () => {
  test('has quotes only if they are needed', () => {
    expect(commandFor('file:///a/b.md')).toBe('hikidashi read file:///a/b.md')
    expect(commandFor("a://b?x='$(id)'")).toBe("hikidashi read 'a://b?x='\\''$(id)'\\'''")
  })

  test.runIf(process.platform !== 'win32')('is quoted so that a shell reads exactly its words', () => {
    const texts = fc.sample(
      fc.string({ unit: 'grapheme' }).filter((text) => !text.includes('\0')),
      60,
    )
    const tricky = ["'$(id)", '`id`', '"; id; #', '\n', '\\', '!!', '~', '', ' ', '*', '--help']
    const all = [...texts, ...tricky]
    const said = execFileSync('/bin/sh', ['-c', all.map((text) => `printf '%s\\0' ${shellWord(text)}`).join('\n')])
    expect(said.toString().split('\0').slice(0, -1)).toEqual(all)
  })
})

test('a document may embed only resources with the scheme and the authority of its own URI without asking', () => {
  expect(isSameOrigin('file:///site/a.md', 'file:///site/x.png')).toBe(true)
  expect(isSameOrigin('HTTPS://Tea.example/a.md', 'https://tea.example/x.png')).toBe(true)
  for (const other of ['screen://window', 'https://other.example/x.png', 'file://host/x.png', 'x.png'])
    expect(isSameOrigin('https://tea.example/a.md', other)).toBe(false)
})
