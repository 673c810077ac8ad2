import { describe, expect, test } from 'vitest'
import { volumeOf } from '../support/volume.ts'
import { control, type StdioWire, useArena } from './harness/arena.ts'
import { freshWires, lineOf, soon } from './harness/fresh.ts'
import { openHttp } from './harness/http.ts'
import { ended, until } from './harness/target.ts'
import { eachWire } from './harness/wires.ts'

const arena = useArena()
const revisions = ['2026-07-28', '2025-11-25'] as const
const stdioNames = ['stdio 2026-07-28', 'stdio 2025-11-25'] as const

/** Many times as many as there are places for requests that wait. */
const many = volumeOf(4000, 2000)

const { fresh, small, large } = freshWires(() => arena.world)

describe('a client that writes more than the limits:', () => {
  eachWire(stdioNames)(
    'a line of 100 MB gets a parse error without being kept in memory, and the next message is answered, over %s (JR17)',
    async (name) => {
      const wire = arena.wire(name) as StdioWire
      await control(wire)
      const before = wire.target.facts().resident
      const block = Buffer.alloc(1024 * 1024, 'x')
      for (let i = 0; i < 100; i++) {
        await wire.pipe.write(block)
        if (i % 25 === 24) expect(wire.target.facts().resident - before).toBeLessThan(150)
      }
      await wire.pipe.write('\n')
      expect((await wire.pipe.next()).message).toMatchObject({ id: null, error: { code: -32700 } })
      await control(wire)
    },
    60_000,
  )

  test('a line of 6 MiB without an end gets a parse error when the input ends, and the server exits with code 0 (JR17)', async () => {
    const wire = await fresh('2025-11-25')
    await wire.pipe.write(Buffer.alloc(6 * 1024 * 1024, '['))
    wire.target.input.end()
    expect((await wire.pipe.next()).message).toMatchObject({ id: null, error: { code: -32700 } })
    expect(await ended(wire.target, soon)).toBe(0)
  })

  eachWire(stdioNames)(
    'thousands of reads at once each get the content or a "busy" error, in bounded memory, over %s (JR31)',
    async (name) => {
      const wire = arena.wire(name) as StdioWire
      await control(wire)
      const before = wire.target.facts().resident
      let lines = ''
      for (let i = 0; i < many; i++) lines += lineOf(wire, `p${i}`, small())
      await wire.pipe.write(lines)
      for (let i = 0; i < many; i++) {
        const { message } = await wire.pipe.answerTo(`p${i}`)
        expect(message?.result ?? message?.error?.data?.reason === 'busy').toBeTruthy()
      }
      expect(wire.target.facts().resident - before).toBeLessThan(400)
    },
    60_000,
  )

  eachWire(revisions)(
    'thousands of reads at once each get the content or status 503, in bounded memory, over http %s (JR31)',
    async (version) => {
      const wires = await Promise.all(Array.from({ length: 8 }, () => openHttp(arena.http, arena.world, version)))
      const before = arena.http.facts().resident
      const statuses = new Map<number, number>()
      await Promise.all(
        Array.from({ length: many }, async (_, i) => {
          const wire = wires[i % wires.length]!
          const { status = 0, message } = await wire.call('resources/read', small(), { within: 50_000 })
          statuses.set(status, (statuses.get(status) ?? 0) + 1)
          if (status === 503) expect(message?.error).toMatchObject({ code: -32603, data: { reason: 'busy' } })
          else expect(message?.result).toBeDefined()
        }),
      )
      expect([...statuses.keys()].filter((status) => status !== 200 && status !== 503)).toEqual([])
      expect(arena.http.facts().resident - before).toBeLessThan(500)
      await Promise.all(wires.map((wire) => wire.close()))
    },
    90_000,
  )
})

describe('reads that could use up the server:', () => {
  test.each(stdioNames)(
    'reads of 64 FIFOs at once get "not found", and the next request is answered, over %s (PT27)',
    async (name) => {
      const wire = arena.wire(name)
      const answers = await Promise.all(
        Array.from({ length: 64 }, (_, i) => arena.read(wire, `${arena.world.address}/fifo${i}`)),
      )
      for (const { message } of answers) expect(message?.error?.code).toBe(wire.modern ? -32602 : -32002)
      await control(wire)
    },
  )

  test.each(['http 2026-07-28', 'http 2025-11-25'] as const)(
    'reads of 64 FIFOs at once get "not found", and the next request is answered, over %s (PT27)',
    async (name) => {
      const wire = arena.wire(name)
      const answers = await Promise.all(
        Array.from({ length: 64 }, (_, i) => arena.read(wire, `${arena.world.address}/fifo${i}`)),
      )
      for (const { message } of answers) expect(message?.error?.code).toBe(wire.modern ? -32602 : -32002)
      await control(wire)
    },
  )

  test('a flood of large reads leaves at most eight more file descriptors open than before', async () => {
    const wire = arena.wire('http 2026-07-28')
    const before = arena.http.facts().descriptors
    await Promise.all(Array.from({ length: volumeOf(40, 12) }, () => arena.read(wire, large().uri)))
    const after = await until(
      () => arena.http.facts().descriptors,
      (open) => open <= before + 8,
      30_000,
    )
    expect(after).toBeLessThanOrEqual(before + 8)
  })
})
