import { describe, expect, test } from 'vitest'
import { compileAccess } from '../../src/core/access.ts'
import { createCatalog } from '../../src/core/catalog.ts'
import { ResourceError } from '../../src/core/errors.ts'
import type { Principal } from '../../src/core/provider.ts'
import type { View, ViewChange } from '../../src/core/view.ts'
import { polled } from '../../src/wrap/polled.ts'
import { type Live, live, pause, until } from '../support/live.ts'
import { memory } from '../support/memory.ts'

const alice: Principal = { id: 'alice', roles: ['reader'] }
const address = 'file:///r'

async function listening(view: View, uris: readonly string[], list = false) {
  const heard: ViewChange[] = []
  const subscription = view.subscribe?.((change) => heard.push(change))
  if (subscription === undefined) throw new Error('the view cannot tell of changes')
  const honoured = await subscription.add(uris)
  if (list) await subscription.addList()
  return { heard, subscription, honoured, uris: () => heard.flatMap((change) => change.uris) }
}

const serve = (provider: Live, options: object = {}) => createCatalog({ mounts: [{ address, provider }], ...options })

describe('a subscription', () => {
  test('is notified of its own URIs, in its spelling, and of no others', async () => {
    const provider = live({ 'a [1].txt': '', b: '' })
    const { uris, honoured } = await listening(serve(provider).view(alice), [
      'file:///r/a [1].txt',
      'file:///r/a%20%5B1%5D.txt',
    ])
    expect(honoured).toHaveLength(2)
    provider.set('b', { text: 'x' })
    provider.set('a [1].txt', { text: 'x' })
    await until(() => uris().length > 0)
    await pause(100)
    expect(uris().sort()).toEqual(['file:///r/a [1].txt', 'file:///r/a%20%5B1%5D.txt'].sort())
  })

  test('of a directory is notified of everything in it, with or without its slash', async () => {
    const provider = live({ 'src/deep/a': '', 'srcx/b': '' })
    const view = serve(provider).view(alice)
    const bare = await listening(view, ['file:///r/src'])
    const slashed = await listening(view, ['file:///r/src/', 'file:///r/'])
    provider.set('src/deep/a', { text: 'x' })
    await until(() => bare.heard.length > 0 && slashed.heard.length > 0)
    expect(bare.uris()).toEqual(['file:///r/src'])
    expect(slashed.uris().sort()).toEqual(['file:///r/', 'file:///r/src/'])
    provider.set('srcx/b', { text: 'x' })
    await until(() => slashed.heard.length > 1)
    expect(bare.heard).toHaveLength(1)
  })

  test('is acknowledged only once the watch runs', async () => {
    const provider = live({ a: '' })
    let arm = () => {}
    provider.arming = () =>
      new Promise((resolve) => {
        arm = resolve
      })
    let acknowledged = false
    const opening = listening(serve(provider).view(alice), ['file:///r/a']).then((opened) => {
      acknowledged = true
      return opened
    })
    await pause(50)
    expect(acknowledged).toBe(false)
    arm()
    const { heard } = await opening
    provider.set('a', { text: 'x' })
    await until(() => heard.length > 0)
  })

  test('merges a burst of changes into one notification, and is also notified while the source changes without a pause', async () => {
    const provider = live({ a: '', b: '' })
    const { heard, uris } = await listening(serve(provider).view(alice), ['file:///r/a', 'file:///r/b'])
    for (let i = 0; i < 100; i++) provider.set(i % 2 === 0 ? 'a' : 'b', { text: `${i}` })
    await until(() => heard.length > 0)
    expect(heard).toHaveLength(1)
    expect(uris().sort()).toEqual(['file:///r/a', 'file:///r/b'])
    // A source that never is quiet does not keep the news back.
    const stop = setInterval(() => provider.set('a', { text: 'y' }), 10)
    await until(() => heard.length >= 3)
    clearInterval(stop)
  })

  test('to the list of resources is notified of new entries and not of changed ones, and one to an absent URI when it appears', async () => {
    const provider = live({ a: '' })
    const view = serve(provider).view(alice)
    const lists = await listening(view, [], true)
    const plain = await listening(view, ['file:///r/new'])
    provider.set('a', { text: 'changed' })
    await pause(150)
    expect(lists.heard).toEqual([])
    provider.set('new', { text: 'x' })
    await until(() => lists.heard.length > 0)
    expect(lists.heard).toEqual([{ uris: [], listed: true }])
    // What was not there yet is told of when it comes.
    expect(plain.heard).toEqual([{ uris: ['file:///r/new'], listed: false }])
  })

  test('is notified of all its URIs and of the list if the source reports that everything may have changed', async () => {
    const provider = live({ a: '' })
    const { heard } = await listening(serve(provider).view(alice), ['file:///r/a', 'file:///r/b'], true)
    provider.tell({})
    await until(() => heard.length > 0)
    expect(heard).toEqual([{ uris: ['file:///r/a', 'file:///r/b'], listed: true }])
  })

  test('continues after the watch was lost, and then counts everything as changed', async () => {
    const provider = live({ a: '' })
    const { heard } = await listening(serve(provider).view(alice), ['file:///r/a'])
    provider.drop()
    provider.entries.set('a', { text: 'changed while nobody watched' })
    await until(() => provider.watching === 1 && heard.length > 0)
    await pause(300)
    const before = heard.length
    provider.set('a', { text: 'again' })
    await until(() => heard.length > before)
  })

  test('whose watch is lost or incomplete is reported to the operator until the watch is complete again', async () => {
    const provider = live({ a: '' })
    const logged: string[] = []
    let degradation: 'limited' | undefined
    const catalog = serve(Object.assign(provider, { degraded: () => degradation }), {
      log: (level: string, message: string) => logged.push(`${level}: ${message}`),
    })
    await listening(catalog.view(alice), ['file:///r/a'])
    expect(catalog.degraded()).toEqual([])
    degradation = 'limited'
    expect(catalog.degraded()).toEqual([{ address, degradation }])
    degradation = undefined
    provider.arming = async () => {
      throw new ResourceError('unavailable', 'not now')
    }
    provider.drop()
    await until(() => catalog.degraded().length > 0)
    expect(catalog.degraded()).toEqual([{ address, degradation: 'lost' }])
    provider.arming = undefined
    await until(() => catalog.degraded().length === 0, 20_000)
    expect(provider.watching).toBe(1)
    expect(logged.filter((line) => line.startsWith('warn: the watch of a mount was lost'))).toHaveLength(1)
    expect(logged.at(-1)).toBe('info: a mount is watched again')
    await catalog.close()
  })

  test('is refused if the source cannot be watched, and the next subscription tries again', async () => {
    const provider = live({ a: '' })
    provider.arming = async () => {
      throw new ResourceError('unavailable', 'too many watches')
    }
    const view = serve(provider).view(alice)
    expect((await listening(view, ['file:///r/a'])).honoured).toEqual([])
    provider.arming = undefined
    expect((await listening(view, ['file:///r/a'])).honoured).toEqual(['file:///r/a'])
  })

  test('to the list of resources is notified when a source that could not be watched is watched at last', async () => {
    const provider = live({ a: '' })
    provider.arming = async () => {
      throw new ResourceError('unavailable', 'too many watches')
    }
    const { heard, subscription } = await listening(serve(provider).view(alice), [])
    expect(await subscription.addList()).toBe(true)
    provider.set('b', { text: 'nobody hears of it' })
    provider.arming = undefined
    await until(() => heard.length > 0)
    expect(heard).toEqual([{ uris: [], listed: true }])
    provider.set('c', { text: 'from now on it is heard' })
    await until(() => heard.length > 1)
    subscription.close()
    await until(() => provider.watching === 0)
  })

  test('is not notified of removed URIs, nor of anything once it is closed', async () => {
    const provider = live({ a: '', b: '' })
    const { heard, subscription } = await listening(serve(provider).view(alice), ['file:///r/a', 'file:///r/b'])
    subscription.remove('file:///r/a')
    provider.set('a', { text: 'x' })
    provider.set('b', { text: 'x' })
    await until(() => heard.length > 0)
    expect(heard).toEqual([{ uris: ['file:///r/b'], listed: false }])
    subscription.close()
    provider.set('b', { text: 'y' })
    await pause(150)
    expect(heard).toHaveLength(1)
  })

  test('shares one watch of the source with all other subscriptions, and the watch ends with the last of them', async () => {
    const provider = live({ a: '' })
    const catalog = serve(provider)
    const many = await Promise.all(
      Array.from({ length: 50 }, (_, i) => listening(catalog.view({ id: `u${i}`, roles: [] }), ['file:///r/a'])),
    )
    expect(provider.watching).toBe(1)
    for (const { subscription } of many) subscription.close()
    await until(() => provider.watching === 0)
    const { heard } = await listening(catalog.view(alice), ['file:///r/a'])
    provider.set('a', { text: 'x' })
    await until(() => heard.length > 0)
    await catalog.close()
    expect(provider.watching).toBe(0)
  })
})

