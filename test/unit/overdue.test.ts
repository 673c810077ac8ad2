import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createOverdue, type Timed } from '../../src/core/call.ts'

describe('the requests in flight', () => {
  test('are those that have begun and not ended', () => {
    const steps = fc.array(fc.record({ begins: fc.boolean(), at: fc.nat(15) }), { maxLength: 200 })
    fc.assert(
      fc.property(steps, (all) => {
        const requests = Array.from({ length: 16 }, (): Timed => ({ onOver: () => {} }))
        const overdue = createOverdue<Timed>(60_000)
        const set = new Set<Timed>()
        for (const { begins, at } of all) {
          const request = requests[at]
          if (request === undefined || (begins && set.has(request))) continue
          if (begins) {
            overdue.begin(request)
            set.add(request)
          } else {
            overdue.end(request)
            set.delete(request)
          }
          expect([...overdue]).toHaveLength(set.size)
          expect(new Set(overdue)).toEqual(set)
        }
        for (const request of requests) overdue.end(request)
      }),
    )
  })

  test('can all end while they are gone through', () => {
    const overdue = createOverdue<Timed & { readonly name: number }>(60_000)
    for (let name = 0; name < 5; name++) overdue.begin({ name, onOver: () => {} })
    const seen: number[] = []
    for (const request of overdue) {
      seen.push(request.name)
      overdue.end(request)
    }
    expect(seen.sort()).toEqual([0, 1, 2, 3, 4])
    expect([...overdue]).toEqual([])
  })

  test('are told once that their time is over, and one of them may end another then', async () => {
    const overdue = createOverdue<Timed>(20)
    let told = 0
    const begin = (onOver: () => void) => {
      const request: Timed = { onOver }
      overdue.begin(request)
      return request
    }
    begin(() => told++)
    const last = begin(() => told++)
    begin(() => overdue.end(last))
    begin(() => {
      told++
      begin(() => told++)
    })
    await expect.poll(() => told).toBe(4)
    expect([...overdue]).toEqual([])
  })
})
