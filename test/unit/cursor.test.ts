import { describe, expect, test } from 'vitest'
import { createCursorSeal } from '../../src/core/paging.ts'

const seal = createCursorSeal(Buffer.from('a secret that replicas share'))
const scope = ['list', 'alice', 'reader']

describe('a cursor', () => {
  test('opens to the sealed value, also on a replica with the same secret', () => {
    const cursor = seal.seal(scope, 'file:///秘密/a')
    expect(seal.open(scope, cursor)).toBe('file:///秘密/a')
    expect(createCursorSeal(Buffer.from('a secret that replicas share')).open(scope, cursor)).toBe('file:///秘密/a')
  })

  test('is the same for the same page, and discloses nothing of its value', () => {
    const cursor = seal.seal(scope, 'hidden-name')
    expect(seal.seal(scope, 'hidden-name')).toBe(cursor)
    for (const encoding of ['utf8', 'base64url', 'hex'] as const)
      expect(Buffer.from(cursor, 'base64url').toString(encoding)).not.toContain(
        Buffer.from('hidden').toString(encoding),
      )
  })

  test('with any changed bit is refused', () => {
    const bytes = Buffer.from(seal.seal(scope, 'path'), 'base64url')
    for (let bit = 0; bit < bytes.length * 8; bit++) {
      const forged = Buffer.from(bytes)
      forged.writeUInt8((forged[bit >> 3] ?? 0) ^ (1 << (bit & 7)), bit >> 3)
      expect(() => seal.open(scope, forged.toString('base64url'))).toThrow('cursor')
    }
  })

  test.each([
    ['another principal', ['list', 'bob', 'reader']],
    ['other roles', ['list', 'alice']],
    ['another listing', ['templates', 'alice', 'reader']],
    ['a scope that joins to the same text', ['list', 'alice,reader']],
  ])('is refused for %s', (_, other) => {
    expect(() => seal.open(other, seal.seal(scope, 'path'))).toThrow('cursor')
  })

  test('of an earlier secret is accepted while that secret is configured, and new cursors use the first secret', () => {
    const [one, two] = [Buffer.from('the first secret'), Buffer.from('the second secret')]
    const before = createCursorSeal(one)
    const both = createCursorSeal(two, [one])
    expect(both.open(scope, before.seal(scope, 'path'))).toBe('path')
    expect(both.seal(scope, 'path')).toBe(createCursorSeal(two).seal(scope, 'path'))
    expect(both.open(scope, both.seal(scope, 'path'))).toBe('path')
    for (const [other, text] of [
      [['list', 'bob', 'reader'], before.seal(scope, 'path')],
      [scope, createCursorSeal(Buffer.from('a third secret')).seal(scope, 'path')],
    ] as const)
      expect(() => both.open(other, text)).toThrow('cursor')
    expect(() => createCursorSeal(two).open(scope, before.seal(scope, 'path'))).toThrow('cursor')
  })

  test('of another secret is refused', () => {
    expect(() => createCursorSeal(Buffer.from('another')).open(scope, seal.seal(scope, 'path'))).toThrow('cursor')
  })

  test.each([
    ['an empty text', ''],
    ['one letter', 'x'],
    ['no base64', '!!!'],
    ['JSON', '{"a":1}'],
    ['22 letters', 'A'.repeat(22)],
    ['a letter beyond ASCII', 'é'],
    ['a NUL', '\u0000'],
    ['a million letters', 'A'.repeat(1_000_000)],
  ])('that was not sealed by the server is refused: %s', (_, cursor) =>
    expect(() => seal.open(scope, cursor)).toThrow('cursor'),
  )

  test('has one spelling: padding, white space and other alphabets are refused', () => {
    const cursor = seal.seal(scope, 'some path')
    for (const other of [
      `${cursor}=`,
      ` ${cursor}`,
      `${cursor}\n`,
      cursor.replaceAll('_', '/').replaceAll('-', '+').concat('='),
    ])
      expect(() => seal.open(scope, other)).toThrow('cursor')
  })
})
