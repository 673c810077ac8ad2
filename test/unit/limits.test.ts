import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { configJsonSchema } from '../../src/config/explain.ts'
import { ResourceError } from '../../src/core/errors.ts'
import { createGate, type TaskHandle } from '../../src/server/admission/gate.ts'
import { completeLimits, createRateLimit, defaultLimits } from '../../src/server/admission/limits.ts'
import { createMeter, meterNames } from '../../src/server/telemetry/meter.ts'
import { until } from '../support/live.ts'

interface Schema {
  readonly properties?: Readonly<Record<string, Schema>>
  readonly additionalProperties?: Schema
  readonly oneOf?: readonly Schema[]
  readonly anyOf?: readonly Schema[]
  readonly description?: string
}

const page = readFileSync(join(import.meta.dirname, '../../docs/limits.md'), 'utf8')
const root = (await configJsonSchema()) as Schema

/** The keys below a schema that take a value, each with what is said of it. */
function leaves(schema: Schema | undefined, prefix: string): readonly (readonly [string, string])[] {
  return Object.entries(schema?.properties ?? {}).flatMap(([name, member]) => {
    const inner = [member, ...(member.anyOf ?? [])].find(({ properties }) => properties !== undefined)
    return inner === undefined
      ? [[`${prefix}.${name}`, member.description ?? ''] as const]
      : leaves(inner, `${prefix}.${name}`)
  })
}