describe('access to changes', () => {
  const rules = compileAccess([{ allow: ['reader'], match: 'public/**' }])
  const restricted = (provider: Live) => createCatalog({ mounts: [{ address, provider, access: rules }] })

  test('is checked when subscribing: denied URIs are left out, exactly like malformed ones and those of no mount', async () => {
    const provider = live({ 'public/a': '', 'secret/b': '' })
    const { honoured } = await listening(restricted(provider).view(alice), [
      'file:///r/public/a',
      'file:///r/public/not-yet',
      'file:///r/secret/b',
      'file:///r/secret/not-there',
      'file:///r/secret/',
      'file:///elsewhere/a',
      'file:///r/../x',
      'nonsense',
    ])
    expect(honoured).toEqual(['file:///r/public/a', 'file:///r/public/not-yet'])
  })

  test('is checked when a directory or the list changes: the change of a denied entry is not reported', async () => {
    const provider = live({ 'public/a': '', 'secret/b': '' })
    const { heard } = await listening(restricted(provider).view(alice), ['file:///r/', 'file:///r/public/'], true)
    provider.set('secret/b', { text: 'x' })
    provider.set('secret/c', { text: 'new' })
    await pause(200)
    expect(heard).toEqual([])
    provider.set('public/c', { text: 'new' })
    await until(() => heard.length > 0)
    expect(heard).toEqual([{ uris: ['file:///r/public/', 'file:///r/'], listed: true, below: ['file:///r/public/c'] }])
  })

  test('is checked for the list of a mount that is empty so far: the first visible entry is reported', async () => {
    const provider = live({ 'secret/b': '' })
    const { heard } = await listening(restricted(provider).view(alice), [], true)
    provider.set('secret/c', { text: 'new' })
    // Everything may have changed in what it may not see.
    provider.tell({})
    await pause(200)
    expect(heard).toEqual([])
    provider.set('public/a', { text: 'new' })
    await until(() => heard.length > 0)
    provider.tell({})
    await until(() => heard.length > 1)
    expect(heard).toEqual([1, 2].map(() => ({ uris: [], listed: true })))
  })
})

