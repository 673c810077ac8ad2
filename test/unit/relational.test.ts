import { setTimeout as sleep } from 'node:timers/promises'
import * as fc from 'fast-check'
import { describe, expect, test, vi } from 'vitest'
import { isPath } from '../../src/core/path.ts'
import { diagramOf } from '../../src/providers/relational/documents.ts'
import { type ObjectName, type Relation, roundEstimate } from '../../src/providers/relational/model.ts'
import {
  batchRequests,
  escapedCharacters,
  nameToSegment,
  parseDatabasePath,
  rowKeyOf,
  rowSegmentOf,
  segmentToName,
} from '../../src/providers/relational/names.ts'
import { createConnectionPool, tlsFaultMessage } from '../../src/providers/relational/open.ts'

const name = fc.oneof(
  fc.string({ unit: 'grapheme' }),
  fc
    .array(fc.constantFrom(...escapedCharacters, '.', '..', ',', '2', 'f', 'c', 'あ', '\u{10ffff}'))
    .map((all) => all.join('')),
)

describe('names in paths of a database', () => {
  test('have one valid segment each, which gives the name again', () => {
    fc.assert(
      fc.property(name, (text) => {
        const segment = nameToSegment(text)
        expect(isPath(segment) && segment !== '' && !segment.includes('/')).toBe(true)
        expect(segmentToName(segment)).toBe(text)
      }),
    )
  })

  test('are found by their own segment only', () => {
    fc.assert(
      fc.property(name, (segment) => {
        const found = segmentToName(segment)
        if (found !== undefined) expect(nameToSegment(found)).toBe(segment)
      }),
    )
    for (const segment of ['~2F', '~61', '~', '~7', '~e3', '~c2', 'a~', ''])
      if (segment !== '~') expect(segmentToName(segment)).toBe(undefined)
  })

  test('make up keys of rows, which are recovered from their segments for any characters', () => {
    fc.assert(
      fc.property(fc.array(name, { minLength: 1, maxLength: 4 }), (key) => {
        const segment = rowSegmentOf(key)
        expect(isPath(segment) && !segment.includes('/')).toBe(true)
        expect(rowKeyOf(segment, key.length)).toEqual(key)
        expect(rowKeyOf(segment, key.length + 1)).toBe(undefined)
      }),
    )
  })
})

test('paths of a database are parsed with and without a schema, and other paths are refused', () => {
  const customers = { name: { schema: 'public', name: 'customers' } }
  expect(parseDatabasePath('public/customers/schema', undefined)).toMatchObject({
    kind: 'schema',
    ...customers,
    key: 'public/customers/',
  })
  expect(parseDatabasePath('customers/rows/1,a', 'public')).toMatchObject({
    kind: 'row',
    ...customers,
    key: 'customers/',
    row: '1,a',
  })
  expect(parseDatabasePath('overview', undefined)).toEqual({ kind: 'overview' })
  expect(parseDatabasePath('overview/schema', 'public')).toMatchObject({ kind: 'schema', name: { name: 'overview' } })
  expect(parseDatabasePath('public/overview', undefined)).toEqual({ kind: 'overview', schema: 'public' })
  for (const path of [
    '',
    'public',
    'public/',
    'public/customers',
    'public/customers/',
    'public/customers/rows/',
    'a/b/schema/c',
    'a/b/x',
    'a/b/rows/1/2',
  ])
    expect(parseDatabasePath(path, undefined), path).toBe(undefined)
})

test('estimates of numbers of rows are rounded to two digits', () => {
  expect([0, 7, 123, 98_765, 1_234_567, -1, Number.NaN].map(roundEstimate)).toEqual([
    0, 7, 120, 99_000, 1_200_000, 0, 0,
  ])
})

test('a diagram of a database holds nothing that a name could break', () => {
  const hostile = 'x"]} \n%% click t0 "javascript:alert(1)"\u2028'
  const relation: Relation = {
    ...{
      schema: 's',
      name: hostile,
      kind: 'table',
      definition: '',
      uniqueKeys: [],
      checks: [],
      referencedBy: [],
      indexes: [],
      triggers: [],
    },
    columns: [{ name: hostile, type: 'numeric(10,2)', nullable: true }],
    foreignKeys: [
      { name: hostile, columns: [hostile], references: { schema: 's', name: hostile, columns: [hostile] } },
    ],
  }
  const lines = diagramOf([relation], undefined).split('\n')
  expect(lines).toHaveLength(6)
  expect(lines[1]).toMatch(/^ {2}t0\["[^"]*"\] \{$/)
  expect(lines[2]).toMatch(/^ {4}[\p{L}\p{N}_()[\]-]+ [\p{L}\p{N}_()[\]-]+ FK$/u)
  expect(lines[4]).toMatch(/^ {2}t0 \}o--o\| t0 : "[^"]*"$/)
})

