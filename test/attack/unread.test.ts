import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { volume } from '../support/volume.ts'
import { control, type StdioWire, useArena } from './harness/arena.ts'
import { freshWires, lineOf, soon } from './harness/fresh.ts'
import { jsonHeaders, openHttp, send, sessionHeaders } from './harness/http.ts'
import { ended, type Target } from './harness/target.ts'
import { eachWire } from './harness/wires.ts'

const arena = useArena()
const revisions = ['2026-07-28', '2025-11-25'] as const
const stdioNames = ['stdio 2026-07-28', 'stdio 2025-11-25'] as const

const { fresh, urlOf, small, large } = freshWires(() => arena.world)

/**
 * The most memory that a server holds, in MiB, until it has taken no more for a second.
 *
 * @param within For how long it is looked at, in milliseconds, if it takes more and more.
 */
async function mostResident(target: Target, within: number): Promise<number> {
  const end = performance.now() + within
  let most = 0
  let grownAt = performance.now()
  while (target.isAlive() && performance.now() < end && performance.now() < grownAt + 1000) {
    await sleep(100)
    const { resident } = target.facts()
    // Pages that come and go are no growth.
    if (resident > most + 1) grownAt = performance.now()
    most = Math.max(most, resident)
  }
  return most
}

describe('a client that does not read its answers', () => {
  eachWire(revisions)(
    'makes memory grow by less than 700 MiB for 2,000 large answers, over stdio %s (JR19)',
    async (version) => {
      const wire = await fresh(version)
      await control(wire)
      const before = wire.target.facts().resident
      wire.pipe.pause()
      let lines = ''
      for (let i = 0; i < 2000; i++) lines += lineOf(wire, `l${i}`, large())
      // More than the pipe holds: the write ends when the server reads again.
      void wire.pipe.write(lines)
      const most = await mostResident(wire.target, 3000)
      // 16 answers of 4 MB at once, some of them twice while they are made. All 2000 would be 8 GB.
      expect(most - before).toBeLessThan(700)
      wire.pipe.resume()
      for (let i = 0; i < 20; i++) expect((await wire.pipe.answerTo(`l${i}`)).message?.result).toBeDefined()
    },
    60_000,
  )

  test('makes memory grow by less than 1,000 MiB for 40 batches of 50 large answers (JR19)', async () => {
    const wire = await fresh('2025-03-26')
    await control(wire)
    const before = wire.target.facts().resident
    wire.pipe.pause()
    const item = (id: string) => lineOf(wire, id, large()).trim()
    for (let batch = 0; batch < 40; batch++)
      void wire.pipe.write(`[${Array.from({ length: 50 }, (_, i) => item(`b${batch}-${i}`)).join()}]\n`)
    const most = await mostResident(wire.target, 8000)
    expect(wire.target.isAlive()).toBe(true)
    expect(most - before).toBeLessThan(1000)
  })

  eachWire(revisions)(
    'ends the server by closing its output, even if many answers are pending, over stdio %s (JR19)',
    async (version) => {
      for (const asked of [0, 1, 200]) {
        const wire = await fresh(version)
        wire.pipe.pause()
        for (let i = 0; i < asked; i++) void wire.pipe.write(lineOf(wire, `c${i}`, large()))
        await sleep(100)
        wire.target.output.destroy()
        // With nothing to say, it notices when it next has.
        void wire.pipe.write(lineOf(wire, 'last', small()).repeat(3))
        expect(await ended(wire.target, soon), `after ${asked} reads: ${wire.target.errors()}`).toBe(0)
      }
    },
  )
})

describe('a client that asks for large answers', () => {
  test('gets an answer for each id of a batch, even if the contents are too long together (JR01, JR19)', async () => {
    const wire = await fresh('2025-03-26')
    const ids = Array.from({ length: 20 }, (_, i) => `t${i}`)
    await wire.pipe.write(`[${ids.map((id) => lineOf(wire, id, large()).trim()).join()}]\n`)
    const { message, raw } = await wire.pipe.next()
    expect(raw.length).toBeLessThanOrEqual(10 * 1024 * 1024)
    const answers = message as unknown as readonly { readonly id: string }[]
    expect(Array.isArray(answers), raw.subarray(0, 300).toString()).toBe(true)
    expect(answers.map(({ id }) => id).sort()).toEqual([...ids].sort())
  })

  test('makes memory grow by less than 1,500 MiB for four batches of 20 large answers over HTTP (JR01, JR19)', async () => {
    const wire = await openHttp(arena.http, arena.world, '2025-03-26')
    const before = arena.http.facts().resident
    const length = 20
    const body = `[${Array.from({ length }, (_, i) => lineOf(wire, `h${i}`, large()).trim()).join()}]`
    const answers = await Promise.all(
      Array.from({ length: 4 }, () =>
        send(arena.http, arena.world, { headers: { ...jsonHeaders, ...sessionHeaders(wire) }, body, within: 40_000 }),
      ),
    )
    for (const { raw } of answers) expect(raw.length).toBeLessThan(64 * 1024 * 1024)
    expect(arena.http.facts().peak - before).toBeLessThan(1500)
    await wire.close()
  })

  test('gets no line over 10 MiB, whatever must be escaped in it (JR14)', async () => {
    for (const [index, character] of ['\u2028', '\u0085', '"', '\u0001', 'あ', '\ud83d\ude00'].entries()) {
      writeFileSync(join(arena.world.root, `escaped-${index}.txt`), character.repeat(3_400_000))
      // In a tenth of the volume each character over one of them.
      for (const name of stdioNames.filter((_, at) => volume === 1 || (at + index) % 2 === 0)) {
        const wire = arena.wire(name) as StdioWire
        const { raw, message } = await wire.call('resources/read', urlOf(`escaped-${index}.txt`))
        expect(raw.length).toBeLessThanOrEqual(10 * 1024 * 1024)
        if (message?.error !== undefined)
          expect(message.error).toMatchObject({ code: -32602, data: { reason: 'too-large' } })
      }
    }
  })
})

describe('a client that asks for endless answers', () => {
  test('with a thousand streams of changes leaves room for other requests, over stdio 2026-07-28', async () => {
    const wire = await fresh('2026-07-28')
    const filter = { notifications: { resourceSubscriptions: [small().uri] } }
    let lines = ''
    for (let i = 0; i < 1100; i++) lines += lineOf(wire, `s${i}`, filter, 'subscriptions/listen')
    await wire.pipe.write(lines)
    await control(wire)
    await wire.notify('notifications/cancelled', { requestId: 's0' })
    wire.target.input.end()
    expect(await ended(wire.target, soon)).toBe(0)
  })

  eachWire(revisions)(
    'ends the server by closing its output, even if it has requested more than it reads, over stdio %s (JR19)',
    async (version) => {
      const wire = await fresh(version)
      let lines = ''
      for (let i = 0; i < 2000; i++) lines += lineOf(wire, `h${i}`, { uri: 'slow://source/forever' })
      // An answer that nobody takes tells that nobody is there.
      void wire.pipe.write(lineOf(wire, 'large', large()).repeat(2) + lines)
      wire.pipe.pause()
      await sleep(500)
      wire.target.output.destroy()
      expect(await ended(wire.target, soon)).toBe(0)
    },
  )
})
