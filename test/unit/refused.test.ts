import { describe, expect, test, vi } from 'vitest'
import { createRefusalAudit } from '../../src/server/admission/limits.ts'
import type { AuditRecord } from '../../src/server/telemetry/audit.ts'

function create() {
  const records: AuditRecord[] = []
  return { records, audit: createRefusalAudit((record) => records.push(record)) }
}

describe('the audit record of a refused request', () => {
  test('has the caller, target, reason and status, as far as they are known', () => {
    const { records, audit } = create()
    const body = { jsonrpc: '2.0', id: 1, method: 'resources/read', params: { uri: 'docs://a/b', secret: 'no' } }
    audit.add({ outcome: 'scope', status: 403, principal: 'alice', address: '192.0.2.1', body })
    audit.add({ outcome: 'bad-token', status: 401, address: '192.0.2.1' })
    audit.add({ outcome: 'busy', status: 503, principal: 'bob', body: { method: 'resources/list' } })
    audit.add({ outcome: 'share', status: 429, principal: 'bob', body: [{ method: 'resources/list' }] })
    const any = { time: expect.stringMatching(/^\d{4}-.*Z$/), transport: 'http', ms: 0 }
    expect(records).toEqual([
      { ...any, principal: 'alice', verb: 'read', uri: 'docs://a/b', outcome: 'scope', status: 403 },
      { ...any, address: '192.0.2.1', verb: 'refused', outcome: 'bad-token', status: 401 },
      { ...any, principal: 'bob', verb: 'list', outcome: 'busy', status: 503 },
      { ...any, principal: 'bob', verb: 'refused', outcome: 'share', status: 429 },
    ])
  })

  test('is short, for any request', () => {
    const { records, audit } = create()
    const params = { uri: `docs://a/${'x'.repeat(8000)}` }
    audit.add({ outcome: 'scope', status: 403, principal: 'alice', body: { method: 'resources/read', params } })
    audit.add({ outcome: 'scope', status: 403, principal: 'alice', body: { method: 'x'.repeat(8000), params: 7 } })
    for (const record of records) expect(JSON.stringify(record).length).toBeLessThan(800)
  })

  test('is left out and counted if there are too many: for one caller and reason, and in total', () => {
    const { records, audit } = create()
    for (let i = 0; i < 1000; i++) audit.add({ outcome: 'bad-token', status: 401, address: '192.0.2.1' })
    expect(records.length).toBeLessThan(40)
    const before = records.length
    audit.add({ outcome: 'bad-token', status: 401, address: '192.0.2.2' })
    audit.add({ outcome: 'no-token', status: 401, address: '192.0.2.1' })
    expect(records.length).toBe(before + 2)
    for (let i = 0; i < 5000; i++) audit.add({ outcome: 'bad-token', status: 401, address: `198.51.100.${i}` })
    expect(records.length).toBeLessThan(1000)
    audit.close()
    const [last] = records.slice(-1)
    expect(last).toMatchObject({ verb: 'refused', outcome: 'left-out', items: 6002 - (records.length - 1) })
    audit.close()
    expect(records.at(-1)).toBe(last)
  })

  test('with the number of omitted records is written without a further request', () => {
    vi.useFakeTimers()
    try {
      const { records, audit } = create()
      for (let i = 0; i < 100; i++) audit.add({ outcome: 'rate', status: 429, principal: 'bob' })
      const written = records.length
      vi.advanceTimersByTime(10_000)
      expect(records.slice(written)).toEqual([expect.objectContaining({ outcome: 'left-out', items: 100 - written })])
      vi.advanceTimersByTime(60_000)
      expect(records.length).toBe(written + 1)
      audit.close()
    } finally {
      vi.useRealTimers()
    }
  })

  test('is dropped without an error if there is no audit log', () => {
    const audit = createRefusalAudit(undefined)
    expect(() => audit.add({ outcome: 'rate', status: 429 })).not.toThrow()
    expect(() => audit.close()).not.toThrow()
  })
})
