import { afterEach, expect, test, vi } from 'vitest'
import { createSessionOwner } from '../../src/server/auth/caller.ts'
import { createSessions } from '../../src/server/http/sessions.ts'
import type { Connection } from '../../src/server/protocol/connection.ts'

afterEach(() => void vi.useRealTimers())

const principal = { id: 'me', roles: [] }
const owner = createSessionOwner(principal)
const connection: Connection = {
  ...{ receive: async () => undefined, drain: () => {}, retell: () => {}, close: async () => {} },
  ...{ revision: undefined, pending: 0, listening: 0 },
}

test('a session ends after its idle time, by a monotonic clock', async () => {
  vi.useFakeTimers()
  const sessions = createSessions({ maxSessions: 10, idleTimeoutMs: 600_000 })
  const id = sessions.open(owner, connection)?.id ?? expect.fail('it is open')
  // The wall clock jumps, and the next sweep comes.
  for (const jump of [86_400_000, -2 * 86_400_000, 86_400_000]) {
    vi.setSystemTime(Date.now() + jump)
    vi.advanceTimersByTime(120_000)
    expect(sessions.size).toBe(1)
  }
  expect(sessions.find(id, principal)?.id).toBe(id)
  vi.advanceTimersByTime(700_000)
  expect(sessions.find(id, principal)).toBeUndefined()
  await sessions.closeAll()
})
