import { afterAll, afterEach, beforeAll, expect } from 'vitest'
import { openHttp, openLegacyHttp } from './attack-http.ts'
import { checkAnswer } from './attack-oracles.ts'
import type { Setup } from './attack-server.ts'
import { openLegacyStdio, openStdio, type Pipe } from './attack-stdio.ts'
import { type Facts, startFixture, type Target, until } from './attack-target.ts'
import type { Answer, Params, Wire } from './attack-wire.ts'
import { controlPath, createWorld, type World } from './attack-world.ts'

/** Servers under attack, and a client for each transport and era. */
export interface Arena {
  readonly world: World
  readonly wires: readonly Wire[]
  readonly http: Target
  wire(name: WireName): Wire
  /** Asks, and applies what holds for every answer. */
  ask(wire: Wire, method: string, params?: Params): Promise<Answer>
  read(wire: Wire, uri: string): Promise<Answer>
}

export const wireNames = ['stdio 2026-07-28', 'stdio 2025-11-25', 'http 2026-07-28', 'http 2025-11-25'] as const
export type WireName = (typeof wireNames)[number]

/** A thread that was started meanwhile, with what it holds open, and the compiler that the fixture runs through. */
const slack = { descriptors: 16, children: 1 }

/** Starts servers for the tests of a file, and applies the global oracles after each test and at the end. */
export function useArena(setup: Partial<Omit<Setup, 'root' | 'transport'>> = {}): Arena {
  let world: World
  let targets: readonly Target[] = []
  let wires: readonly Wire[] = []
  let before: readonly Facts[] = []

  beforeAll(async () => {
    world = createWorld()
    const transports = ['stdio', 'stdio', 'http'] as const
    targets = await Promise.all(transports.map((transport) => startFixture(world, { ...setup, transport })))
    const [first, second, http] = targets as readonly [Target, Target, Target]
    wires = [await openStdio(first, world), await openLegacyStdio(second, world)]
    // First requests start what is started late (threads, the compiler); what is open then is the baseline.
    const warm = [await openHttp(http, world), await openLegacyHttp(http, world)]
    for (const wire of [...wires, ...warm]) {
      await control(wire)
      await wire.call('resources/list')
    }
    for (const wire of warm) await wire.close()
    await new Promise((resolve) => setTimeout(resolve, 500))
    before = targets.map((target) => target.facts())
    wires = [...wires, await openHttp(http, world), await openLegacyHttp(http, world)]
  })

  afterEach(async () => {
    expect(world.canaries.leaks, 'O1: secrets in the output').toEqual([])
    expect(
      targets.map((target) => target.isAlive()),
      'the servers live',
    ).toEqual(targets.map(() => true))
    for (const wire of wires) await control(wire)
  })

  afterAll(async () => {
    const http = wires.filter((wire) => wire.transport === 'http')
    await Promise.all(http.map((wire) => wire.close()))
    const faults: string[] = []
    for (const [index, target] of targets.entries()) {
      const { descriptors = 0, children = 0 } = before[index] ?? {}
      if (!target.isAlive()) continue
      const calm = (now: Facts) =>
        now.descriptors <= descriptors + slack.descriptors && now.children <= children + slack.children
      const after = await until(() => target.facts(), calm)
      if (!calm(after))
        faults.push(
          `O3: ${after.descriptors} descriptors, ${after.children} children; ${descriptors}, ${children} before: ${after.open.join(' ')}`,
        )
    }
    for (const wire of wires) if (isStdio(wire)) faults.push(...wire.pipe.faults.map((fault) => `O5: ${fault}`))
    for (const wire of wires)
      if (isStdio(wire))
        for (const [id, count] of wire.pipe.answered)
          if (count > 1 && id.startsWith('string call-')) faults.push(`O5: ${count} answers to ${id}`)
    await Promise.all(targets.map((target) => target.stop()))
    faults.push(...world.canaries.leaks.map((leak) => `O1: ${leak}`))
    world.dispose()
    expect(faults).toEqual([])
  })

  const ask: Arena['ask'] = async (wire, method, params = {}) => {
    const answer = await wire.call(method, params)
    checkAnswer(wire, answer, params)
    return answer
  }
  return {
    get world() {
      return world
    },
    get wires() {
      return wires
    },
    get http() {
      return targets[2] as Target
    },
    wire: (name) => wires.find((wire) => wire.name === name) as Wire,
    ask,
    read: (wire, uri) => ask(wire, 'resources/read', { uri }),
  }
}

export type StdioWire = Wire & { readonly pipe: Pipe }

export function isStdio(wire: Wire): wire is StdioWire {
  return 'pipe' in wire
}

/** O2: a small file can still be read. */
export async function control(wire: Wire, within?: number): Promise<void> {
  const uri = `${wire.world.address}/${controlPath}`
  const { message } = await wire.call('resources/read', { uri }, within === undefined ? {} : { within })
  const [content] = (message?.result?.contents ?? []) as readonly { readonly text?: string }[]
  expect(content?.text, `O2: the control read over ${wire.name}`).toHaveLength(1024)
}
