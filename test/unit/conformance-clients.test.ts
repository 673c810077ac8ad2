import { readFile } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import { type Client, clients } from '../../conformance/clients/declared.ts'
import { tableOf } from '../../conformance/clients/documented.ts'
import { type Expected, exactly, exactlyThese, judgeSession, someOf } from '../../conformance/clients/judge.ts'
import { type Ended, type Step, steps } from '../../conformance/clients/steps.ts'
import { lockedVersion } from '../../conformance/tools.ts'

const able: Client = { name: 'mcporter', session: 'x.ts', transports: ['stdio'], unable: {} }
const unable: Client = { ...able, unable: { subscribe: { reason: 'no way', offers: /subscri/i } } }

const every = <T>(value: T) => Object.fromEntries(steps.map((step) => [step, value])) as Record<Step, T>
const expected: Expected = every(exactly('right'))
const right = every<Ended>({ value: 'right' })
const verbs = ['list', 'templates', 'read', 'call', 'subscribe', 'complete', 'prompts', 'prompt']
const audit = verbs.map((verb) => ({ transport: 'stdio', revision: '2025-11-25', verb }))

const judge = (
  result: Partial<Record<Step, Ended>>,
  { client = able, code = 0, records = audit }: { client?: Client; code?: number; records?: typeof audit } = {},
) => judgeSession({ client, transport: 'stdio', code }, result, { expected, audit: records })

describe('a session of the conformance clients', () => {
  test('passes when each step was done correctly', () => {
    expect(judge(right)).toEqual({ client: able, transport: 'stdio', revision: '2025-11-25', did: steps, faults: [] })
  })

  test('fails for a step that is missing, wrong or an error', () => {
    const { list: _, ...rest } = right
    expect(judge(rest).faults).toEqual(['list: it was not done'])
    expect(judge({ ...right, list: { value: 'wrong' } }).faults).toEqual(['list: not "right", but "wrong"'])
    expect(judge({ ...right, list: { error: 'refused' } }).faults).toEqual(['list: refused'])
  })

  test('fails for a step that was left out and is not declared', () => {
    expect(judge({ ...right, subscribe: { offers: ['read'] } }).faults).toEqual([
      'subscribe: it was left out, which is not declared',
    ])
  })

  test('passes without a step that is declared impossible only if no method of the client does this step', () => {
    const leave = (offers: readonly string[]) => judge({ ...right, subscribe: { offers } }, { client: unable })
    expect(leave(['list', 'read'])).toMatchObject({ faults: [], did: steps.filter((step) => step !== 'subscribe') })
    expect(leave(['list', 'subscribeResource']).faults).toEqual([
      'subscribe: it was left out, but the client offers subscribeResource',
    ])
    expect(leave([]).faults).toEqual(['subscribe: it was left out without a look at what the client offers'])
    expect(judge(right, { client: unable }).faults).toEqual(['subscribe: it is declared as impossible, and was done'])
  })

  test('fails when the server has no record of a step, or records of several revisions', () => {
    const records = audit.filter(({ verb }) => verb !== 'subscribe')
    expect(judge(right, { records }).faults).toEqual(['subscribe: the server has no record of subscribe'])
    const two = [...audit, { transport: 'stdio', revision: '2026-07-28', verb: 'list' }]
    expect(judge(right, { records: two }).faults).toEqual(['it spoke 2025-11-25 and 2026-07-28'])
  })

  test('fails when its process fails', () => {
    expect(judge(right, { code: 1 }).faults).toEqual(['the session ended with 1'])
  })
})

describe('the list of a conformance session', () => {
  const uris = Array.from({ length: 120 }, (_, number) => `file:///${number}`)

  test('must contain every resource once, and no other', () => {
    const check = exactlyThese(uris)
    expect(check([...uris].reverse())).toBeUndefined()
    expect(check(uris.slice(1))).toContain('1 of 120 are missing')
    expect(check([...uris, 'file:///other'])).toContain('1 do not belong there')
    expect(check([...uris, ...uris.slice(0, 1)])).toContain('more than once')
    expect(check(undefined)).toContain('no list')
  })

  test('may be declared incomplete, but must contain some of the resources, and no other', () => {
    const check = someOf(uris)
    expect(check(uris.slice(0, 100))).toBeUndefined()
    expect(check([])).toBe('only 0 of 120')
    expect(check([...uris, 'file:///other'])).toContain('1 do not belong there')
  })
})

describe('the table of the conformance sessions', () => {
  test('shows for each client the steps that it did, and why it did not do the others', () => {
    const outcome = judge({ ...right, subscribe: { offers: ['read'] } }, { client: unable })
    expect(tableOf([outcome]).split('\n')[2]).toBe(
      `| \`mcporter\` ${lockedVersion('mcporter')} | 2025-11-25 | - | yes | yes | yes | yes | - | yes | yes | no way |`,
    )
  })

  test('names each client in the locked version', async () => {
    const page = await readFile(new URL('../../docs/hosts.md', import.meta.url), 'utf8')
    for (const { name } of clients) expect(page).toContain(`| \`${name}\` ${lockedVersion(name)}`)
  })
})
