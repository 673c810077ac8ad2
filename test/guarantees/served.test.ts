import { expect, test } from 'vitest'
import { volumeOf } from '../support/volume.ts'
import { seeds } from './seeds.ts'
import { rules, runServed } from './served.ts'
import { validate } from './validate.ts'

const size = {
  clients: volumeOf(16, 8),
  writers: volumeOf(8, 4),
  writes: 6,
  troubles: volumeOf(40, 16),
  patience: 60_000,
}

test.each(seeds())(
  'the guarantees of docs/guarantees.md hold while servers are killed, stop and hang, the system loses events, and the folder disappears (HIKIDASHI_SEED=%i)',
  async (seed) => {
    const facts = await runServed({ seed, ...size })
    expect(validate(facts, rules).slice(0, 30)).toEqual([])
    const ends = new Set(facts.flatMap((fact) => (fact.kind === 'end' ? [fact.how] : [])))
    expect(ends).toEqual(new Set(['client', 'cut', 'result']))
    expect(facts.filter(({ kind }) => kind === 'quiet')).toHaveLength(6)
  },
  300_000,
)
