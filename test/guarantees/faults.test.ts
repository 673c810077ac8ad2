import { describe, expect, test } from 'vitest'
import { someOf } from '../support/volume.ts'
import {
  acknowledgesEarly,
  caches,
  cachesForEver,
  dropsTheLast,
  forgetsLate,
  listsTooLittle,
  neverAcknowledges,
  readsHalf,
  returnsSilently,
  tellsOthers,
  watchesLate,
} from './faults.ts'
import type { Fact } from './history.ts'
import type { Fault } from './sources.ts'
import { type Check, validate } from './validate.ts'
import { rules, run } from './world.ts'

/** A small world, in which every fault shows. */
const options = { seed: 7, clients: 24, writers: 8, storms: 3, writes: 10, troubles: 60, patience: 10_000 }

/** So many worlds are tried until the fault shows. */
const worlds = 4

describe('the checks of the guarantees', () => {
  const checksOf = (facts: readonly Fact[]) => [...new Set(validate(facts, rules).map(({ check }) => check))]

  test.concurrent('find no fault in a correct server with a cache', async () => {
    expect(checksOf(await run({ ...options, patience: 60_000, fault: caches }))).toEqual([])
  }, 240_000)

  test.concurrent('notice a subscription that is never acknowledged (V0)', async () => {
    expect(checksOf(await run({ ...options, patience: 2000, fault: neverAcknowledges }))).toContain('V0')
  }, 240_000)

  const broken: readonly (readonly [what: string, found: Check, fault: Fault])[] = [
    ['a source that reports too early that it watches', 'V2', watchesLate],
    ['an acknowledgement before the sources watch', 'V2', acknowledgesEarly],
    ['a source that restarts its watch without reporting that changes may be missing', 'V2', returnsSilently],
    ['a cache that is never invalidated', 'V3', cachesForEver],
    ['a cache that is invalidated after the change is reported', 'V3', forgetsLate],
    ['a throttle that drops the last change', 'V2', dropsTheLast],
    ['changes that are reported to a client that may not see them', 'V4', tellsOthers],
    ['a list that omits a resource', 'V7', listsTooLittle],
    ['a read that returns half of a write', 'V5', readsHalf],
  ]
  test.concurrent.each([...someOf('faults', broken, 2)])(
    'notice %s (%s)',
    async (_, found, fault) => {
      // In one world a fault may meet nothing that it harms: on a slow machine all is quiet while the source is away.
      const seen: Check[] = []
      for (let world = 0; world < worlds && !seen.includes(found); world++)
        seen.push(...checksOf(await run({ ...options, seed: options.seed + world, fault })))
      expect(seen).toContain(found)
    },
    240_000,
  )
})
