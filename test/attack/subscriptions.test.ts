import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { type ClientRequest, type IncomingMessage, request } from 'node:http'
import { connect, type Socket } from 'node:net'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, describe, expect, test } from 'vitest'
import { requires } from '../support/require.ts'
import { volumeOf } from '../support/volume.ts'
import { openSchema } from '../support/wire-schema.ts'
import { control, isStdio, useArena, wireNames } from './harness/arena.ts'
import { jsonHeaders, modernHeaders, openHttp, send, sessionHeaders } from './harness/http.ts'
import { openLegacyStdio, openStdio } from './harness/stdio.ts'
import { startConfigured, type Target, until } from './harness/target.ts'
import { requiresWatchLimit, withWatches } from './harness/watch-limit.ts'
import { inTime, legacy, type Message, modern, type Params, patience, type Wire, withMeta } from './harness/wire.ts'
import { testOn } from './harness/wires.ts'
import type { World } from './harness/world.ts'

/** A subscriber to changes over a wire, with the method of its transport and revision. */
interface Ear {
  /** The accepted URIs: acknowledged, or answered without an error. */
  readonly honoured: readonly string[]
  /** Every notification so far, the acknowledgement included. */
  readonly heard: readonly Message[]
  /** The URIs that were reported as changed, in order. */
  updates(): readonly string[]
  /** Number of notifications of a changed list. */
  lists(): number
  forget(): void
  /** Waits until each of these URIs was reported. */
  until(...uris: readonly string[]): Promise<void>
  close(): Promise<void>
}

const subscriptionId = 'io.modelcontextprotocol/subscriptionId'
let next = 1

/** Number of subscribers so far: the last one has the id `ear-N`. */
const ears = () => next - 1

/** Subscribes to URIs; on 2026-07-28 to the list only if requested. */
async function listen(wire: Wire, uris: readonly string[], list = false): Promise<Ear> {
  const heard: Message[] = []
  const opened = await (wire.modern ? listenModern(wire, uris, list, heard) : listenLegacy(wire, uris, heard))
  const told = (method: string) => heard.filter((message) => message.method === `notifications/resources/${method}`)
  const updates = () => told('updated').map(({ params }) => String(params?.uri))
  return {
    ...opened,
    heard,
    updates,
    lists: () => told('list_changed').length,
    forget: () => void heard.splice(0),
    until: async (...wanted) => {
      const missing = () => wanted.filter((uri) => !updates().includes(uri))
      const left = await until(missing, ({ length }) => length === 0, patience)
      if (left.length > 0) throw new Error(`not told over ${wire.name}: ${left.map((uri) => uri.slice(0, 200))}`)
    },
  }
}

interface Honoured {
  readonly resourceSubscriptions?: readonly string[]
}

type Opened = Pick<Ear, 'honoured' | 'close'>

async function listenModern(wire: Wire, uris: readonly string[], list: boolean, heard: Message[]): Promise<Opened> {
  const id = `ear-${next++}`
  const params = listenParams(uris, list)
  const isMine = ({ params: given }: Message) => (given?._meta as Params | undefined)?.[subscriptionId] === id
  const take = (message: Message) => void (isMine(message) && heard.push(message))
  let close: () => Promise<void>
  if (isStdio(wire)) {
    const untap = wire.pipe.tap(take)
    await wire.pipe.write(`${JSON.stringify({ jsonrpc: '2.0', id, method: 'subscriptions/listen', params })}\n`)
    close = async () => {
      await wire.notify('notifications/cancelled', { requestId: id })
      untap()
    }
  } else {
    const stream = openStream(wire, { method: 'POST', id, params }, take)
    close = async () => void stream.destroy()
  }
  const acknowledged = () => heard.find(({ method }) => method === 'notifications/subscriptions/acknowledged')
  const first = await until(acknowledged, (message) => message !== undefined, patience)
  if (first === undefined) throw new Error(`not acknowledged over ${wire.name}`)
  const { resourceSubscriptions = [] } = (first.params?.notifications ?? {}) as Honoured
  return { honoured: resourceSubscriptions, close }
}

async function listenLegacy(wire: Wire, uris: readonly string[], heard: Message[]): Promise<Opened> {
  const take = (message: Message) => void heard.push(message)
  const stream = isStdio(wire) ? undefined : openStream(wire, { method: 'GET' }, take)
  const untap = isStdio(wire) ? wire.pipe.tap(take) : undefined
  const answers = await Promise.all(uris.map((uri) => wire.call('resources/subscribe', { uri })))
  const honoured = uris.filter((_, i) => answers[i]?.message?.result !== undefined)
  return {
    honoured,
    close: async () => {
      await Promise.all(honoured.map((uri) => wire.call('resources/unsubscribe', { uri })))
      untap?.()
      stream?.destroy()
    },
  }
}

const listenParams = (uris: readonly string[], list = false): Params =>
  withMeta({ notifications: { resourceSubscriptions: uris, ...(list ? { resourcesListChanged: true } : {}) } }, true)

interface StreamRequest {
  readonly method: 'GET' | 'POST'
  readonly id?: string | number
  readonly params?: Params
  readonly headers?: Readonly<Record<string, string>>
  /** Called with the id of each event that has one. */
  readonly onId?: (id: string) => void
}

