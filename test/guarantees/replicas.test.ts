import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Postgres, startPostgres } from '../support/postgres.ts'
import { requires } from '../support/require.ts'
import { hasProxy } from '../support/reverse-proxy.ts'
import { isThorough } from '../support/volume.ts'
import { runReplicas, violationsIn } from './replicas.ts'
import { seeds } from './seeds.ts'

/** `HIKIDASHI_FAULTS_MINUTES` makes it 300 clients with 10,000 URIs in all and 30 writers, for so many minutes: `npm run test:faults`. */
const minutes = Number(process.env.HIKIDASHI_FAULTS_MINUTES ?? 0)
const size =
  minutes > 0
    ? { clients: 300, asked: 34, items: 1000, writers: 30, writes: 20, troubles: 200, forMs: minutes * 60_000 }
    : { clients: 12, asked: 5, items: 30, writers: 4, writes: 6, troubles: 20, forMs: 1 }
/** How long is waited for what must happen: a machine that is busy takes its time with 300 clients that come back at once. */
const patience = minutes > 0 ? 600_000 : 120_000
const timeout = 600_000 + minutes * 180_000

let database: Postgres
beforeAll(async () => {
  database = await startPostgres()
}, 120_000)
afterAll(() => database?.remove())

const behindNginx = hasProxy('nginx')

const holds = (route: string) =>
  test.each(seeds())(
    `${route} keep the guarantees while they and their database are killed, stop, hang and lose connections (HIKIDASHI_SEED=%i)`,
    async (seed) => {
      const facts = await runReplicas({ seed, database, ...size, patience, behindNginx, progress: minutes > 0 })
      const overdue = facts.flatMap((fact) => (fact.kind === 'overdue' ? [fact.what] : []))
      expect({ overdue, violations: violationsIn(facts).slice(0, 30) }).toEqual({ overdue: [], violations: [] })
      // Streams were open at replicas that were ended.
      expect(facts.some((fact) => fact.kind === 'closing' && fact.streams.length > 0)).toBe(true)
      const ends = new Set(facts.flatMap((fact) => (fact.kind === 'end' ? [fact.how] : [])))
      expect(ends).toEqual(new Set(['client', 'cut', 'result']))
      expect(facts.filter(({ kind }) => kind === 'quiet').length).toBeGreaterThanOrEqual(11)
    },
    timeout,
  )

requires('nginx', behindNginx, 'nginx is not installed')('three replicas', () => holds('behind nginx'))
describe.skipIf(behindNginx)('three replicas', () => holds('with a part of the clients each'))

// It shows that the checks work, and starts three replicas for it.
test.runIf(isThorough)(
  'replicas whose log loses rows fail the check that each change is reported (V2)',
  async () => {
    const facts = await runReplicas({
      ...{ seed: 1, database, clients: 6, asked: 5, items: 10, writers: 4, writes: 4, troubles: 0, forMs: 0 },
      ...{ patience: 15_000, behindNginx },
      sabotage: async ({ run }, schema) => {
        await run(
          `create function ${schema}.lose() returns trigger language plpgsql as $$ begin
             if new.collection = (select id from ${schema}.collections where name = 'changes') then return null; end if;
             return new;
           end $$`,
        )
        await run(`create trigger lose before insert on ${schema}.rows for each row execute function ${schema}.lose()`)
      },
    })
    expect(violationsIn(facts).map(({ check }) => check)).toContain('V2')
  },
  timeout,
)
