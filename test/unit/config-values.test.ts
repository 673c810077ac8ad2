import { describe, expect, test } from 'vitest'
import { formatKey } from '../../src/config/problem.ts'
import { isLoopback } from '../../src/core/uri.ts'
import { nearestWord } from '../../src/schema/refusals.ts'
import { parseDuration, parseListenAddress, parseSize } from '../../src/schema/values.ts'

describe('values of a configuration:', () => {
  test.each([
    ['500ms', 500],
    ['60s', 60_000],
    ['30m', 1_800_000],
    ['12h', 43_200_000],
    ['1d', 86_400_000],
    [250, 250],
    [0, 0],
    ['60', undefined],
    ['-1s', undefined],
    ['1.5s', undefined],
    ['1 s', undefined],
    ['1w', undefined],
    ['1constructor', undefined],
    [0.5, undefined],
    [-1, undefined],
    ['999999999999999d', undefined],
  ])('the duration %j is %j ms (undefined: it is refused)', (text, expected) =>
    expect(parseDuration(text)).toBe(expected),
  )

  test.each([
    ['512B', 512],
    ['64KiB', 65_536],
    ['16MiB', 16_777_216],
    ['1GiB', 1_073_741_824],
    [10, 10],
    [0, undefined],
    ['0B', undefined],
    ['1MB', undefined],
  ])('the size %j is %j bytes (undefined: it is refused)', (text, expected) => expect(parseSize(text)).toBe(expected))

  test.each([
    [8787, '127.0.0.1', 8787],
    ['8787', '127.0.0.1', 8787],
    ['0', '127.0.0.1', 0],
    ['localhost:80', 'localhost', 80],
    ['0.0.0.0:65535', '0.0.0.0', 65_535],
    ['[::1]:8787', '::1', 8787],
  ])('%j listens on host %s, port %i', (text, host, port) => expect(parseListenAddress(text)).toEqual({ host, port }))

  test.each(['', ':8787', '65536', '::1:8787', 'a b:1', 'http://x:1', '1.5', -1, '8787/mcp'])(
    '%j is not an address to listen on',
    (text) => expect(parseListenAddress(text)).toBeUndefined(),
  )

  test('the loopback interface is this machine only', () => {
    expect(['localhost', '127.0.0.1', '127.9.9.9', '::1'].every(isLoopback)).toBe(true)
    expect(['0.0.0.0', '::', '10.0.0.1', '127.0.0.1.example.org', 'example.org'].some(isLoopback)).toBe(false)
  })
})

describe('the suggestion for a misspelt word', () => {
  const words = ['include', 'exclude', 'gitignore', 'root', 'title']
  test.each([
    ['exlude', 'exclude'],
    ['Exclude', 'exclude'],
    ['gitIgnore', 'gitignore'],
    ['ttile', 'title'],
    ['rot', 'root'],
    ['constructor', undefined],
    ['', undefined],
    ['xyzzy', undefined],
  ])('for %j is %j', (word, expected) => expect(nearestWord(word, words)).toBe(expected))
})

test('a path of keys is written in the syntax of JavaScript', () => {
  expect(formatKey(['mounts', 'file:///a', 'rules', 0, 'match'])).toBe('mounts["file:///a"].rules[0].match')
  expect(formatKey([])).toBe('')
})