/** Opens an event stream, and passes on each message. The caller destroys it. */
function openStream(wire: Wire, asked: StreamRequest, take: (message: Message) => void): ClientRequest {
  const { method, id, params, headers = {}, onId = () => {} } = asked
  const own = method === 'POST' ? modernHeaders('subscriptions/listen', {}) : { accept: 'text/event-stream' }
  const all = { ...own, ...(wire.modern ? {} : sessionHeaders(wire)), ...headers }
  const sent = request(wire.target.url as URL, { method, agent: false, headers: all }, (response) => {
    let rest = ''
    response.on('error', () => {})
    response.on('data', (chunk: Buffer) => {
      wire.world.canaries.see(chunk, 'http')
      const events = (rest + chunk.toString()).split('\n\n')
      rest = events.pop() ?? ''
      for (const event of events) {
        const data = /^data: (.*)$/m.exec(event)?.[1]
        const eventId = /^id: (.*)$/m.exec(event)?.[1]
        if (eventId !== undefined) onId(eventId)
        if (data !== undefined) take(JSON.parse(data) as Message)
      }
    })
  })
  sent.on('error', () => {})
  sent.end(
    method === 'GET' ? undefined : JSON.stringify({ jsonrpc: '2.0', id, method: 'subscriptions/listen', params }),
  )
  return sent
}

/** So many URIs may be in one subscription here, in all of a client, in all; and so many subscriptions. */
const most = { perSubscription: 300, perPrincipal: 500, total: 600, subscriptions: 40, totalSubscriptions: 60 }

const beside = (world: World, name: string) => join(dirname(world.root), name)
const put = (world: World, path: string, text: string) => {
  mkdirSync(dirname(beside(world, path)), { recursive: true })
  writeFileSync(beside(world, path), text)
}

/** A file that can be spelled in many ways, each of them long. */
const deepPath = `deep/${Array.from({ length: 11 }, () => 'a'.repeat(220)).join('/')}`

const configOf = (world: World) => ({
  mounts: {
    [world.address]: { provider: 'files', root: world.root },
    'tenant://other': { provider: 'files', root: beside(world, 'tenant'), access: ['other'] },
    'rule://guarded': {
      provider: 'files',
      root: beside(world, 'guarded'),
      access: [{ allow: ['*'] }, { deny: ['*'], match: ['denied/**', 'denied.txt', 'mixed/secret.txt'] }],
    },
    'still://mount': { provider: 'files', root: beside(world, 'still'), watch: false },
  },
  changes: most,
  http: { limits: { body: '4MiB' } },
})

function launch(world: World, { transport }: { readonly transport: 'stdio' | 'http' }): Promise<Target> {
  put(world, 'tenant/a.txt', 'theirs\n')
  put(world, 'still/a.txt', 'still\n')
  for (const path of ['open.txt', 'denied.txt', 'denied/in.txt', 'mixed/secret.txt', 'mixed/open.txt'])
    put(world, `guarded/${path}`, 'first\n')
  put(world, `root/${deepPath}`, 'deep\n')
  return startConfigured(world, transport, configOf(world))
}

const arena = useArena({}, launch)
const uriOf = (path: string) => `${arena.world.address}/${path}`
const write = (path: string, text: string) => put(arena.world, `root/${path}`, text)

/** What was opened in a test, to be closed after it. */
const opened: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of opened.splice(0).reverse()) await close()
})

/** A client of its own, so that what it listens to ends with the test. Pipes are those of the arena. */
async function clientOf(name: (typeof wireNames)[number]): Promise<Wire> {
  const known = arena.wire(name)
  if (isStdio(known)) return known
  const wire = await openHttp(arena.http, arena.world, known.modern ? modern : legacy)
  opened.push(wire.close)
  return wire
}

/**
 * A client that hears of no change before it. A client of revision 2025-11-25 hears of every list, and of the change of an earlier
 * test too when its source notices that late, so it gets a server of its own.
 */
async function freshClientOf(name: (typeof wireNames)[number]): Promise<Wire> {
  const known = arena.wire(name)
  if (known.modern) return clientOf(name)
  const target = await startConfigured(arena.world, isStdio(known) ? 'stdio' : 'http', configOf(arena.world))
  opened.push(target.stop)
  if (!isStdio(known)) return openHttp(target, arena.world, legacy)
  const wire = await openLegacyStdio(target, arena.world)
  await control(wire)
  return wire
}

async function hear(wire: Wire, uris: readonly string[], list = false): Promise<Ear> {
  const ear = await listen(wire, uris, list)
  opened.push(ear.close)
  return ear
}

/** How many directories and files a server is notified of by the system. */
function countWatches({ pid }: Target): number {
  let count = 0
  for (const fd of readdirSync(`/proc/${pid}/fdinfo`))
    try {
      count += readFileSync(`/proc/${pid}/fdinfo/${fd}`, 'latin1').match(/^inotify /gm)?.length ?? 0
    } catch {
      // Closed meanwhile.
    }
  return count
}

/** Different spellings of the deep file: each of its last letters is percent-encoded or not. */
function spellings(count: number, length = 7000): readonly string[] {
  const uri = uriOf(deepPath)
  const encoded = Math.floor((length - uri.length) / 2)
  const letters = [...uri].map((letter, i) => (letter === 'a' && i >= uri.length - 40 - encoded ? '%61' : letter))
  return Array.from({ length: count }, (_, number) =>
    letters
      .map((letter, i) => {
        const bit = letters.length - 1 - i
        return letter === '%61' && bit < 12 && (number >> bit) & 1 ? 'a' : letter
      })
      .join(''),
  )
}

