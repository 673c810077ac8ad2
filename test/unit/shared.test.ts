import { afterEach, describe, expect, test, vi } from 'vitest'
import { ResourceError } from '../../src/core/errors.ts'
import type { Change, Provider } from '../../src/core/provider.ts'
import type { SharedChanges } from '../../src/core/shared.ts'
import { shared } from '../../src/wrap/shared.ts'

/** How replicas share the changes of a source: each has a provider of its own, and all of them one log. */

const source = 'docs:///'
const eventually = (check: () => void) => vi.waitFor(check, { timeout: 20_000, interval: 10 })
const ends: (() => void | Promise<void>)[] = []
afterEach(async () => {
  for (const end of ends.splice(0)) await end()
})

/** A log of several replicas in memory. */
function createBus() {
  const followers = new Set<{ readonly of: number; readonly hear: (changes: readonly Change[]) => void }>()
  const bus = {
    /** Whether the database does not answer. */
    down: false,
    /** Called before a change is written. */
    writing: async () => {},
    holder: undefined as { readonly of: number; readonly lost: AbortController } | undefined,
    /** The holder of the lease dies, or is taken for dead. */
    expire: () => {
      bus.holder?.lost.abort()
      bus.holder = undefined
    },
    replica: (of: number): SharedChanges => ({
      publish: async (_, changes) => {
        await bus.writing()
        for (const follower of followers) if (follower.of !== of) follower.hear(changes)
        return true
      },
      follow: async (_, hear) => {
        const follower = { of, hear }
        followers.add(follower)
        return () => void followers.delete(follower)
      },
      catchUp: async () => {
        if (bus.down) throw new ResourceError('unavailable', 'The database does not answer.')
      },
      lease: async () => {
        if (bus.down) throw new ResourceError('unavailable', 'The database does not answer.')
        if (bus.holder !== undefined) return undefined
        const held = { of, lost: new AbortController() }
        bus.holder = held
        return {
          signal: held.lost.signal,
          release: async () => {
            if (bus.holder === held) bus.holder = undefined
          },
        }
      },
      behind: false,
      close: async () => {},
    }),
    get followers() {
      return followers.size
    },
  }
  return bus
}

/** A source that a test changes by hand, and how many watch it. */
function createSource(members: Partial<Provider> = {}) {
  const watches = new Set<(change: Change) => void>()
  const provider: Provider = {
    list: async function* () {},
    read: async () => [{ text: 'text' }],
    watch: async (signal) => {
      const waiting: Change[] = []
      let wake = () => {}
      const tell = (change: Change) => {
        waiting.push(change)
        wake()
      }
      watches.add(tell)
      const end = () => {
        watches.delete(tell)
        wake()
      }
      signal.addEventListener('abort', end)
      return (async function* () {
        while (watches.has(tell)) {
          yield* waiting.splice(0)
          if (watches.has(tell))
            await new Promise<void>((resolve) => {
              wake = resolve
            })
        }
      })()
    },
    ...members,
  }
  return {
    provider,
    change: (path: string) => {
      for (const tell of watches) tell({ path })
    },
    get watched() {
      return watches.size
    },
  }
}

async function listen(provider: Provider) {
  const abort = new AbortController()
  const changes: Change[] = []
  const iterable = await provider.watch?.(abort.signal)
  const follow = async () => {
    for await (const change of iterable ?? []) changes.push(change)
  }
  const ended = follow()
  const stop = async () => {
    abort.abort()
    await ended
  }
  ends.push(stop)
  return { changes, stop, ended }
}

describe('a source that each replica watches', () => {
  test('reports in all replicas, once, a change that one of them sees', async () => {
    const bus = createBus()
    const [one, other] = [createSource(), createSource()]
    const options = { source, isPolled: false }
    const here = await listen(shared(one.provider, { ...options, changes: bus.replica(1) }))
    const there = await listen(shared(other.provider, { ...options, changes: bus.replica(2) }))
    one.change('a')
    other.change('b')
    await eventually(() => expect(here.changes.map(({ path }) => path).sort()).toEqual(['a', 'b']))
    await eventually(() => expect(there.changes.map(({ path }) => path).sort()).toEqual(['a', 'b']))
    await here.stop()
    await there.stop()
    expect([one.watched, other.watched, bus.followers]).toEqual([0, 0, 0])
  })

  test('reports a local change without waiting for a database that does not answer', async () => {
    const bus = createBus()
    const one = createSource()
    bus.writing = () => new Promise(() => {})
    const { changes } = await listen(shared(one.provider, { source, isPolled: false, changes: bus.replica(1) }))
    one.change('a')
    await eventually(() => expect(changes).toEqual([{ path: 'a' }]))
  })

  test('ends the watch of a replica when the source ends its own, so that it is started again', async () => {
    const bus = createBus()
    const lost = createSource({
      watch: async () =>
        (async function* () {
          yield { path: 'last' }
        })(),
    })
    const { changes, ended } = await listen(shared(lost.provider, { source, isPolled: false, changes: bus.replica(1) }))
    await ended
    expect(changes).toEqual([{ path: 'last' }])
    expect(bus.followers).toBe(0)
  })

  test('is returned without a wrapper if it cannot be watched', () => {
    const { watch: _, ...provider } = createSource().provider
    expect(shared(provider, { source, isPolled: true, changes: createBus().replica(1) })).toBe(provider)
  })
})

