import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { hasTurn } from '../support/volume.ts'
import { identity } from './corpus/hostile-identity.ts'
import { folder, traversal } from './corpus/hostile-uris.ts'
import { control, waitLong } from './harness/arena.ts'
import { openHttp, openLegacyHttp } from './harness/http.ts'
import { checkAnswer, expectOutcome } from './harness/oracles.ts'
import { openLegacyStdio, openStdio } from './harness/stdio.ts'
import { ended, startCommand, type Target } from './harness/target.ts'
import type { Wire } from './harness/wire.ts'
import { wireShare } from './harness/wires.ts'
import { createWorld, manyFiles, type World } from './harness/world.ts'

/** Five seconds, and time for a machine that is busy. */
const soon = 15_000

waitLong()

let world: World
const targets: Target[] = []
const wires: Wire[] = []

async function start(...args: readonly string[]): Promise<Target> {
  const target = await startCommand(world, ...args)
  targets.push(target)
  return target
}

beforeAll(async () => {
  const main = join(import.meta.dirname, '../../dist/cli/main.js')
  if (!existsSync(main)) throw new Error('The command line is not built: npm run build')
  world = createWorld(manyFiles)
  wires.push(await openStdio(await start('--stdio'), world), await openLegacyStdio(await start('--stdio'), world))
  const http = await start('--http', '127.0.0.1:0')
  wires.push(await openHttp(http, world), await openLegacyHttp(http, world))
})

afterAll(async () => {
  await Promise.all(wires.map((wire) => wire.close()))
  await Promise.all(targets.map((target) => target.stop()))
  expect(world.canaries.leaks).toEqual([])
  world.dispose()
})

describe('the built command hikidashi serve', () => {
  test('answers every hostile URI as the attack corpus says, over the transports in turn (PT01 to UR26)', async () => {
    for (const [at, wire] of wires.entries()) {
      // Each over one of them, in turn; in full volume over two.
      const tried = [...traversal, ...folder, ...identity].filter((_, row) =>
        hasTurn(row, at, wires.length, wireShare(wires)),
      )
      for (const { id, what, uri: make, expect: expected, text } of tried) {
        const uri = make(world.address)
        // Controls of mounts that only the fixture has.
        if (expected === 'ctl' && !uri.startsWith('file:')) continue
        const answer = await wire.call('resources/read', { uri })
        checkAnswer(wire, answer, { uri })
        try {
          expectOutcome(wire, answer, expected, uri, text)
        } catch (cause) {
          throw new Error(`${id} ${what} over ${wire.name}: ${answer.raw.subarray(0, 300)}`, { cause })
        }
      }
      await control(wire)
    }
    expect(world.canaries.leaks).toEqual([])
  })

  test('lists no excluded path (PT37)', async () => {
    for (const wire of wires) {
      let cursor: string | undefined
      do {
        const { raw, message } = await wire.call('resources/list', cursor === undefined ? {} : { cursor })
        // Versions and cursors are opaque, and may have any letters by chance.
        const named = raw.toString().replace(/"(?:dev\.hikidashi\/version|nextCursor)":"[^"]*"/g, '')
        expect(named).not.toMatch(/\/\.env|id_rsa|\/\.git\/|\.pem|node_modules|link-|fifo/)
        cursor = message?.result?.nextCursor as string | undefined
      } while (cursor !== undefined)
    }
  })

  test('answers the pending request and exits at the end of the input, and exits after SIGTERM, with code 0', async () => {
    for (const open of [openStdio, openLegacyStdio]) {
      const wire = await open(await start('--stdio'), world)
      const answer = wire.call('resources/read', { uri: `${world.address}/big.txt` })
      await sleep(20)
      wire.target.input.end()
      expect((await answer).message?.result).toBeDefined()
      expect(await ended(wire.target, soon)).toBe(0)
    }
    const http = await start('--http', '127.0.0.1:0')
    const client = await openHttp(http, world)
    await control(client)
    await client.close()
    process.kill(http.pid, 'SIGTERM')
    expect(await ended(http, soon)).toBe(0)
  })

  test('exits at the end of the input even if the client reads no answers', async () => {
    const wire = await openStdio(await start('--stdio'), world)
    wire.pipe.pause()
    for (let i = 0; i < 100; i++)
      void wire.call('resources/read', { uri: `${world.address}/big.txt` }, { within: 100_000 }).catch(() => {})
    await sleep(300)
    wire.target.input.end()
    expect(await ended(wire.target, soon)).toBeDefined()
  })

  test('exits when its output is closed (JR19)', async () => {
    const wire = await openStdio(await start('--stdio'), world)
    wire.pipe.pause()
    for (let i = 0; i < 50; i++)
      void wire.call('resources/read', { uri: `${world.address}/big.txt` }, { within: 100_000 }).catch(() => {})
    await sleep(200)
    wire.target.output.destroy()
    expect(await ended(wire.target, soon)).toBeDefined()
  })

  test('does not keep a line of 100 MB in memory, and answers the next message (JR17)', async () => {
    const wire = wires[0]!
    const before = wire.target.facts().resident
    const block = Buffer.alloc(1024 * 1024, 'x')
    for (let i = 0; i < 100; i++)
      if (!wire.target.input.write(block)) await new Promise((resolve) => wire.target.input.once('drain', resolve))
    wire.target.input.write('\n')
    await control(wire)
    expect(wire.target.facts().resident - before).toBeLessThan(150)
  })
})