describe.each(wireNames)('subscriptions over %s', (name) => {
  const row = testOn(name, wireNames)
  row('leave out hidden resources exactly like absent ones, and never notify of them (SB02, SB07)', async () => {
    const wire = await freshClientOf(name)
    const absent = ['nowhere://mount/x', 'file:///nowhere/x']
    const denied = [
      'tenant://other/a.txt',
      'tenant://other/',
      'tenant://other',
      'rule://guarded/denied.txt',
      'rule://guarded/denied/in.txt',
      'rule://guarded/%64enied.txt',
      'rule://guarded/denied/never-there',
      'file:///etc/shadow',
    ]
    // Its source reports no changes: `resources/subscribe` accepts it, and a listener is not told of it.
    const still = 'still://mount/a.txt'
    const malformed = ['', 'no uri', 'rule://guarded/../../etc/passwd', `x://${'y'.repeat(9000)}`]
    // The rules deny what is in the last directory, not its name: it is heard of as if nothing were in it.
    const allowed = ['rule://guarded/open.txt', 'rule://guarded/mixed/', 'rule://guarded/denied/']
    const ear = await hear(wire, [...absent, ...denied, still, ...malformed, ...allowed])
    expect([...ear.honoured].sort()).toEqual((wire.modern ? allowed : [...allowed, still]).sort())
    if (!wire.modern) {
      const errors = await Promise.all(
        [...absent, ...denied].map(async (uri) => {
          const { error } = (await arena.ask(wire, 'resources/subscribe', { uri })).message as Message
          return { ...error, data: { ...error?.data, uri: error?.data?.uri === uri } }
        }),
      )
      for (const error of errors)
        expect(error).toEqual({ code: -32002, message: 'Resource not found', data: { uri: true } })
    }
    for (let i = 0; i < 5; i++) {
      for (const path of ['tenant/a.txt', 'guarded/denied.txt', 'guarded/denied/in.txt', 'guarded/mixed/secret.txt'])
        put(arena.world, path, `activity ${i}\n`)
      put(arena.world, `guarded/denied/new-${i}`, '')
      await sleep(60)
    }
    // What may be seen is told after all of that, so that would have been, too.
    put(arena.world, 'guarded/open.txt', `${Math.random()}\n`)
    await ear.until('rule://guarded/open.txt')
    expect(new Set(ear.updates())).toEqual(new Set(['rule://guarded/open.txt']))
    expect(ear.lists()).toBe(0)
  })

  row('accept a resource that does not exist yet, and notify when it appears (SB03)', async () => {
    const uri = uriOf(`not-yet-${Math.random()}/deeper/file.txt`)
    const ear = await hear(await clientOf(name), [uri])
    expect(ear.honoured).toEqual([uri])
    expect(ear.updates()).toEqual([])
    write(uri.slice(arena.world.address.length + 1), 'here\n')
    await ear.until(uri)
    const answer = await arena.read(arena.wire(name), uri)
    expect(answer.message?.result?.contents).toMatchObject([{ text: 'here\n' }])
  })

  row('notify of each requested spelling of a URI, without another watch, and of no forbidden URI (SB04)', async () => {
    const wire = await clientOf(name)
    const plain = await hear(await clientOf(name), [uriOf('a.txt')])
    const watches = countWatches(wire.target)
    const uris = [uriOf('a.txt'), uriOf('%61.txt'), uriOf('a%2Etxt'), uriOf('a%2etxt'), uriOf('dir'), uriOf('dir/')]
    const forbidden = [uriOf('.env'), uriOf('%2eenv'), uriOf('.%65nv'), uriOf('dir/%2E%2E/a.txt')]
    const ear = await hear(wire, [...uris, ...uris, ...forbidden])
    const rest = new Set(ear.honoured)
    for (const uri of uris) expect(rest).toContain(uri)
    expect(countWatches(wire.target)).toBe(watches)
    ear.forget()
    write('a.txt', `${Math.random()}\n`)
    await ear.until(...uris.slice(0, 4))
    await plain.until(uriOf('a.txt'))
    for (const path of ['.env', '.git/config']) write(path, `${arena.world.canaries.plant('changed')}\n`)
    write('dir/f', `${Math.random()}\n`)
    await ear.until(uriOf('dir'), uriOf('dir/'))
    expect(ear.updates().filter((uri) => forbidden.includes(uri))).toEqual([])
    // A file that is written in place may be seen a few times (empty, and whole), but not once more for each spelling.
    const counts = uris.map((uri) => ear.updates().filter((told) => told === uri).length)
    expect(Math.max(...counts)).toBeLessThan(uris.length)
  })

  row('stop notifying of a resource that becomes hidden (SB06)', async () => {
    const [soon, other] = [`soon-ignored-${Math.random()}`, uriOf('abc')]
    write(soon, 'seen\n')
    const ear = await hear(await clientOf(name), [uriOf(soon), other])
    expect(ear.honoured).toHaveLength(2)
    write(soon, 'seen again\n')
    await ear.until(uriOf(soon))
    write('.gitignore', `/${soon}\n`)
    await ear.until(uriOf(soon))
    const read = async () => (await arena.read(arena.wire(name), uriOf(soon))).message?.error?.message
    while ((await read()) === undefined) await sleep(20)
    // What was told late of the time before is over at some time.
    const isTold = async () => {
      ear.forget()
      for (let i = 0; i < 5; i++) {
        write(soon, `unseen ${Math.random()}\n`)
        await sleep(60)
      }
      write('abc', `${Math.random()}\n`)
      await ear.until(other)
      return ear.updates().includes(uriOf(soon))
    }
    await expect.poll(isTold, { timeout: 90_000 }).toBe(false)
    write('abc', 'abc\n')
    write('.gitignore', '')
  })

  row('notify with nothing but the URI and the id of the subscription (SB08)', async () => {
    const wire = await clientOf(name)
    const ear = await hear(wire, [uriOf('a.txt'), uriOf('')], true)
    for (let i = 0; i < 3; i++) write('a.txt', `${arena.world.canaries.plant('content')} ${i}\n`)
    write(`listed-${Math.random()}.txt`, '')
    await ear.until(uriOf('a.txt'), uriOf(''))
    await until(ear.lists, (count) => count > 0, patience)
    expect(ear.lists()).toBeGreaterThan(0)
    const id = 'io.modelcontextprotocol/subscriptionId'
    const schema = openSchema(wire.modern ? modern : legacy, { closed: true })
    for (const message of ear.heard) expect(schema.faults(message, undefined)).toEqual([])
    for (const { method, params, ...rest } of ear.heard) {
      if (method === 'notifications/subscriptions/acknowledged') continue
      expect(rest).toEqual({ jsonrpc: '2.0' })
      const { _meta, ...said } = { _meta: {}, ...params }
      if (method === 'notifications/resources/updated') expect(Object.keys(said)).toEqual(['uri'])
      else expect({ method, said }).toEqual({ method: 'notifications/resources/list_changed', said: {} })
      expect(Object.keys(_meta as Params)).toEqual(wire.modern ? [id] : [])
    }
    write('a.txt', 'alpha\n')
  })

  row('give resources/unsubscribe the same answer for any URI that was never subscribed', async () => {
    const wire = await clientOf(name)
    for (const uri of [uriOf('a.txt'), uriOf('never'), 'tenant://other/a.txt', 'x:', '', '\0', 'x'.repeat(20_000)]) {
      const { message } = await arena.ask(wire, 'resources/unsubscribe', { uri })
      if (wire.modern) expect(message?.error?.code).toBe(-32601)
      else expect(message?.result).toEqual({})
    }
    for (const params of [{}, { uri: 1 }, { uri: null }, { uri: ['x'] }]) {
      const { message } = await arena.ask(wire, 'resources/unsubscribe', params)
      expect(message?.error?.code).toBe(wire.modern ? -32601 : -32602)
    }
  })
})