describe('the limits of subscriptions', () => {
  test('are named in the error for too many URIs or subscriptions, and a closed subscription makes room', async () => {
    const limits = { perSubscription: 3, perPrincipal: 4, total: 6, subscriptions: 2 }
    const catalog = serve(live({}), { changes: limits })
    const view = catalog.view(alice)
    const uris = (count: number, name = 'f') => Array.from({ length: count }, (_, i) => `file:///r/${name}${i}`)
    const full = { kind: 'invalid', detail: { reason: 'too-many' } }
    await expect(listening(view, uris(4))).rejects.toMatchObject(full)
    const one = await listening(view, uris(3))
    expect(() => view.subscribe?.(() => {})).toThrow('The limit of 2')
    one.subscription.close()
    const two = await listening(view, uris(2))
    await expect(two.subscription.add(uris(2, 'g'))).rejects.toMatchObject(full)
    const bob = await listening(catalog.view({ id: 'bob', roles: [] }), uris(3))
    await expect(two.subscription.add(uris(2, 'h'))).rejects.toMatchObject(full)
    bob.subscription.close()
    expect(await two.subscription.add(['file:///r/f0', 'file:///r/f1', 'file:///r/h'])).toHaveLength(3)
  })

  test('apply to each principal and to all principals together, and the error says which limit is reached', async () => {
    const limits = { perSubscription: 3, perPrincipal: 4, subscriptions: 2, totalSubscriptions: 3 }
    const catalog = serve(live({}), { changes: limits })
    const [first, second] = [catalog.view(alice), catalog.view({ id: 'bob', roles: [] })]
    const open = (view: View) => view.subscribe?.(() => {})
    const full = (limit: number, of: string) => expect.objectContaining({ detail: { reason: 'too-many', limit, of } })
    const one = open(first)
    open(first)
    expect(() => open(first)).toThrow(full(2, 'client'))
    open(second)
    expect(() => open(second)).toThrow(full(3, 'all'))
    one?.close()
    expect(() => open(second)).not.toThrow()
    await expect(listening(catalog.view(alice), [])).rejects.toThrow(full(3, 'all'))
  })

  test('allow one attempt for a hundred URIs to watch a source that cannot be watched', async () => {
    const provider = live({})
    let asked = 0
    provider.arming = async () => {
      asked++
      throw new ResourceError('unavailable', 'not now')
    }
    const uris = Array.from({ length: 100 }, (_, i) => `file:///r/${i}`)
    expect((await listening(serve(provider).view(alice), uris)).honoured).toEqual([])
    expect(asked).toBe(1)
  })
})

