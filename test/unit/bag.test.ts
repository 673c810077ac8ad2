import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { Bag } from '../../src/core/call.ts'

interface Thing {
  readonly name: number
  place?: number | undefined
}

describe('a bag', () => {
  test('holds what was added and not deleted, as a set does', () => {
    const steps = fc.array(fc.record({ adds: fc.boolean(), at: fc.nat(15) }), { maxLength: 200 })
    fc.assert(
      fc.property(steps, (all) => {
        const things = Array.from({ length: 16 }, (_, name): Thing => ({ name }))
        const [bag, set] = [new Bag<Thing>(), new Set<Thing>()]
        for (const { adds, at } of all) {
          const thing = things[at]
          if (thing === undefined || (adds && set.has(thing))) continue
          if (adds) {
            bag.add(thing)
            set.add(thing)
          } else {
            bag.delete(thing)
            set.delete(thing)
          }
          expect(bag.size).toBe(set.size)
          expect(new Set(bag)).toEqual(set)
        }
      }),
    )
  })

  test('can be emptied while it is gone through', () => {
    const bag = new Bag<Thing>()
    for (let name = 0; name < 5; name++) bag.add({ name })
    const seen: number[] = []
    for (const thing of bag) {
      seen.push(thing.name)
      bag.delete(thing)
    }
    expect(seen.sort()).toEqual([0, 1, 2, 3, 4])
    expect(bag.size).toBe(0)
  })
})