describe('a batcher of queries', () => {
  const named = (text: string): ObjectName => ({ schema: '', name: text })

  test('joins simultaneous requests, each name once, into queries of at most 200 names', async () => {
    const batches: string[][] = []
    const ask = batchRequests(async (names) => {
      batches.push(names.map((one) => one.name))
      await sleep(20)
      return names.filter((one) => one.name !== 'none')
    })
    const askFor = (one: string) => ask(named(one), new AbortController().signal)
    const first = ['a', 'b', 'a', 'none'].map(askFor)
    expect(await Promise.all(first)).toEqual([named('a'), named('b'), named('a'), undefined])
    expect(batches).toEqual([['a', 'b', 'none']])
    const many = Array.from({ length: 1000 }, (_, i) => askFor(`${i}`))
    await Promise.all(many)
    expect(batches).toHaveLength(6)
  })

  test('ends a query without waiting callers, and fails all callers of a failed query', async () => {
    const seen: AbortSignal[] = []
    const ask = batchRequests<ObjectName>(async (names, signal) => {
      seen.push(signal)
      if (names[0]?.name === 'bad') throw new Error('bad')
      await new Promise((resolve) => signal.addEventListener('abort', resolve))
      return []
    })
    const [one, other] = [new AbortController(), new AbortController()]
    const asked = [one, other].map(({ signal }, i) => ask(named(`${i}`), signal))
    await vi.waitFor(() => expect(seen).toHaveLength(1))
    one.abort(new Error('gone'))
    await expect(asked[0]).rejects.toThrow('gone')
    expect(seen[0]?.aborted).toBe(false)
    other.abort(new Error('gone too'))
    await expect(asked[1]).rejects.toThrow('gone too')
    expect(seen[0]?.aborted).toBe(true)
    const { signal } = new AbortController()
    const outcomes = await Promise.allSettled([ask(named('bad'), signal), ask(named('worse'), signal)])
    expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
  })
})

describe('a pool of connections', () => {
  class Connection {
    open = true
    isUsable() {
      return this.open
    }
    close() {
      this.open = false
    }
  }
  const make = (options: { connections?: number; waitTimeoutMs?: number; idleTimeoutMs?: number } = {}) => {
    const all: Connection[] = []
    const open = async () => {
      const connection = new Connection()
      all.push(connection)
      return connection
    }
    const pool = createConnectionPool(open, {
      connections: 2,
      waitTimeoutMs: 10_000,
      idleTimeoutMs: 10_000,
      ...options,
    })
    return { pool, all }
  }
  test('has a maximum number of connections, reuses them, and closes them when it is closed', async () => {
    const { pool, all } = make()
    let most = 0
    let now = 0
    await Promise.all(
      Array.from({ length: 20 }, () =>
        pool.use(new AbortController().signal, async () => {
          most = Math.max(most, ++now)
          await sleep(1)
          now--
        }),
      ),
    )
    expect([most, all.length]).toEqual([2, 2])
    expect(all.every(({ open }) => open)).toBe(true)
    pool.close()
    expect(all.some(({ open }) => open)).toBe(false)
    await expect(pool.use(new AbortController().signal, async () => {})).rejects.toMatchObject({ kind: 'unavailable' })
  })

  test('ends the wait of a caller at its signal, or after a time-out', async () => {
    const { pool, all } = make({ connections: 1, waitTimeoutMs: 50 })
    let release = () => {}
    const held = pool.use(new AbortController().signal, () => new Promise<void>((resolve) => (release = resolve)))
    const gone = new AbortController()
    const waiting = pool.use(gone.signal, async () => {})
    const patient = pool.use(new AbortController().signal, async () => {})
    gone.abort(new Error('gone'))
    await expect(waiting).rejects.toThrow('gone')
    await expect(patient).rejects.toMatchObject({ kind: 'unavailable' })
    release()
    await held
    await pool.use(new AbortController().signal, async () => {})
    expect(all).toHaveLength(1)
  })

  test('closes a connection whose work was cancelled, and an idle one, but none whose work has failed', async () => {
    const { pool, all } = make({ idleTimeoutMs: 20 })
    const gone = new AbortController()
    const work = pool.use(gone.signal, (connection) => vi.waitFor(() => expect(connection.open).toBe(false)))
    await vi.waitFor(() => expect(all).toHaveLength(1))
    gone.abort()
    await work
    expect(all[0]?.open).toBe(false)
    await pool.use(new AbortController().signal, async () => {})
    await vi.waitFor(() => expect(all[1]?.open).toBe(false))
    await expect(pool.use(new AbortController().signal, async () => Promise.reject(new Error('bad')))).rejects.toThrow(
      'bad',
    )
    expect(all[2]?.open).toBe(true)
    pool.close()
  })
})

test.each([
  ['ERR_TLS_CERT_ALTNAME_INVALID', /for another host.*serverName/],
  ['CERT_HAS_EXPIRED', /has expired/],
  ['SELF_SIGNED_CERT_IN_CHAIN', /cannot be trusted.*"ca"/],
  ['HANDSHAKE_SSL_ERROR', /TLS connection .* failed \(HANDSHAKE_SSL_ERROR\)/],
])('the message for the TLS error %s names its remedy', (code, message) => {
  expect(tlsFaultMessage(code, false)).toMatch(message)
})