describe('a stream of changes (2026-07-28)', () => {
  /** Waits until there is room again for a stream of these. */
  const isHonoured = (wire: Wire, uris: readonly string[]) =>
    expect
      .poll(
        async () => {
          const stream = openStream(wire, { method: 'POST', id: 1, params: listenParams(uris) }, () => {})
          opened.push(async () => stream.destroy())
          const [{ statusCode }] = (await once(stream, 'response')) as [IncomingMessage]
          return statusCode
        },
        { timeout: patience },
      )
      .toBe(200)
  const idOf = ({ params }: Message) =>
    (params?._meta as Params | undefined)?.['io.modelcontextprotocol/subscriptionId']

  test.each(['stdio 2026-07-28', 'http 2026-07-28'] as const)(
    'carries the exact id of its request, number or string, over %s (SB04)',
    async (name) => {
      const wire = arena.wire(name)
      const ids = [4711, '4711', 'a b', '🗄️', -1, 0, '', Number.MAX_SAFE_INTEGER]
      const heard: Message[] = []
      const close = ids.map((id) => {
        const params = listenParams([uriOf('abc')])
        if (!isStdio(wire)) return openStream(wire, { method: 'POST', id, params }, (message) => heard.push(message))
        void wire.pipe.write(`${JSON.stringify({ jsonrpc: '2.0', id, method: 'subscriptions/listen', params })}\n`)
        return undefined
      })
      const untap = isStdio(wire) ? wire.pipe.tap((message) => heard.push(message)) : () => {}
      const idsOf = (method: string) => heard.filter((message) => message.method === method).map(idOf)
      const told = (method: string) => new Set(idsOf(method))
      const acknowledged = 'notifications/subscriptions/acknowledged'
      await until(
        () => told(acknowledged).size,
        (size) => size === ids.length,
        patience,
      )
      expect(told(acknowledged)).toEqual(new Set(ids))
      write('abc', `${Math.random()}\n`)
      const updated = 'notifications/resources/updated'
      await until(
        () => told(updated).size,
        (size) => size === ids.length,
        patience,
      )
      expect(told(updated)).toEqual(new Set(ids))
      if (isStdio(wire)) {
        const params = listenParams([uriOf('abc')])
        // Of one that is in flight there cannot be another; one of the other type ends nothing.
        expect((await wire.call('subscriptions/listen', params, { id: 4711 })).message?.error?.code).toBe(-32600)
        await wire.notify('notifications/cancelled', { requestId: '4711' })
        heard.splice(0)
        write('abc', 'abc\n')
        await until(
          () => told(updated).size,
          (size) => size === ids.length - 1,
          patience,
        )
        expect(told(updated)).toEqual(new Set(ids.filter((id) => id !== '4711')))
        for (const id of ids) await wire.notify('notifications/cancelled', { requestId: id })
      }
      untap()
      for (const stream of close) stream?.destroy()
    },
  )

  test('is refused with the limit if it requests too many different URIs, and counts a repeated URI once (SB01)', async () => {
    for (const name of ['stdio 2026-07-28', 'http 2026-07-28'] as const) {
      const wire = await clientOf(name)
      for (const count of [most.perSubscription + 1, 100_000]) {
        const uris = Array.from({ length: count }, (_, i) => `n:${i}`)
        const { message, status } = await arena.ask(wire, 'subscriptions/listen', listenParams(uris))
        expect(message?.error).toMatchObject({
          code: -32602,
          data: { reason: 'too-many', limit: most.perSubscription, of: 'subscription' },
        })
        // To try again later would not help.
        if (!isStdio(wire)) expect(status).toBe(200)
      }
      // The same one, again and again, is one.
      const ear = await hear(
        wire,
        Array.from({ length: 20_000 }, () => uriOf('a.txt')),
      )
      expect(ear.honoured).toEqual([uriOf('a.txt')])
    }
  })

  test('is refused, with a time to retry, beyond the maximum number of streams of a client, until one ends (SB01, HT22)', async () => {
    const wire = await clientOf('http 2026-07-28')
    const heard: Message[] = []
    const streams = Array.from({ length: 30 }, (_, id) =>
      openStream(wire, { method: 'POST', id, params: listenParams([uriOf('a.txt')]) }, (message) =>
        heard.push(message),
      ),
    )
    opened.push(async () => streams.map((stream) => stream.destroy()))
    await until(
      () => heard.length,
      (length) => length === 30,
      patience,
    )
    const before = arena.http.facts()
    const refusals = new Map<string, number>()
    const ask = async () => {
      const body = JSON.stringify({
        ...{ jsonrpc: '2.0', id: 1, method: 'subscriptions/listen' },
        params: listenParams([uriOf('a.txt')]),
      })
      const answer = send(arena.http, arena.world, { headers: modernHeaders('subscriptions/listen', {}), body })
      const { status, message, headers } = await answer
      const retry = headers?.find(([name]) => name === 'retry-after')?.[1]
      const key = JSON.stringify([status, message?.error?.code, message?.error?.data, Number(retry) > 0])
      refusals.set(key, (refusals.get(key) ?? 0) + 1)
    }
    // All that is left; the other clients of the arena have some, too.
    const fill = Array.from({ length: most.subscriptions }, (_, id) =>
      openStream(wire, { method: 'POST', id: `f${id}`, params: listenParams([]) }, () => {}),
    )
    opened.push(async () => fill.map((stream) => stream.destroy()))
    const responses = await Promise.all(
      fill.map(async (stream) => (await once(stream, 'response')) as [IncomingMessage]),
    )
    const honoured = responses.filter(([{ statusCode }]) => statusCode === 200)
    expect(honoured.length).toBeGreaterThan(0)
    expect(honoured.length + streams.length).toBeLessThanOrEqual(most.subscriptions)
    const flood = Promise.all(
      Array.from({ length: 20 }, async () => {
        for (let i = 0; i < 50; i++) await ask()
      }),
    )
    await control(arena.wire('http 2025-11-25'))
    await flood
    const data = { reason: 'too-many', limit: most.subscriptions, of: 'client' }
    expect([...refusals]).toEqual([[JSON.stringify([429, -32602, data, true]), 1000]])
    expect(arena.http.facts().resident - before.resident).toBeLessThan(150)
    // Those that are open go on.
    heard.splice(0)
    write('a.txt', `${Math.random()}\n`)
    await until(
      () => heard.length,
      (length) => length >= 30,
      patience,
    )
    expect(heard.length).toBeGreaterThanOrEqual(30)
    for (const stream of [...streams, ...fill]) stream.destroy()
    // Each that ends makes room.
    await isHonoured(wire, [uriOf('a.txt')])
  })

  test('is refused if its client would have too many URIs over all its streams (SB01)', async () => {
    const wire = await clientOf('http 2026-07-28')
    const uris = (prefix: string, count: number) => Array.from({ length: count }, (_, i) => uriOf(`${prefix}${i}`))
    const first = await hear(wire, uris('a', most.perSubscription))
    const { message, status } = await arena.ask(
      wire,
      'subscriptions/listen',
      listenParams(uris('b', most.perPrincipal - most.perSubscription + 1)),
    )
    expect(status).toBe(429)
    expect(message?.error?.data).toMatchObject({ limit: most.perPrincipal, of: 'client' })
    await first.close()
    // What one stream had is free once it is over.
    await isHonoured(wire, uris('b', most.perSubscription))
  })
})

