import { describe, expect, test } from 'vitest'
import type { Fact } from './history.ts'
import { type Check, type Rules, validate } from './validate.ts'

const rules: Rules = {
  maySee: (principal, uri) => !uri.startsWith('x:secret') || principal === 'chief',
  covers: (asked, uri) => asked.endsWith('/') && uri.startsWith(asked),
  isStable: (uri) => uri === 'x:a' || uri === 'x:secret/s',
  exact: true,
}

const write = (uri: string, version: number, more: { absent?: boolean; listed?: boolean } = {}): Fact => ({
  ...{ kind: 'write', uri, version, listed: false, absent: false },
  ...more,
})
const read = (uri: string, version: number | 'absent' | 'torn', started: number): Fact => ({
  ...{ kind: 'read', client: 1, uri, version, started },
})
const updated = (uri: string, stream = 0): Fact => ({ kind: 'updated', stream, uri })
const ack = (...uris: string[]): Fact => ({ kind: 'ack', stream: 0, uris, list: false })
const ask = (...uris: string[]): Fact => ({ kind: 'ask', stream: 0, uris, list: false, follows: uris })
const open: Fact = { kind: 'open', stream: 0, client: 1, principal: 'guest', modern: true }
const end = (how: 'result' | 'cut' | 'client'): Fact => ({ kind: 'end', stream: 0, how })
const quiet: Fact = { kind: 'quiet', streams: [0] }

/** A stream that is told of `x:a`, written once before. */
const begun: readonly Fact[] = [write('x:a', 0), open, ask('x:a'), ack('x:a'), read('x:a', 0, 4), quiet]

const checksOf = (facts: readonly Fact[], given = rules): readonly Check[] => [
  ...new Set(validate(facts, given).map(({ check }) => check)),
]

