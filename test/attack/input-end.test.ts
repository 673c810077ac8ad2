import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { waitLong } from './harness/arena.ts'
import { freshWires, lineOf, soon } from './harness/fresh.ts'
import { ended } from './harness/target.ts'
import { createWorld, type World } from './harness/world.ts'

const revisions = ['2026-07-28', '2025-11-25'] as const

waitLong()
let world: World
beforeAll(() => {
  world = createWorld()
})
afterAll(() => {
  world.dispose()
  expect(world.canaries.leaks).toEqual([])
})

const { fresh, urlOf, small, large } = freshWires(() => world)

describe('the end of the input of a stdio server:', () => {
  test.each(revisions)('an idle process exits with code 0, over stdio %s', async (version) => {
    const wire = await fresh(version)
    wire.target.input.end()
    expect(await ended(wire.target, soon)).toBe(0)
  })

  test.each(revisions)('requests sent before the end are answered, over stdio %s', async (version) => {
    const wire = await fresh(version, 60_000)
    const ids = Array.from({ length: 300 }, (_, i) => `e${i}`)
    const answers = ids.map((id) => wire.pipe.answerTo(id))
    wire.target.input.end(ids.map((id, i) => lineOf(wire, id, i % 50 === 0 ? large() : small())).join(''))
    for (const { message } of await Promise.all(answers)) expect(message?.result).toBeDefined()
    expect(await ended(wire.target, soon)).toBe(0)
  })

  test.each(revisions)('a last message without a line end is answered, over stdio %s', async (version) => {
    const wire = await fresh(version)
    const answer = wire.pipe.answerTo('last')
    wire.target.input.end(lineOf(wire, 'last', small()).trim())
    expect((await answer).message?.result).toBeDefined()
    expect(await ended(wire.target, soon)).toBe(0)
  })

  test.each(revisions)(
    'hanging sources do not delay the exit once no answer has come for a while, over stdio %s',
    async (version) => {
      // Once as by default, which is four seconds.
      const wire = await fresh(version, version === '2026-07-28' ? undefined : 1000)
      for (let i = 0; i < 40; i++)
        await wire.pipe.write(lineOf(wire, `h${i}`, { uri: `slow://source/${i % 2 ? 'hang' : 'forever'}` }))
      for (let i = 0; i < 4; i++) await wire.pipe.write(lineOf(wire, `f${i}`, urlOf(`fifo${i}`)))
      wire.target.input.end()
      expect(await ended(wire.target, soon)).toBe(0)
    },
  )

  test.each(revisions)('a client that reads no answers does not prevent the exit, over stdio %s', async (version) => {
    const wire = await fresh(version, 1000)
    wire.pipe.pause()
    for (let i = 0; i < 100; i++) void wire.pipe.write(lineOf(wire, `s${i}`, large()))
    await sleep(300)
    wire.target.input.end()
    expect(await ended(wire.target, soon)).toBe(0)
  })

  test('with hundreds of requests queued behind hanging ones, the process exits', async () => {
    const wire = await fresh('2026-07-28', 1000)
    let lines = ''
    for (let i = 0; i < 900; i++) lines += lineOf(wire, `w${i}`, { uri: 'slow://source/forever' })
    wire.target.input.end(lines)
    expect(await ended(wire.target, soon)).toBe(0)
  })
})
