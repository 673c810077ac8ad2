import { expect, test } from 'vitest'
import { volumeOf } from '../support/volume.ts'
import { seeds } from './seeds.ts'
import { validate } from './validate.ts'
import { rules, run } from './world.ts'

// What has not come after the patience never will. It is long for the sake of machines that do something else besides.
const size = {
  ...{ clients: volumeOf(120, 60), writers: volumeOf(30, 15), troubles: volumeOf(80, 40) },
  ...{ storms: 4, writes: 12, patience: 60_000 },
}

test.each(seeds())(
  'the guarantees of docs/guarantees.md hold for many clients of every protocol revision while clients, connections and sources fail (HIKIDASHI_SEED=%i)',
  async (seed) => {
    const facts = await run({ seed, ...size })
    expect(validate(facts, rules).slice(0, 30)).toEqual([])
    const count = (kind: string) => facts.filter((fact) => fact.kind === kind).length
    // It did happen: writes were told, clients came back, sources were lost.
    expect(count('updated')).toBeGreaterThan(count('write'))
    expect(count('open')).toBeGreaterThan(size.clients)
    expect(count('lost')).toBeGreaterThan(0)
    expect(count('read')).toBeGreaterThan(size.clients)
  },
  300_000,
)