describe('the limits of the configuration', () => {
  const { http, pages, changes, audit, mounts, spill } = root.properties ?? {}
  const shapes = (mounts?.additionalProperties as Schema | undefined)?.oneOf ?? []
  const mount = shapes[0]
  const keys = [
    ...leaves(http?.properties?.limits, 'http.limits'),
    ...leaves(http, 'http').filter(([key]) => key.startsWith('http.contentLinks.')),
    ...leaves(pages, 'pages'),
    ...leaves(changes, 'changes'),
    ...leaves(spill, 'spill'),
    ...leaves(audit, 'audit').filter(([key]) => key !== 'audit.file'),
    ...leaves(mount?.properties?.limits, 'mounts.*.limits'),
  ]

  test('are all listed in docs/limits.md, with their defaults', () => {
    expect(keys.length).toBeGreaterThan(30)
    for (const [key, description] of keys) {
      const row = page.split('\n').find((line) => line.startsWith(`| \`${key}\` |`))
      expect(row, key).toBeDefined()
      const [, value = 'none'] = /By default "?(\d+)/.exec(description) ?? []
      expect(row, key).toMatch(new RegExp(`\\b${value}\\b`))
    }
  })

  test('are the only ones in docs/limits.md, besides those of single providers, which have their defaults', () => {
    const ofProviders = new Map<string, readonly string[]>()
    for (const [key, said] of shapes.flatMap((shape) => leaves(shape, 'mounts.*')))
      ofProviders.set(key, [...(ofProviders.get(key) ?? []), said])
    const rows = [...page.matchAll(/^\| `([^`]+)` \|.*$/gm)]
    const listed = rows.map(([, key = '']) => key)
    const general = new Set(keys.map(([key]) => key))
    expect(listed.filter((key) => !general.has(key) && !ofProviders.has(key))).toEqual([])
    for (const [row, key = ''] of rows.filter(([, key = '']) => !general.has(key))) {
      const values = ofProviders.get(key)?.map((said) => /By default "?([\d,]+)/.exec(said)?.[1]) ?? []
      const told = values.filter((value) => value !== undefined)
      expect(told.length === 0 || told.some((value) => row.includes(value)), `${key}: ${told.join(', ')}`).toBe(true)
    }
  })

  test('below http.limits have descriptions with the defaults of the code', () => {
    const said = Object.fromEntries(
      keys.map(([key, description]) => [key, /By default "?([\d.]+)\s*([A-Za-z]*)/.exec(description)]),
    )
    const unit: Readonly<Record<string, number>> = {
      ...{ '': 1, KiB: 1024, MiB: 1024 * 1024, s: 1000, m: 60_000, h: 3_600_000 },
    }
    const { perPrincipal, ...rest } = defaultLimits
    const flat = {
      ...rest,
      ...Object.fromEntries(Object.entries(perPrincipal).map(([k, v]) => [`perPrincipal.${k}`, v])),
    }
    for (const [name, value] of Object.entries(flat)) {
      const [, number = '', of = ''] = said[`http.limits.${name}`] ?? []
      expect(Number(number) * (unit[of] ?? 1), name).toBe(value)
    }
  })
})

describe('the limits of a principal', () => {
  test('apply only with authentication', () => {
    expect(completeLimits({ body: 5 }, false)).toMatchObject({ body: 5, perPrincipal: undefined })
    expect(completeLimits({ perPrincipal: { rate: 7 } }, true).perPrincipal).toEqual({
      ...defaultLimits.perPrincipal,
      rate: 7,
    })
  })
})

describe('a rate limit', () => {
  const create = (perSecond: number, burst: number) => {
    const clock = { now: 0 }
    return { clock, rate: createRateLimit({ perSecond, burst, now: () => clock.now }) }
  }

  test('allows a burst, and then a number of requests a second', () => {
    const { clock, rate } = create(10, 5)
    for (let i = 0; i < 5; i++) expect(rate.take('a')).toBe(0)
    expect(rate.take('a')).toBeCloseTo(0.1)
    clock.now = 100
    expect(rate.take('a')).toBe(0)
    expect(rate.take('a')).toBeGreaterThan(0)
    clock.now = 100_000
    for (let i = 0; i < 5; i++) expect(rate.take('a')).toBe(0)
    expect(rate.take('a')).toBeGreaterThan(0)
  })

  test('of one key does not affect another', () => {
    const { rate } = create(1, 1)
    expect([rate.take('a'), rate.take('b')]).toEqual([0, 0])
    expect(rate.take('a')).toBeGreaterThan(0)
    expect(rate.take('b')).toBeGreaterThan(0)
  })

  test('remembers the ten thousand most recently used keys', () => {
    const { rate } = create(1, 1)
    rate.take('often')
    for (let i = 0; i < 25_000; i++) {
      rate.take(`a${i}`)
      if (i % 1000 === 0) expect(rate.take('often')).toBeGreaterThan(0)
    }
    expect(rate.size).toBe(10_000)
    expect(rate.take('a24999')).toBeGreaterThan(0)
    expect(rate.take('a0')).toBe(0)
  })

  test('allows exactly its rate to a caller without pauses', () => {
    const { clock, rate } = create(10, 5)
    let allowed = 0
    for (; clock.now < 10_000; clock.now += 7) if (rate.take('a') === 0) allowed++
    expect(allowed).toBeGreaterThanOrEqual(104)
    expect(allowed).toBeLessThanOrEqual(105)
  })
})

describe('the gate that limits simultaneous requests', () => {
  /** Tasks that are let go by hand, by their names. */
  const createTasks = () => {
    const order: string[] = []
    const ends = new Map<string, () => void>()
    const task = (name: string) => () => {
      order.push(name)
      return new Promise<string>((resolve) => ends.set(name, () => resolve(name)))
    }
    return { order, task, end: (name: string) => ends.get(name)?.() }
  }

  test('takes turns between principals, however much one of them sends', async () => {
    const gate = createGate(1, 100)
    const { order, task, end } = createTasks()
    const all = ['a1', 'a2', 'a3', 'a4', 'b1', 'b2', 'c1'].map((name) => gate.run(task(name), name[0]))
    for (let i = 0; i < 7; i++) {
      await until(() => order.length === i + 1)
      end(order[i] ?? '')
    }
    await Promise.all(all)
    expect(order).toEqual(['a1', 'b1', 'c1', 'a2', 'b2', 'a3', 'a4'])
    expect([gate.running, gate.waiting]).toEqual([0, 0])
  })

  test('gives no principal all slots, and refuses requests beyond the limit of one principal or of all', async () => {
    const gate = createGate(3, 3, { concurrent: 2, waiting: 2 })
    const { order, task, end } = createTasks()
    const running = ['a1', 'a2', 'a3', 'a4'].map((name) => gate.run(task(name), 'a'))
    expect(await gate.run(task('a5'), 'a')).toEqual({ refused: 'share' })
    const b = [gate.run(task('b1'), 'b'), gate.run(task('b2'), 'b')]
    await until(() => order.length === 3)
    expect(order).toEqual(['a1', 'a2', 'b1'])
    expect(await gate.run(task('c1'), 'c')).toEqual({ refused: 'busy' })
    expect([gate.running, gate.waiting]).toEqual([3, 3])
    for (const name of ['a1', 'a2', 'b1', 'b2', 'a3', 'a4']) {
      await until(() => order.includes(name))
      end(name)
    }
    expect((await Promise.all([...running, ...b])).map((ran) => 'value' in ran && ran.value)).toEqual([
      ...['a1', 'a2', 'a3', 'a4', 'b1', 'b2'],
    ])
    expect([gate.running, gate.waiting]).toEqual([0, 0])
  })

  test('frees a slot when its task fails', async () => {
    const gate = createGate(1, 0)
    await expect(gate.run(() => Promise.reject(new Error('no')))).rejects.toThrow('no')
    expect(await gate.run(async () => 1)).toEqual({ value: 1 })
  })

  /** Tasks that are large, and wait for room before they begin. */
  const createLarge = (order: string[], wait: 'room' | 'turn' = 'room') => {
    const ends: (() => void)[] = []
    const task = (name: string) => async (pass: TaskHandle) => {
      await pass[wait]()
      order.push(name)
      await new Promise<void>((resolve) => ends.push(resolve))
    }
    return { task, end: () => ends.shift()?.() }
  }

  test('lets small answers pass, however many large ones wait', async () => {
    const gate = createGate(4, 100)
    const order: string[] = []
    const { task, end } = createLarge(order)
    const large = Array.from({ length: 50 }, (_, i) => gate.run(task(`large ${i}`)))
    await until(() => order.length === 4)
    for (let i = 0; i < 10; i++) expect(await gate.run(async () => i)).toEqual({ value: i })
    expect([order.length, gate.running, gate.waiting]).toEqual([4, 4, 46])
    const endAll = setInterval(end, 1)
    await Promise.all(large)
    clearInterval(endAll)
    expect(order).toHaveLength(50)
    expect([gate.running, gate.waiting]).toEqual([0, 0])
  })

  test('keeps the slot of an answer that turns out to be large until its turn', async () => {
    const gate = createGate(6, 100)
    const order: string[] = []
    const { task, end } = createLarge(order, 'turn')
    // Four are in the lane, and six in memory.
    const running = Array.from({ length: 10 }, (_, i) => gate.run(task(`${i}`)))
    await until(() => order.length === 4 && gate.waiting === 6)
    expect(gate.running).toBe(10)
    let small = false
    const last = gate.run(async () => {
      small = true
    })
    expect([gate.waiting, small]).toEqual([7, false])
    end()
    await last
    const endAll = setInterval(end, 1)
    await Promise.all(running)
    clearInterval(endAll)
    expect([order.length, gate.running, gate.waiting]).toEqual([10, 0, 0])
  })

  test('gives no principal all slots for large answers', async () => {
    const gate = createGate(64, 100, { concurrent: 8, waiting: 100 })
    const order: string[] = []
    const { task, end } = createLarge(order)
    const running = ['a1', 'a2', 'a3', 'b1'].map((name) => gate.run(task(name), name[0]))
    await until(() => order.length === 3)
    expect(order).toEqual(['a1', 'a2', 'b1'])
    const endAll = setInterval(end, 1)
    await Promise.all(running)
    clearInterval(endAll)
  })

  test('keeps the slot of a large answer until it was read, and of a small one never', async () => {
    const gate = createGate(1, 10)
    const never = new Promise(() => {})
    expect(
      await gate.run(
        async () => 1,
        '',
        () => never,
      ),
    ).toEqual({ value: 1 })
    expect(gate.running).toBe(0)
    let take = () => {}
    const taken = new Promise<void>((resolve) => {
      take = resolve
    })
    const runLarge = async (until: Promise<unknown>) =>
      gate.run(
        (pass) => pass.room(),
        '',
        () => until,
      )
    await runLarge(taken)
    const order: string[] = []
    const next = runLarge(never).then(() => order.push('next'))
    await until(() => gate.waiting === 1)
    // Small ones go on meanwhile.
    await gate.run(async () => order.push('small'))
    expect([order, gate.running, gate.waiting]).toEqual([['small'], 1, 1])
    take()
    await next
    // One that is never taken gives its place back all the same.
    await runLarge(Promise.resolve())
    await until(() => gate.running === 0)
  })

  test('keeps no room for a caller that left, and refuses more than the queue holds', async () => {
    const gate = createGate(4, 1)
    const order: string[] = []
    const { task, end } = createLarge(order)
    const running = Array.from({ length: 4 }, (_, i) => gate.run(task(`${i}`)))
    await until(() => order.length === 4)
    let late: TaskHandle | undefined
    // It waits for room, and is given up meanwhile.
    await gate.run(async (pass) => {
      late = pass
      void pass.room().catch(() => {})
    })
    expect([gate.running, gate.waiting]).toEqual([4, 0])
    await expect(late?.room()).rejects.toThrow(ResourceError)
    const waiting = gate.run(task('waits'))
    await until(() => gate.waiting === 1)
    await expect(gate.run(task('too much'))).rejects.toThrow(ResourceError)
    const endAll = setInterval(end, 1)
    await Promise.all([...running, waiting])
    clearInterval(endAll)
    expect([gate.running, gate.waiting]).toEqual([0, 0])
  })
})

test('the meter of a server reports a number for each declared name', () => {
  const meter = createMeter()
  meter.count('requests')
  meter.count('requests', 2)
  meter.gauge('waiting', () => 7)
  const read = meter.read()
  expect(Object.keys(read)).toEqual(Object.keys(meterNames))
  expect(read).toMatchObject({ requests: 3, waiting: 7, refusedRate: 0 })
})
