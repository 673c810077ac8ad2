import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { decoyOf } from '../../src/core/access.ts'
import { closedAncestor } from '../../src/core/tree.ts'

const paths = fc.array(fc.constantFrom('a', 'b', 'c'), { minLength: 1, maxLength: 12 }).map((names) => names.join('/'))

describe('the topmost denied directory above a path', () => {
  test('is found at any depth, and is undefined if no directory above the path is denied', () => {
    fc.assert(
      fc.property(paths, paths, (path, closed) => {
        const isClosed = (directory: string) => directory.startsWith(`${closed}/`)
        expect(closedAncestor(path, isClosed)).toBe(path.startsWith(`${closed}/`) ? `${closed}/` : undefined)
      }),
    )
  })

  test('is found in a few steps, however many denied directories there are', () => {
    for (const closed of [0, 1, 2000, 3998, 3999, 4000]) {
      let asked = 0
      const isClosed = (directory: string) => {
        asked++
        return directory.length > 2 * closed
      }
      expect(closedAncestor('a/'.repeat(4000), isClosed)?.length).toBe(closed === 4000 ? undefined : 2 * closed + 2)
      expect(asked).toBeLessThan(20)
    }
  })

  test('is searched for in the same number of steps, whether it exists or not', () => {
    for (const length of [1, 2, 3, 7, 8, 100]) {
      const path = 'a/'.repeat(length)
      const steps = [...Array(length + 1).keys()].map((open) => {
        let asked = 0
        closedAncestor(path, (directory) => {
          asked++
          return directory.length > 2 * open
        })
        return asked
      })
      expect(new Set(steps).size).toBe(1)
    }
    expect(closedAncestor('a', () => true)).toBeUndefined()
  })
})

describe('the path that a source is asked for instead of a hidden one', () => {
  test('differs from the hidden path in the first denied directory, or in the last name if no directory is denied', () => {
    const isClosed = (directory: string) => directory.startsWith('a/b/')
    const [first, changed, ...rest] = decoyOf('a/b/c/d.txt', isClosed).split('/')
    expect([first, ...rest]).toEqual(['a', 'c', 'd.txt'])
    expect(changed).not.toBe('b')
    expect(decoyOf('x/d.txt', isClosed)).toMatch(/^x\/\w+\.txt$/)
    expect(decoyOf('x/d/', isClosed)).toMatch(/^x\/\w+\/$/)
    expect(decoyOf('a/b/', isClosed)).toMatch(/^a\/\w+\/$/)
    expect(decoyOf('x/d.txt', isClosed)).not.toContain('/d.txt')
  })
})