describe('a client that sends a flood of subscriptions', () => {
  const subscribes = (from: number, count: number) =>
    Array.from({ length: count }, (_, i) => ({
      ...{ jsonrpc: '2.0', id: `s${from + i}`, method: 'resources/subscribe' },
      params: { uri: uriOf(`flood/${from + i}`) },
    }))
  const flooding = volumeOf(50_000, 30_000)
  const piped = volumeOf(8000, 4000)
  /** Long enough on a machine that has much else to do. */
  const whole = 400_000

  function judge(messages: readonly Message[], outcome: Map<string, number>): void {
    for (const { result, error } of messages) {
      const key = result === undefined ? JSON.stringify([error?.code, error?.data?.reason]) : 'honoured'
      outcome.set(key, (outcome.get(key) ?? 0) + 1)
    }
  }
  const expected = (count: number) =>
    new Map([
      ['honoured', most.perSubscription],
      ['[-32602,"too-many"]', count - most.perSubscription],
    ])

  test(
    'over stdio gets an answer to each, and makes memory grow by less than 200 MiB (SB01)',
    async () => {
      const target = await startConfigured(arena.world, 'stdio', configOf(arena.world))
      opened.push(target.stop)
      const wire = await openStdio(target, arena.world, legacy)
      await control(wire)
      const before = target.facts().resident
      const outcome = new Map<string, number>()
      for (let from = 0; from < piped; from += 4000) {
        const calls = subscribes(from, 4000)
        void wire.pipe.write(calls.map((call) => `${JSON.stringify(call)}\n`).join(''))
        for (const { id } of calls) judge([(await wire.pipe.answerTo(id)).message ?? {}], outcome)
      }
      expect(outcome).toEqual(expected(piped))
      expect(target.facts().resident - before).toBeLessThan(200)
      await control(wire)
    },
    whole,
  )

  test(
    'over HTTP is refused beyond the limit, and another client is served and notified meanwhile (SB01)',
    async () => {
      const wire = await openHttp(arena.http, arena.world, '2025-03-26')
      opened.push(wire.close)
      const other = await clientOf('http 2026-07-28')
      const ear = await hear(other, [uriOf('a.txt')])
      const before = arena.http.facts().resident
      const outcome = new Map<string, number>()
      let done = false
      let next = 0
      const client = async () => {
        while (next < flooding) {
          const body = JSON.stringify(subscribes(next, 50))
          next += 50
          const { message } = await send(arena.http, arena.world, {
            headers: { ...jsonHeaders, ...sessionHeaders(wire) },
            body,
          })
          if (!Array.isArray(message)) throw new Error(JSON.stringify(message))
          judge(message, outcome)
        }
      }
      const flood = Promise.all(Array.from({ length: 8 }, client)).finally(() => {
        done = true
      })
      let served = 0
      while (!done) {
        await control(other)
        write('a.txt', `${served}\n`)
        ear.forget()
        await ear.until(uriOf('a.txt'))
        served++
      }
      await flood
      expect(outcome).toEqual(expected(flooding))
      // It was served all the while, not only before and after.
      expect(served).toBeGreaterThan(3)
      expect(arena.http.facts().resident - before).toBeLessThan(250)
      write('a.txt', 'alpha\n')
    },
    whole,
  )
})

