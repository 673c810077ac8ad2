import { describe, expect, test, vi } from 'vitest'
import { reportIndexing } from '../../src/cli/operations/indexing.ts'
import { createStatusLine } from '../../src/cli/terminal/io.ts'
import type { Log } from '../../src/core/log.ts'
import type { FeedStatus, MountProgress } from '../../src/providers/search/index.ts'
import { memory } from '../support/memory.ts'

const progressAt = (looked: number, of?: number): MountProgress => ({
  ...{ address: 'docs://a', since: 0, looked, indexed: looked, changes: 'watched' },
  state: looked === of ? 'current' : 'comparing',
  ...(of === undefined ? {} : { of }),
})

/** Tells of a search that is as far as one status after the other says; `passMs` of time passes with each. */
async function told(statuses: readonly (MountProgress | 'none' | 'failing')[], passMs: number, isTerminal: boolean) {
  let time = 0
  const written: string[] = []
  const logged: string[] = []
  const log: Log = (level, message, fields) =>
    void logged.push([level, message, JSON.stringify(fields) ?? ''].join(' ').trim())
  const line = createStatusLine(
    (text) => void written.push(text.replaceAll('\r', '').replaceAll('\u001b[K', '')),
    () => 100,
  )
  const left = [...statuses]
  const feedStatus = vi.fn(async (): Promise<FeedStatus | undefined> => {
    time += passMs
    const next = left.length > 1 ? left.shift() : left[0]
    if (next === 'failing') throw new Error('The store does not answer.')
    return next === undefined || next === 'none' ? undefined : { told: 0, mounts: [next] }
  })
  const stop = new AbortController()
  const provider = { ...memory({}), feed: () => {}, feedStatus }
  await reportIndexing(
    {
      mounts: [
        { address: 'docs://a', provider: memory({}) },
        { address: 'search://a', provider },
      ],
    },
    {
      io: { saysToTerminal: isTerminal, out: { isTerminal: false, write: async () => {} } },
      ...{ log, isStructured: false, signal: stop.signal, line, now: () => time, env: {} },
    },
  )
  return { written: written.filter((text) => text !== ''), logged, asked: feedStatus.mock.calls.length }
}

describe('the progress of an index during serve', () => {
  test('is shown in the last line of a terminal, and the duration is logged at the end', async () => {
    const { written, logged } = await told(
      ['none', progressAt(0), progressAt(300, 1200), progressAt(1200, 1200)],
      1000,
      true,
    )
    expect(written[0]).toMatch(/^. 0 documents indexed …$/)
    expect(written.at(-1)).toBe('[=====>                  ]  25%  300 of 1,200 documents indexed, 9 s left')
    expect(logged).toEqual(['info everything is indexed {"documents":1200,"seconds":4}'])
  })

  test('is logged every few seconds if there is no terminal, and so is the duration at the end', async () => {
    const { written, logged } = await told(
      [progressAt(0), progressAt(100), progressAt(300, 1200), progressAt(500, 1200), progressAt(1200, 1200)],
      2500,
      false,
    )
    expect(written).toEqual([])
    expect(logged).toEqual([
      'info 100 documents indexed …',
      'info 500 of 1,200 documents indexed …',
      'info everything is indexed {"documents":1200,"seconds":13}',
    ])
  })

  test('is not shown if indexing takes less than a second, or if the search cannot be opened', async () => {
    expect(await told([progressAt(0), progressAt(5, 5)], 400, false)).toMatchObject({ logged: [], asked: 2 })
    expect(await told(['failing'], 5000, true)).toMatchObject({ written: [], logged: [], asked: 1 })
  })
})
