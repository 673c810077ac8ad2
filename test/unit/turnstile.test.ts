import type { IncomingMessage } from 'node:http'
import { Socket } from 'node:net'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { createTurnstile } from '../../src/server/admission/entrance.ts'
import { completeLimits, defaultLimits } from '../../src/server/admission/limits.ts'
import { alwaysCaller } from '../../src/server/auth/caller.ts'
import { createMeter } from '../../src/server/telemetry/meter.ts'

// Nothing comes back while the test runs.
beforeEach(() => void vi.useFakeTimers({ toFake: ['performance'] }))
afterEach(() => void vi.useRealTimers())

/** Ten times as many at once. */
const rate = 20
const create = () =>
  createTurnstile(
    { ...completeLimits(undefined, true), perPrincipal: { ...defaultLimits.perPrincipal, rate } },
    createMeter(),
  )

const callerOf = (share: string) => alwaysCaller({ id: share, roles: [] })

/** How many requests one gets in by now. */
function left(turnstile: ReturnType<typeof create>, share: string): number {
  const request = { socket: new Socket() } as IncomingMessage
  let count = 0
  while (count < 1000 && !('reason' in turnstile.take(callerOf(share), request))) count++
  return count
}

test('a request that was work for nothing counts as ten, and as one for each 16 KiB that were read of it', () => {
  const read = (bytes: number) => {
    const turnstile = create()
    turnstile.charge('a', bytes)
    const own = left(turnstile, 'a')
    // The others have what they had.
    expect(left(turnstile, 'b')).toBe(200)
    return own
  }
  // What it had, less one that was taken when it came.
  for (const [bytes, counts] of [
    [0, 10],
    [160 * 1024, 10],
    [160 * 1024 + 1, 11],
    [1024 * 1024, 64],
  ] as const) {
    expect(read(bytes), String(bytes)).toBe(200 - (counts - 1))
  }
})

test('no request is taken from who owes as much as it cost', () => {
  const turnstile = create()
  for (let i = 0; i < 1000; i++) turnstile.charge('a', 1024 * 1024)
  const refused = turnstile.take(callerOf('a'), { socket: new Socket() } as IncomingMessage)
  // As much comes back in a few seconds, however many there were.
  expect(refused).toMatchObject({ reason: 'rate', answer: { error: { data: { retryAfter: 3 } } } })
  vi.advanceTimersByTime(3000)
  expect(turnstile.take(callerOf('a'), { socket: new Socket() } as IncomingMessage)).toMatchObject({ share: 'a' })
})