describe('a source that is polled', () => {
  const polledBy = (bus: ReturnType<typeof createBus>, count: number) =>
    Array.from({ length: count }, (_, at) => {
      const one = createSource()
      return { one, provider: shared(one.provider, { source, isPolled: true, changes: bus.replica(at) }) }
    })

  test('is watched by one replica, which notifies the others', async () => {
    const bus = createBus()
    const replicas = polledBy(bus, 3)
    const heard = await Promise.all(replicas.map(({ provider }) => listen(provider)))
    expect(replicas.map(({ one }) => one.watched).sort()).toEqual([0, 0, 1])
    for (const { one } of replicas) one.change('a')
    for (const { changes } of heard) await eventually(() => expect(changes).toContainEqual({ path: 'a' }))
  })

  test('is watched by another replica when the first one stops, with the notice that everything may have changed', {
    timeout: 30_000,
  }, async () => {
    const bus = createBus()
    const [first, second] = polledBy(bus, 2)
    if (first === undefined || second === undefined) throw new Error('there are two')
    const here = await listen(first.provider)
    const there = await listen(second.provider)
    expect([first.one.watched, second.one.watched]).toEqual([1, 0])
    await here.stop()
    expect(bus.holder).toBeUndefined()
    await eventually(() => expect(second.one.watched).toBe(1))
    await eventually(() => expect(there.changes).toContainEqual({}))
    second.one.change('b')
    await eventually(() => expect(there.changes).toContainEqual({ path: 'b' }))
  })

  test('is no longer watched by a replica that has lost its lease, which then gets the changes of others', {
    timeout: 30_000,
  }, async () => {
    const bus = createBus()
    const [first, second] = polledBy(bus, 2)
    if (first === undefined || second === undefined) throw new Error('there are two')
    const here = await listen(first.provider)
    await listen(second.provider)
    bus.expire()
    await bus.replica(9).lease(source)
    await eventually(() => expect(first.one.watched).toBe(0))
    expect(second.one.watched).toBe(0)
    await bus.replica(9).publish(source, [{ path: 'elsewhere' }])
    await eventually(() => expect(here.changes).toContainEqual({ path: 'elsewhere' }))
  })

  test('is watched by each replica while the database does not answer, and by one afterwards', {
    timeout: 30_000,
  }, async () => {
    const bus = createBus()
    bus.down = true
    const replicas = polledBy(bus, 2)
    for (const { provider } of replicas) await listen(provider)
    expect(replicas.map(({ one }) => one.watched)).toEqual([1, 1])
    bus.down = false
    await eventually(() => expect(replicas.map(({ one }) => one.watched).sort()).toEqual([0, 1]))
  })

  test('gives its lease back if it cannot be watched', async () => {
    const bus = createBus()
    const fails = createSource({ watch: () => Promise.reject(new ResourceError('unavailable', 'It does not answer.')) })
    const provider = shared(fails.provider, { source, isPolled: true, changes: bus.replica(1) })
    await expect(listen(provider)).rejects.toThrow('It does not answer.')
    expect(bus.holder).toBeUndefined()
    expect(bus.followers).toBe(0)
  })
})

describe('a replicated source that caches', () => {
  test('reports a change only once the others know of it', async () => {
    const bus = createBus()
    let write = () => {}
    bus.writing = () =>
      new Promise((resolve) => {
        write = resolve
      })
    const one = createSource({ renew: () => {} })
    const { changes } = await listen(shared(one.provider, { source, isPolled: false, changes: bus.replica(1) }))
    one.change('a')
    await new Promise(setImmediate)
    expect(changes).toEqual([])
    write()
    await eventually(() => expect(changes).toEqual([{ path: 'a' }]))
  })

  test('drops its cache before it answers, after another replica has reported a change', async () => {
    const bus = createBus()
    const order: string[] = []
    const copied = createSource({
      renew: () => void order.push('renew'),
      read: async () => {
        order.push('read')
        return [{ text: 'text' }]
      },
    })
    const changes = bus.replica(1)
    /** The change has been written, and is heard when the log is read. */
    const lagging: SharedChanges = {
      ...changes,
      catchUp: async () => {
        await bus.replica(2).publish(source, [{ path: 'a' }])
      },
    }
    const provider = shared(copied.provider, { source, isPolled: false, changes: lagging })
    const context = { principal: { id: 'one', roles: [] }, signal: new AbortController().signal }
    await provider.read({ path: 'a', params: new Map() }, context)
    expect(order).toEqual(['renew', 'read'])
    await provider.close?.()
    expect(bus.followers).toBe(0)
  })

  test('does not use its cache while the database does not answer', async () => {
    const bus = createBus()
    bus.down = true
    const renew = vi.fn()
    const copied = createSource({ renew })
    const provider = shared(copied.provider, { source, isPolled: false, changes: bus.replica(1) })
    const context = { principal: { id: 'one', roles: [] }, signal: new AbortController().signal }
    await provider.read({ path: 'a', params: new Map() }, context)
    for await (const _ of provider.list({}, context)) expect.fail('it has no entries')
    expect(renew).toHaveBeenCalledTimes(2)
  })
})
