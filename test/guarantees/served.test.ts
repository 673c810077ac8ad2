import { expect, test } from 'vitest'
import { seeds } from './seeds.ts'
import { rules, runServed } from './served.ts'
import { validate } from './validate.ts'

const size = { clients: 16, writers: 8, writes: 6, troubles: 40, patience: 60_000 }

test.each(seeds())(
  'it holds where servers are killed, end and sleep, the system forgets to tell, and the folder goes (HIKIDASHI_SEED=%i)',
  async (seed) => {
    const facts = await runServed({ seed, ...size })
    expect(validate(facts, rules).slice(0, 30)).toEqual([])
    const ends = new Set(facts.flatMap((fact) => (fact.kind === 'end' ? [fact.how] : [])))
    expect(ends).toEqual(new Set(['client', 'cut', 'result']))
    expect(facts.filter(({ kind }) => kind === 'quiet')).toHaveLength(6)
  },
  300_000,
)
