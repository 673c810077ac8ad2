import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { afterEach, describe, expect, test } from 'vitest'
import { createMemberList, groupMemoryIn, processMemoryBytes } from '../../src/core/kit/process-group.ts'

const ends: (() => void)[] = []
afterEach(() => {
  for (const end of ends.splice(0)) end()
})

const idle = 'setInterval(() => {}, 1000)'
/** Starts a process in a session of its own, and tells its id once it runs. */
const starter = `
const { spawn } = require('node:child_process')
const child = spawn(process.execPath, ['-e', ${JSON.stringify(idle)}], { detached: true, stdio: 'ignore' })
child.once('spawn', () => console.log(child.pid))
${idle}`

async function startSession() {
  const leader = spawn(process.execPath, ['-e', starter], { detached: true, stdio: ['ignore', 'pipe', 'inherit'] })
  ends.push(() => leader.kill('SIGKILL'))
  const [text] = await once(leader.stdout.setEncoding('utf8'), 'data')
  const child = Number(text)
  ends.push(() => process.kill(child, 'SIGKILL'))
  return { leader, child, members: createMemberList(leader.pid ?? 0) }
}

describe.runIf(process.platform === 'linux')('the processes of a session', () => {
  test('include their descendants in other sessions', async () => {
    const { leader, child, members } = await startSession()
    const pids = [leader.pid ?? 0, child].sort((a, b) => a - b)
    for (const found of [members.recent(), members.now()])
      expect(found.map(({ pid }) => pid).sort((a, b) => a - b)).toEqual(pids)
    expect(members.now().map(({ session }) => session)).toEqual(expect.arrayContaining(pids))
  })

  test('include a descendant whose parent has ended, if it was listed before', async () => {
    const { leader, child, members } = await startSession()
    members.now()
    leader.kill('SIGKILL')
    await once(leader, 'exit')
    expect(members.now().map(({ pid }) => pid)).toEqual([child])
  })

  test('have their shared memory counted once if the simple sum is over the limit', async () => {
    const { members } = await startSession()
    const processes = members.now()
    const upTo = await processMemoryBytes(processes, Number.POSITIVE_INFINITY)
    const beyond = await processMemoryBytes(processes, 0)
    expect(beyond).toBeGreaterThan(0)
    // The program of Node is mapped by both, and by this process.
    expect(beyond).toBeLessThan(upTo)
    expect(await processMemoryBytes([], 0)).toBe(0)
  })
})

describe('the memory of a process group in the output of ps', () => {
  const listing = [
    '    1     0     1   9000',
    '  400     1   400  20000',
    '  401   400   400   3000',
    // A descendant in a group of its own, and one of that.
    '  500   401   500   1000',
    '  501   500   500    500',
    // It lost its parent, and is still of the group.
    '  402     1   400    100',
    '  700     1   700  77777',
    ' 4000     1  4000  88888',
    '',
  ].join('\n')

  test('is that of its processes and of their descendants, each counted once', () => {
    expect(groupMemoryIn(listing, 400)).toBe(24_600 * 1024)
    expect(groupMemoryIn(listing, 500)).toBe(1500 * 1024)
  })

  test('is 0 if the output does not list the group', () => {
    expect(groupMemoryIn(listing, 40)).toBe(0)
    expect(groupMemoryIn('', 400)).toBe(0)
    expect(groupMemoryIn('ps: illegal option -- A\nusage: ps', 400)).toBe(0)
  })

  test('is computed even if parents form a cycle', () => {
    expect(groupMemoryIn('10 11 10 1\n11 10 11 2\n', 10)).toBe(3 * 1024)
  })
})
