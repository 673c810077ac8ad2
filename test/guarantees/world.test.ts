import { expect, test } from 'vitest'
import { validate } from './validate.ts'
import { rules, run } from './world.ts'

test('everything that is guaranteed holds for many clients of every revision, whatever happens', async () => {
  const facts = await run({
    seed: 1,
    clients: 200,
    writers: 50,
    storms: 4,
    writes: 12,
    troubles: 120,
    patience: 20_000,
  })
  const counts: Record<string, number> = {}
  for (const { kind } of facts) counts[kind] = (counts[kind] ?? 0) + 1
  console.log(JSON.stringify(counts))
  expect(validate(facts, rules).slice(0, 30)).toEqual([])
}, 120_000)
