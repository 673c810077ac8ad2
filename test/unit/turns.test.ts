import { expect, test } from 'vitest'
import { mayBegin } from '../support/turns.ts'

const longAgo = { sinceLastMs: 60_000 }

test('four files run at once, however busy the processors are', () => {
  for (const others of [0, 3]) expect(mayBegin({ others, idle: 0, sinceLastMs: 0 })).toBe(true)
  expect(mayBegin({ others: 4, idle: 0, ...longAgo })).toBe(false)
})

test('another one begins when a processor has nothing to do, and it is known what the last one does', () => {
  expect(mayBegin({ others: 4, idle: 0.9, ...longAgo })).toBe(true)
  expect(mayBegin({ others: 5, idle: 0.9, ...longAgo })).toBe(true)
  expect(mayBegin({ others: 4, idle: 0.2, ...longAgo })).toBe(false)
  expect(mayBegin({ others: 4, idle: 0.9, sinceLastMs: 100 })).toBe(false)
})