describe('a subscriber that does not read', () => {
  const touch = () => write(deepPath, `${Math.random()}\n`)

  test('is disconnected with more than 1 MiB of pending changes, and makes memory grow by less than 150 MiB (HT23)', async () => {
    const wire = await clientOf('http 2026-07-28')
    const uris = spellings(180)
    expect(uris.join('').length).toBeGreaterThan(1024 * 1024)
    const { resident } = arena.http.facts()
    let largest = 0
    for (let round = 0; round < 2; round++) {
      const before = new Set(arena.http.facts().open)
      const sockets = await Promise.all([pausedStream(wire, uris), pausedStream(wire, uris)])
      const open = () => arena.http.facts().open.filter((name) => name.startsWith('socket:') && !before.has(name))
      expect(open().length).toBeGreaterThanOrEqual(2)
      for (let i = 0; i < 300 && open().length > 0; i++) {
        touch()
        await sleep(100)
        largest = Math.max(largest, arena.http.facts().resident)
      }
      expect(open(), 'what stays open').toEqual([])
      for (const socket of sockets) socket.destroy()
    }
    // Two readers of 1.2 MB in each round: what they asked for, what waits, and what is on its way.
    expect(largest - resident).toBeLessThan(150)
    await control(wire)
  })

  test('is not confused with a subscriber that reads, which may get more than 1 MiB at once (HT23)', async () => {
    for (const name of ['http 2026-07-28', 'stdio 2026-07-28'] as const) {
      const uris = spellings(180)
      const ear = await hear(await clientOf(name), uris)
      for (let i = 0; i < 3; i++) {
        ear.forget()
        touch()
        await ear.until(...uris)
      }
    }
  })

  test.each(['stdio 2026-07-28', 'stdio 2025-11-25'] as const)(
    'is disconnected over %s: on 2026-07-28 with an error, on 2025-11-25 by the end of the server (HT23)',
    async (name) => {
      const target = await startConfigured(arena.world, 'stdio', configOf(arena.world))
      opened.push(target.stop)
      const wire = await openStdio(target, arena.world, name.endsWith(modern) ? modern : legacy)
      const uris = spellings(180)
      await listen(wire, uris)
      const { resident } = target.facts()
      const end = wire.modern ? wire.pipe.answerTo(`ear-${ears()}`, 100_000) : target.exited
      let isOver = false
      const over = () => {
        isOver = true
      }
      void Promise.resolve(end).then(over, over)
      let largest = 0
      while (!isOver) {
        wire.pipe.pause()
        for (let i = 0; i < 10; i++) {
          touch()
          await sleep(100)
          if (target.isAlive()) largest = Math.max(largest, target.facts().resident)
        }
        // What was written is read now, the last word included.
        wire.pipe.resume()
        await sleep(200)
      }
      expect(largest - resident).toBeLessThan(150)
      // A stream of its own ends by itself; before there were such, all that can be ended is the pipe.
      const last = await end
      if (typeof last !== 'object') return expect(last).toBe(0)
      expect(last.message?.error).toMatchObject({ code: -32603, data: { reason: 'too-slow' } })
      await control(wire)
    },
  )
})