describe('a recorded history', () => {
  test('in which everything is reported and read in order is valid', () => {
    const facts = [...begun, write('x:a', 1), updated('x:a'), read('x:a', 1, 8), quiet, end('client')]
    expect(checksOf(facts)).toEqual([])
  })

  test('in which a stream ends before a write is reported is valid', () => {
    for (const how of ['result', 'cut', 'client'] as const)
      expect(checksOf([...begun, write('x:a', 1), end(how)])).toEqual([])
  })

  const broken: readonly (readonly [what: string, found: Check, facts: readonly Fact[]])[] = [
    [
      'a change is reported before the acknowledgement',
      'V1',
      [open, ask('x:a'), updated('x:a'), ack('x:a'), end('cut')],
    ],
    ['a subscription stream is acknowledged twice', 'V1', [...begun, ack('x:a'), end('cut')]],
    ['a stream ends with a result, but was never acknowledged', 'V1', [open, ask('x:a'), end('result')]],
    ['a write is not reported on an open stream', 'V2', [...begun, write('x:a', 1)]],
    ['only the first of two writes is reported', 'V2', [...begun, write('x:a', 1), updated('x:a'), write('x:a', 2)]],
    [
      'a write is not reported before all is quiet, even if the stream is cut later',
      'V2',
      [...begun, write('x:a', 1), quiet, end('cut')],
    ],
    [
      'a list gets an entry, and its change is not reported',
      'V2',
      [
        ...[open, { ...ask(), list: true } as Fact, { ...ack(), list: true } as Fact],
        ...[write('x:new', 0, { listed: true }), quiet, end('cut')],
      ],
    ],
    [
      'a read returns an older version than the reported one',
      'V3',
      [...begun, write('x:a', 1), updated('x:a'), read('x:a', 0, 8), end('cut')],
    ],
    [
      'a read returns the first of two reported versions',
      'V3',
      [
        ...[...begun, write('x:a', 1), updated('x:a'), write('x:a', 2), updated('x:a')],
        ...[read('x:a', 1, 10), end('cut')],
      ],
    ],
    [
      'a change is reported of a resource without a subscription',
      'V4',
      [...begun, write('x:b', 0), updated('x:b'), end('cut')],
    ],
    [
      'a subscription is acknowledged that the client did not request',
      'V4',
      [...begun.slice(0, 3), ack('x:a', 'x:b'), end('cut')],
    ],
    [
      'a change is reported of a resource that the client may not see',
      'V4',
      [write('x:secret/s', 0), open, ask('x:secret/s'), ack(), updated('x:secret/s'), end('cut')],
    ],
    [
      'a change of a directory is reported for a file in it that the client may not see',
      'V4',
      [...[write('x:a', 0), open, ask('x:'), ack('x:'), quiet], ...[write('x:secret/s', 0), updated('x:'), end('cut')]],
    ],
    [
      'more changes are reported than happened',
      'V4',
      [...begun, write('x:a', 1), updated('x:a'), updated('x:a'), end('cut')],
    ],
    [
      'a change is reported after the subscription was ended',
      'V4',
      [...begun, { kind: 'gone', stream: 0, uri: 'x:a' }, write('x:a', 1), updated('x:a'), end('cut')],
    ],
    ['an answer is overdue', 'V0', [{ kind: 'overdue', what: 'an answer' }]],
    [
      'a change of a list is not reported before all is quiet, even if the list is acknowledged again later',
      'V2',
      [
        ...[{ ...open, modern: false } as Fact, { ...ask(), list: true } as Fact, { ...ack(), list: true } as Fact],
        ...[write('x:new', 0, { listed: true }), quiet, { ...ack(), list: true } as Fact, end('cut')],
      ],
    ],
    [
      'a client gets a message that belongs to no request or subscription',
      'V4',
      [{ kind: 'stray', client: 1, text: 'hello' }],
    ],
    [
      'a list has a resource that the client may not see',
      'V4',
      [{ kind: 'list', client: 1, principal: 'guest', uris: ['x:secret/s'] }],
    ],
    ['a read returns a mixture of two versions', 'V5', [write('x:a', 0), read('x:a', 'torn', 1)]],
    ['a read returns a version that was never written', 'V5', [write('x:a', 0), read('x:a', 3, 1)]],
    [
      'a client has not read the last version at the end',
      'V6',
      [...begun, write('x:a', 1), updated('x:a'), quiet, end('cut')],
    ],
    [
      'a list has a resource twice',
      'V7',
      [write('x:a', 0), { kind: 'list', client: 1, principal: 'p', uris: ['x:a', 'x:a'] }],
    ],
    [
      'a list lacks a resource that always exists',
      'V7',
      [write('x:a', 0), { kind: 'list', client: 1, principal: 'p', uris: [] }],
    ],
    [
      'a client reads an older version after a newer one',
      'V8',
      [write('x:a', 0), write('x:a', 1), read('x:a', 1, 2), read('x:a', 0, 3)],
    ],
    [
      'a server stops without ending a stream with its result',
      'V9',
      [...begun, { kind: 'closing', streams: [0] }, end('cut')],
    ],
    ['a change is reported after the end of a stream', 'V9', [...begun, end('result'), updated('x:a')]],
    ['a watch remains after all clients have gone', 'V10', [{ kind: 'remains', what: 'watch', count: 1 }]],
  ]
  test.each(broken)('is invalid when %s (%s)', (_, found, facts) => {
    expect(checksOf(facts)).toContain(found)
  })

  test('is valid when a source reports again after it lost its watch, and when an inexact source reports too much', () => {
    const twice: readonly Fact[] = [write('x:a', 1), updated('x:a'), updated('x:a'), end('cut')]
    expect(checksOf([...begun, { kind: 'lost' }, ...twice])).toEqual([])
    expect(checksOf([...begun, ...twice], { ...rules, exact: false })).toEqual([])
  })

  test('is valid when a client reads that a resource is gone, but not before it is removed', () => {
    const facts = [
      ...begun,
      write('x:a', 1, { absent: true, listed: true }),
      updated('x:a'),
      read('x:a', 'absent', 8),
      quiet,
    ]
    expect(checksOf(facts)).toEqual([])
    expect(checksOf([...begun, read('x:a', 'absent', 6), write('x:a', 1, { absent: true })])).toContain('V5')
  })
})
