import { afterAll, afterEach, beforeAll, beforeEach, expect, vi } from 'vitest'
import { openHttp, openLegacyHttp } from './http.ts'
import { checkAnswer } from './oracles.ts'
import { openSentry, type SentryOptions } from './sentry.ts'
import type { Setup } from './server.ts'
import { openLegacyStdio, openStdio, type Pipe } from './stdio.ts'
import { tally } from './tally.ts'
import { startFixture, type Target } from './target.ts'
import type { Answer, Params, Wire } from './wire.ts'
import { controlPath, createWorld, type World } from './world.ts'

/** Servers under attack, and a client for each transport and era. */
export interface Arena {
  readonly world: World
  readonly wires: readonly Wire[]
  readonly http: Target
  wire(name: WireName): Wire
  /** Sends a request, and checks the oracles for every answer. */
  ask(wire: Wire, method: string, params?: Params): Promise<Answer>
  read(wire: Wire, uri: string): Promise<Answer>
}

/** Long time-outs, for files of tests that start many processes on a busy machine. */
export const waitLong = () => vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 })

export const wireNames = ['stdio 2026-07-28', 'stdio 2025-11-25', 'http 2026-07-28', 'http 2025-11-25'] as const
export type WireName = (typeof wireNames)[number]

interface ArenaOptions extends SentryOptions {
  readonly filesInMany?: number
  readonly onlyHttp?: boolean
}

/** Maximum growth of memory during a test file, in MiB: for compiled code, and small caches. */
const maxKept = 32

/**
 * Starts servers for the tests of a file, and checks the global oracles after each test and at the end.
 * @param launch Starts another server than the fixture, which serves the folder of the world at its address, too.
 * @param options Exceptions from the oracles, with the reason where they are used. `filesInMany`: number of files in the folder
 * `many/`.
 * `onlyHttp`: no server over stdio.
 */
export function useArena(
  setup: Partial<Omit<Setup, 'root' | 'transport'>> = {},
  launch: (world: World, setup: Omit<Setup, 'root'>) => Promise<Target> = startFixture,
  { filesInMany, onlyHttp = false, ...bounds }: ArenaOptions = {},
): Arena {
  waitLong()
  let world: World
  let targets: readonly Target[] = []
  let wires: readonly Wire[] = []
  let oracles: Oracles

  beforeAll(async () => {
    world = createWorld(filesInMany)
    const transports = onlyHttp ? (['http'] as const) : (['stdio', 'stdio', 'http'] as const)
    targets = await Promise.all(transports.map((transport) => launch(world, { ...setup, transport })))
    const http = targets.at(-1) as Target
    const [first, second] = targets.filter((target) => target !== http)
    if (first !== undefined) wires = [...wires, await openStdio(first, world)]
    if (second !== undefined) wires = [...wires, await openLegacyStdio(second, world)]
    // The first requests start threads and the compiler; the resources that are open after them are the baseline.
    const warm = [await openHttp(http, world), await openLegacyHttp(http, world)]
    for (const wire of [...wires, ...warm]) {
      await control(wire)
      await wire.call('resources/list')
    }
    for (const wire of warm) await wire.close()
    await new Promise((resolve) => setTimeout(resolve, 500))
    wires = [...wires, await openHttp(http, world), await openLegacyHttp(http, world)]
    oracles = await openOracles(world, wires, { ...bounds, counts: launch === startFixture })
  })

  beforeEach(tally.begin)
  afterEach(async ({ task }) => {
    tally.end(task)
    expect(await oracles.afterCase()).toEqual([])
    for (const wire of wires.filter(({ target }) => tally.hasAsked(target))) await control(wire)
  })

  afterAll(async () => {
    const controls = await Promise.allSettled(wires.map((wire) => control(wire)))
    const silent = controls.flatMap((read) => (read.status === 'rejected' ? [String(read.reason)] : []))
    const faults = await oracles.atEnd()
    world.dispose()
    expect([...faults, ...silent]).toEqual([])
  })

  const ask: Arena['ask'] = async (wire, method, params = {}) => {
    const answer = await wire.call(method, params)
    checkAnswer(wire, answer, params, method)
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
      return targets.at(-1) as Target
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

/** O2: checks that a small file can still be read. */
export async function control(wire: Wire, within?: number): Promise<void> {
  const uri = `${wire.world.address}/${controlPath}`
  const { message } = await wire.call('resources/read', { uri }, within === undefined ? {} : { within })
  const [content] = (message?.result?.contents ?? []) as readonly { readonly text?: string }[]
  expect(content?.text, `O2: the control read over ${wire.name}`).toHaveLength(1024)
}

/** Checks that hold for every request (O1 to O5). `checkAnswer` checks the parts of O5 and O6 that a single answer shows. */
export interface Oracles {
  /** Returns the faults since the last call. */
  afterCase(): Promise<readonly string[]>
  /** Closes the clients, ends the servers, and returns the faults of the whole run. */
  atEnd(): Promise<readonly string[]>
}

/** @param bounds `counts`: whether the servers say how much memory they have in use, as the fixture does. */
export async function openOracles(
  world: World,
  wires: readonly Wire[],
  bounds: SentryOptions & { readonly counts?: boolean } = {},
): Promise<Oracles> {
  const targets = [...new Set(wires.map(({ target }) => target))]
  const sentry = openSentry(world, targets, bounds)
  const counted = bounds.counts ? targets.flatMap((target) => wires.find((wire) => wire.target === target) ?? []) : []
  const kept = new Map<Wire, number>()
  for (const wire of counted) kept.set(wire, await keptBy(wire))
  let told = 0

  const afterCase: Oracles['afterCase'] = async () => {
    const leaks = world.canaries.leaks.slice(told)
    told += leaks.length
    const ended = targets.filter((target) => !target.isAlive()).length
    return [
      ...leaks.map((leak) => `O1: ${leak}`),
      ...(ended > 0 ? [`O2: ${ended} of the servers ended`] : []),
      ...(await sentry.look()),
    ]
  }

  const atEnd: Oracles['atEnd'] = async () => {
    const faults: string[] = []
    for (const [wire, before] of kept) {
      if (!wire.target.isAlive()) continue
      const after = await keptBy(wire)
      if (!(after <= before + maxKept)) faults.push(`O3: ${after} MiB in use, ${before} before, by ${wire.name}`)
    }
    await Promise.all(wires.filter(({ transport }) => transport === 'http').map((wire) => wire.close()))
    faults.push(...(await sentry.settle()))
    await Promise.all(targets.map((target) => target.stop()))
    for (const wire of wires.filter(isStdio)) faults.push(...pipeFaults(wire.pipe))
    return [...faults, ...world.canaries.leaks.map((leak) => `O1: ${leak}`)]
  }
  return { afterCase, atEnd }
}

/** O5: returns the messages that are invalid, or answer a request twice. */
function pipeFaults({ faults, answered }: Pipe): readonly string[] {
  const twice = [...answered].filter(([id, count]) => count > 1 && id.startsWith('string call-'))
  return [...faults, ...twice.map(([id, count]) => `${count} answers to ${id}`)].map((fault) => `O5: ${fault}`)
}

/** O3: returns the memory that the server of a client uses after a garbage collection, in MiB. */
async function keptBy(wire: Wire): Promise<number> {
  const { message } = await wire.call('resources/read', { uri: 'count://calls/kept' })
  const [content] = (message?.result?.contents ?? []) as readonly { readonly text?: string }[]
  return Number(content?.text)
}