describe('the limit of watches', () => {
  requiresWatchLimit()('of the system', () => {
    test('is reported in the log and at /readyz when it is reached, and changes are still noticed (SB16)', async () => {
      const { mounts, ...rest } = configOf(arena.world)
      const config = { ...rest, mounts: { [arena.world.address]: { ...mounts[arena.world.address], reconcile: '1s' } } }
      const target = await startConfigured(arena.world, 'http', config, withWatches(3))
      opened.push(target.stop)
      const readiness = async () => (await send(target, arena.world, { method: 'GET', path: '/readyz' })).message
      expect(await readiness()).toEqual({ status: 'ready' })
      const wire = await openHttp(target, arena.world)
      opened.push(wire.close)
      const ear = await hear(wire, [uriOf('a.txt'), uriOf('dir/sub/deep.txt')])
      expect(ear.honoured).toHaveLength(2)
      await expect.poll(readiness, { timeout: patience }).toEqual({ status: 'ready', degraded: { limited: 1 } })
      const line = /warn +not every directory can be watched.*/.exec(target.errors())?.[0]
      expect(line).toContain(`mount=${arena.world.address}`)
      expect(line).toContain('reason=ENOSPC')
      write('a.txt', `${Math.random()}\n`)
      write('dir/sub/deep.txt', `${Math.random()}\n`)
      await ear.until(uriOf('a.txt'), uriOf('dir/sub/deep.txt'))
      write('a.txt', 'alpha\n')
    })
  })
})

describe('a peer that disappears without closing', () => {
  const impatient = () => ({ ...configOf(arena.world), http: { limits: { body: '4MiB', stalled: '2s' } } })
  const sockets = (target: Target) => target.facts().open.filter((name) => name.startsWith('socket:'))

  test('is disconnected when it stops reading, even below the limit of pending data (HT24)', async () => {
    const target = await startConfigured(arena.world, 'http', impatient())
    opened.push(target.stop)
    const wire = await openHttp(target, arena.world)
    opened.push(wire.close)
    await control(wire)
    const before = new Set(sockets(target))
    const uris = spellings(100)
    expect(uris.join('').length).toBeLessThan(1024 * 1024)
    const socket = await pausedStream(wire, uris)
    opened.push(async () => socket.destroy())
    const open = () => sockets(target).filter((name) => !before.has(name))
    expect(open().length).toBeGreaterThan(0)
    const touching = setInterval(() => write(deepPath, `${Math.random()}\n`), 100)
    const left = await until(open, ({ length }) => length === 0, 3 * patience)
    clearInterval(touching)
    expect(left).toEqual([])
    await control(wire)
  })

  const network = `hikidashi-${process.pid}`
  const canSeparate = () => {
    try {
      execFileSync('ip', ['netns', 'add', network], { stdio: 'ignore' })
      execFileSync('ip', ['netns', 'del', network], { stdio: 'ignore' })
      return true
    } catch {
      return false
    }
  }
  requires(
    'netns',
    canSeparate(),
    'no network of its own can be made',
  )('in a network that breaks', () => {
    test('is disconnected, and its socket is closed (HT24)', async () => {
      const within = ['ip', 'netns', 'exec', network]
      const ip = (...args: readonly string[]) => execFileSync('ip', args, { stdio: 'ignore' })
      ip('netns', 'add', network)
      opened.push(async () => ip('netns', 'del', network))
      ip('-n', network, 'link', 'set', 'lo', 'up')
      const target = await startConfigured(arena.world, 'http', impatient(), within)
      opened.push(target.stop)
      const before = new Set(sockets(target))
      const body = JSON.stringify({
        ...{ jsonrpc: '2.0', id: 1, method: 'subscriptions/listen' },
        params: listenParams([uriOf('a.txt')]),
      })
      const code = `const [url, headers, body] = process.argv.slice(1)
        require('http').request(url, { method: 'POST', headers: JSON.parse(headers) }, (response) =>
          response.on('data', (chunk) => process.stdout.write(chunk))).end(body)`
      const headers = JSON.stringify(modernHeaders('subscriptions/listen', {}))
      const [command = '', ...args] = [...within, process.execPath, '-e', code, String(target.url), headers, body]
      const client = spawn(command, args, { stdio: ['ignore', 'pipe', 'inherit'] })
      opened.push(async () => client.kill('SIGKILL'))
      let heard = ''
      client.stdout.on('data', (chunk) => {
        heard += chunk
      })
      const hears = async (pattern: RegExp) => {
        await until(
          () => heard,
          (text) => pattern.test(text),
          patience,
        )
        expect(heard).toMatch(pattern)
      }
      await hears(/acknowledged/)
      write('a.txt', `${Math.random()}\n`)
      await hears(/updated/)
      const open = () => sockets(target).filter((name) => !before.has(name))
      expect(open()).toHaveLength(1)
      ip('-n', network, 'link', 'set', 'lo', 'down')
      write('a.txt', `${Math.random()}\n`)
      expect(await until(open, ({ length }) => length === 0, patience)).toEqual([])
      ip('-n', network, 'link', 'set', 'lo', 'up')
      expect(target.isAlive()).toBe(true)
      write('a.txt', 'alpha\n')
    })
  })
})