describe('polling a source', () => {
  test('reports new, deleted and changed paths', async () => {
    const inner = memory({ a: { version: '1' }, b: { version: '1' }, c: { size: 1, modified: 1 } })
    const catalog = createCatalog({ mounts: [{ address, provider: polled(inner, { intervalMs: 20 }) }] })
    const { heard, uris } = await listening(
      catalog.view(alice),
      ['a', 'b', 'c', 'd'].map((name) => `${address}/${name}`),
      true,
    )
    await pause(60)
    expect(heard).toEqual([])
    inner.entries.set('a', { version: '2' })
    inner.entries.delete('b')
    inner.entries.set('c', { size: 1, modified: 2 })
    inner.entries.set('d', {})
    inner.entries.set('e', {})
    await until(() => heard.length > 0)
    expect(uris().sort()).toEqual(['a', 'b', 'c', 'd'].map((name) => `${address}/${name}`))
    expect(heard[0]?.listed).toBe(true)
    await catalog.close()
  })

  test('waits longer while the source is down, and then finds the changes meanwhile', async () => {
    const inner = memory({ a: { version: '1' } })
    let down = false
    let asked = 0
    const broken = {
      ...inner,
      list: (...args: Parameters<typeof inner.list>) => {
        asked++
        if (down) throw new ResourceError('unavailable', 'down')
        return inner.list(...args)
      },
    }
    const catalog = createCatalog({
      mounts: [{ address, provider: polled(broken, { intervalMs: 10, maxIntervalMs: 80 }) }],
    })
    const { heard } = await listening(catalog.view(alice), [`${address}/a`])
    down = true
    asked = 0
    await pause(300)
    expect(asked).toBeLessThan(10)
    inner.entries.set('a', { version: '2' })
    down = false
    await until(() => heard.length > 0)
    await catalog.close()
  })

  test('is not added to a source that reports changes itself', () => {
    const provider = live({})
    expect(polled(provider)).toBe(provider)
  })
})
