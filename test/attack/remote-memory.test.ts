import { afterEach, describe, expect, test } from 'vitest'
import { connect } from '../../src/client/index.ts'
import type { Log } from '../../src/core/log.ts'
import { remote } from '../../src/providers/remote/index.ts'
import { failure, fixture } from '../support/mcp-servers.ts'

const mebibyte = 1024 * 1024
const context = { principal: { id: 'ada', roles: [] }, signal: new AbortController().signal }
const ends: (() => unknown)[] = []
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end()
})

/** Notes the processes that a server tells of, and ends those that the test leaves. */
function createNotes() {
  const pids: Record<'server' | 'helper', number[]> = { server: [], helper: [] }
  const warnings: string[] = []
  const log: Log = (level, message, fields) => {
    const [, what, pid] = /^(server|helper) (\d+)$/.exec(String(fields?.stderr)) ?? []
    if (what === 'server' || what === 'helper') pids[what].push(Number(pid))
    if (level === 'warn') warnings.push(message)
  }
  const running = () => [...pids.server, ...pids.helper].filter(isRunning)
  ends.push(() => {
    for (const pid of running()) process.kill(pid, 'SIGKILL')
  })
  return { pids, warnings, running, log }
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

const read = (provider: ReturnType<typeof remote>, path: string) =>
  Promise.resolve(provider.read({ path, params: new Map() }, context))

describe.runIf(process.platform === 'linux')('a mounted command that takes too much memory', () => {
  test.each(['self', 'helper'])(
    'in its process, or in one that it starts (%s), is killed with all of its processes, and started again at the next use',
    async (where) => {
      const { pids, warnings, running, log } = createNotes()
      const provider = remote({ target: fixture('hog', 'plain'), memoryBytes: 400 * mebibyte, timeoutMs: 120_000, log })
      ends.push(() => provider.close?.())
      expect(await read(provider, 'memo/calm')).toMatchObject([{ text: 'calm' }])
      expect(await failure(read(provider, `memo/${where}`))).toMatchObject({
        kind: 'unavailable',
        message: expect.stringContaining('more than 400 MiB of memory') as string,
      })
      await expect.poll(running, { timeout: 60_000 }).toEqual([])
      expect(warnings.filter((warning) => warning.includes('uses more memory than its limit'))).toHaveLength(1)
      // The request is not tried again by itself: it would take as much memory again.
      expect([pids.server.length, pids.helper.length]).toEqual([1, where === 'helper' ? 1 : 0])
      expect(await read(provider, 'memo/calm')).toMatchObject([{ text: 'calm' }])
      await expect.poll(() => pids.server.length).toBe(2)
    },
    180_000,
  )

  test('before its first answer gives an error with the reason, and is not started a second time', async () => {
    const { pids, running, log } = createNotes()
    const options = { log, memoryBytes: 300 * mebibyte, timeoutMs: 120_000 }
    const error = await failure(connect(fixture('hog', 'at-once'), options))
    expect(error).toMatchObject({
      kind: 'unavailable',
      message: expect.stringContaining('more than 300 MiB of memory') as string,
    })
    await expect.poll(running, { timeout: 60_000 }).toEqual([])
    expect(pids.server).toHaveLength(1)
  }, 180_000)
})

describe.skipIf(process.platform === 'win32')('processes that a mounted command has started', () => {
  test('end when the mount is closed, even if they ignore SIGTERM', async () => {
    const { pids, running, log } = createNotes()
    const view = await connect(fixture('hog', 'helped'), { log })
    await expect.poll(() => pids.helper.length).toBe(1)
    await view.close?.()
    await expect.poll(running, { timeout: 60_000 }).toEqual([])
  }, 120_000)

  test('end when the command dies', async () => {
    const { pids, running, log } = createNotes()
    const view = await connect(fixture('hog', 'helped'), { log })
    ends.push(() => view.close?.())
    await expect.poll(() => pids.helper.length).toBe(1)
    expect(await failure(view.read('memo://crash'))).toMatchObject({ kind: 'unavailable' })
    await expect.poll(running, { timeout: 60_000 }).toEqual([])
  }, 120_000)
})