describe('a session that is resumed (up to 2025-11-25)', () => {
  const updated = 'notifications/resources/updated'
  /** Opens the stream of a session, and gathers what comes on it with its ids. */
  const attach = (wire: Wire, lastId?: string) => {
    const [messages, ids]: [Message[], string[]] = [[], []]
    const headers = lastId === undefined ? {} : { 'last-event-id': lastId }
    const asked = { method: 'GET', headers, onId: (id: string) => void ids.push(id) } as const
    const stream = openStream(wire, asked, (message) => messages.push(message))
    const response = once(stream, 'response') as Promise<[IncomingMessage]>
    response.catch(() => {})
    opened.push(async () => stream.destroy())
    return { messages, ids, stream, status: async () => (await inTime(response, 'the stream'))[0].statusCode }
  }

  test('gets no message of another session, and all of its own, for a forged event id or one of another session (SB02)', async () => {
    const [mine, theirs] = [await clientOf('http 2025-11-25'), await clientOf('http 2025-11-25')]
    await arena.ask(mine, 'resources/subscribe', { uri: uriOf('a.txt') })
    await arena.ask(theirs, 'resources/subscribe', { uri: uriOf('abc') })
    const own = attach(mine)
    const other = attach(theirs)
    write('a.txt', `${Math.random()}\n`)
    write('abc', `${Math.random()}\n`)
    const has = (messages: readonly Message[], uri: string) =>
      messages.some(({ method, params }) => method === updated && params?.uri === uri)
    await until(
      () => has(own.messages, uriOf('a.txt')) && has(other.messages, uriOf('abc')),
      (both) => both,
      patience,
    )
    const [id = '', foreign = ''] = [own.ids.at(-1), other.ids.at(-1)]
    const prefix = id.slice(0, id.lastIndexOf('-') + 1)
    const forged = [
      foreign,
      'x',
      '1',
      '-1',
      prefix,
      `${prefix}-1`,
      `${prefix}99999999999999999999`,
      `${prefix}NaN`,
      `${prefix}Infinity`,
      `${prefix}0x1`,
      `${prefix}1e3`,
      `${prefix}1.5`,
      'y'.repeat(8000),
      '__proto__',
      `${foreign.slice(0, -1)}0`,
    ]
    let last = own
    for (const lastId of forged) {
      last.stream.destroy()
      const again = attach(mine, lastId)
      expect(await again.status(), lastId.slice(0, 100)).toBe(200)
      // Whoever does not know what it saw last is told everything again.
      await until(
        () => has(again.messages, uriOf('a.txt')),
        (told) => told,
        patience,
      )
      expect(has(again.messages, uriOf('a.txt')), lastId.slice(0, 100)).toBe(true)
      expect(has(again.messages, uriOf('abc')), lastId.slice(0, 100)).toBe(false)
      last = again
    }
    // The id of one session is no key to another, nor is it a session.
    last.stream.destroy()
    const stolen = openStream(
      { ...mine, modern: true },
      { method: 'GET', headers: { 'mcp-session-id': id, 'last-event-id': id } },
      () => {},
    )
    let status: number | undefined
    stolen.on('response', (response) => {
      status = response.statusCode
      response.resume()
    })
    expect(
      await until(
        () => status,
        (code) => code !== undefined,
        patience,
      ),
    ).toBe(404)
    write('a.txt', 'alpha\n')
    write('abc', 'abc\n')
  })

  test('has one open stream, however often it is requested (HT22)', async () => {
    const wire = await clientOf('http 2025-11-25')
    const first = attach(wire)
    expect(await first.status()).toBe(200)
    const before = arena.http.facts().descriptors
    for (let i = 0; i < 20; i++) expect(await attach(wire).status()).toBe(409)
    // Who says what it saw takes the place of the stream before.
    for (let i = 0; i < 20; i++) expect(await attach(wire, `${i}`).status()).toBe(200)
    const after = await until(
      () => arena.http.facts().descriptors,
      (count) => count <= before + 5,
      15_000,
    )
    expect(after).toBeLessThanOrEqual(before + 5)
  })
})

/** A stream that is read until it is acknowledged, and then not any more. */
function pausedStream(wire: Wire, uris: readonly string[]): Promise<Socket> {
  const { hostname, port, pathname, host } = wire.target.url as URL
  const request = { jsonrpc: '2.0', id: 1, method: 'subscriptions/listen', params: listenParams(uris) }
  const body = JSON.stringify(request)
  const socket = connect(Number(port), hostname)
  socket.on('error', () => {})
  const headers = { host, ...modernHeaders('subscriptions/listen', {}), 'content-length': body.length }
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  socket.write(`POST ${pathname} HTTP/1.1\r\n${lines.join('')}\r\n${body}`)
  const acknowledged = new Promise<Socket>((resolve) => {
    let text = ''
    socket.on('data', (chunk) => {
      text = (text + chunk.toString('latin1')).slice(-4_000_000)
      if (!/acknowledged[^\n]*\n\n/.test(text)) return
      socket.pause()
      resolve(socket)
    })
  })
  return inTime(acknowledged, 'the acknowledgement')
}
