import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { hashToken } from '../../src/server/auth/caller.ts'
import { type Asked, type Authorized, eventually, openUri, read, serveAuthorized } from '../support/authorized.ts'

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 })

let server: Authorized
beforeAll(async () => {
  server = await serveAuthorized({ tokens: 'tokens.json' }, {}, { audit: { file: 'audit.jsonl' } })
  return () => server.stop()
})

interface Line {
  readonly verb: string
  readonly outcome: string
  readonly status?: number
  readonly items?: number
  readonly principal?: string
  readonly address?: string
}

const auditText = () => readFileSync(join(server.home, 'audit.jsonl'), 'utf8')
const auditLines = (): readonly Line[] =>
  auditText()
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Line)

describe('a flood of bad tokens', () => {
  const sent: string[] = []
  const answers: Asked[] = []
  let good = ''

  beforeAll(async () => {
    good = await server.token('add')
    let over = false
    const honest = (async () => {
      const found: Asked[] = []
      while (!over) {
        found.push(await read(server.url, good, openUri))
        // It is the tokens that are too many here, not the connections.
        await sleep(20)
      }
      return found
    })()
    for (let i = 0; i < 20; i++)
      await Promise.all(
        [...Array(50).keys()].map(async (j) => {
          const token = `${['hkd_', 'eyJhbGciOi.', 'x.y.', ''][j % 4]}${hashToken(`${i} ${j}`)}`
          sent.push(token)
          answers.push(await read(server.url, token, openUri))
        }),
      )
    over = true
    for (const { status } of await honest) expect(status).toBe(200)
  })

  afterAll(async () => {
    // It was not shut out, and nor is it afterwards.
    expect((await read(server.url, good, openUri)).status).toBe(200)
  })

  test('gets 401 and then 429, for every kind of bad token, and a valid token is served (TK32)', () => {
    const facts = ({ status, challenge, text }: Asked) => JSON.stringify([status, challenge, text])
    const refused = answers.filter(({ status }) => status === 401)
    const later = answers.filter(({ status }) => status === 429)
    expect(refused.length + later.length).toBe(1000)
    // 200 at once, and 20 a second for as long as it took.
    expect(refused.length).toBeGreaterThanOrEqual(200)
    expect(later.length).toBeGreaterThan(0)
    expect(new Set(refused.map(facts)).size).toBe(1)
    expect(new Set(later.map(facts)).size).toBe(1)
    for (const { headers, challenge, json } of later) {
      expect(headers.get('retry-after')).toBe('1')
      expect(challenge).toBeNull()
      expect(json().error).toMatchObject({ code: -32603, data: { reason: 'rate', retryAfter: 1 } })
    }
  })

  test('leaves few lines in the log and the audit log, which counts every refusal, and no token in either (TK32)', async () => {
    const told = server
      .log()
      .split('\n')
      .filter((line) => line.includes('a token was refused'))
    expect(told.length).toBeGreaterThan(0)
    expect(told.length).toBeLessThan(200)
    for (const line of told) expect(line).toMatch(/token=[0-9a-f]{8} why=/)
    // What was left out of the audit log is counted there in the end.
    const turnedAway = () => auditLines().filter(({ verb }) => verb === 'refused')
    const count = () => turnedAway().reduce((sum, { items = 1 }) => sum + items, 0)
    expect(
      await eventually(
        async () => count(),
        (now) => now === 1000,
      ),
    ).toBe(1000)
    expect(turnedAway().length).toBeLessThan(300)
    const seen = turnedAway().map(({ outcome, status, principal, address }) => [outcome, status, principal, address])
    expect(seen).toContainEqual(['bad-token', 401, undefined, '127.0.0.1'])
    expect(seen).toContainEqual(['bad-tokens', 429, undefined, '127.0.0.1'])
    for (const text of [auditText(), server.log()])
      for (const token of [...sent, good]) expect(text.includes(token.slice(-40))).toBe(false)
  })
})

test('requests without a valid token are recorded in the audit log without a principal (TK32)', async () => {
  expect((await read(server.url, undefined, openUri)).status).toBe(401)
  expect((await read(server.url, 'two words', openUri)).status).toBe(400)
  const found = await eventually(
    async () => auditLines(),
    (lines) => lines.some(({ outcome }) => outcome === 'malformed-token'),
  )
  expect(found).toContainEqual(
    expect.objectContaining({ verb: 'refused', outcome: 'no-token', status: 401, address: '127.0.0.1' }),
  )
  for (const { outcome, principal } of found) if (outcome.endsWith('-token')) expect(principal).toBeUndefined()
})
