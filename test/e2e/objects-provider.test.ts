import { randomBytes } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { compileAccess } from '../../src/core/access.ts'
import { createCatalog } from '../../src/core/catalog.ts'
import { metaKeys } from '../../src/core/meta.ts'
import { runInSpan } from '../../src/core/trace.ts'
import { iterateChildren } from '../../src/core/tree.ts'
import { createObjectsProvider } from '../../src/providers/objects/provider.ts'
import type { ObjectStore } from '../../src/providers/objects/store.ts'
import { createGate } from '../../src/server/admission/gate.ts'
import { openLarge } from '../../src/server/protocol/large.ts'
import { checkProvider } from '../../src/testing/index.ts'
import { polled } from '../../src/wrap/polled.ts'
import { sliced } from '../../src/wrap/sliced.ts'
import { eventually } from '../support/authorized.ts'
import { sendGcsError } from '../support/gcs-stand-in.ts'
import { oddKeys } from '../support/object-samples.ts'
import { context, listAll, readOne, readText, type Subject, startSubject } from '../support/object-stores.ts'

// A machine with other work takes its time.
vi.setConfig({ testTimeout: 120_000 })

describe.each(['s3', 'gcs'] as const)('with %s as the object store,', (name) => {
  let store: Subject
  beforeEach(async () => {
    store = await startSubject(name)
  })
  afterEach(() => store.close())

  const fill = (count: number, prefix = 'many/') => {
    for (let i = 0; i < count; i++) store.table.put(`${prefix}${String(i).padStart(6, '0')}.txt`, `${i}`)
  }

  test('the trace of a caller is passed on to the store', async () => {
    store.table.put('a.txt', 'a')
    const provider = await store.open()
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
    const options = { kind: 'server', parent: { traceparent, tracestate: 'shop=1' } } as const
    expect(await runInSpan('read', options, () => readText(provider, 'a.txt'))).toBe('a')
    expect(store.requests.length).toBeGreaterThan(0)
    for (const { headers } of store.requests) expect(headers).toMatchObject({ traceparent, tracestate: 'shop=1' })
    store.requests.length = 0
    await readText(provider, 'a.txt')
    for (const { headers } of store.requests) expect(headers).not.toHaveProperty('traceparent')
  })

  describe('a listing', () => {
    test('fetches pages of a thousand keys, and from the second page on the next page ahead', async () => {
      fill(3500)
      const provider = await store.open()
      expect(await listAll(provider)).toHaveLength(3500)
      expect(store.requests.length).toBeLessThanOrEqual(4)
      store.requests.length = 0
      for await (const entry of provider.list({}, context)) if (entry.path.endsWith('000999.txt')) break
      expect(store.requests).toHaveLength(1)
      store.requests.length = 0
      for await (const { path } of provider.list({}, context)) {
        if (!path.endsWith('001200.txt')) continue
        // While the second page is taken, the third is fetched already.
        await expect.poll(() => store.requests.length, { timeout: 30_000 }).toBe(3)
        break
      }
      expect(store.requests).toHaveLength(3)
    })

    test('begins the next page with the keys that were fetched ahead, and stops fetching when its caller cancels', async () => {
      const asked: { readonly after: string | undefined; readonly signal: AbortSignal }[] = []
      const held = Array.from({ length: 3500 }, (_, i) => String(i).padStart(6, '0'))
      let blocked: Promise<void> | undefined
      const fake: ObjectStore = {
        page: async ({ after = '', limit }, signal) => {
          asked.push({ after, signal })
          if (after === held[1999]) await blocked
          const rest = held.filter((key) => key > after)
          const objects = rest.slice(0, limit).map((key) => ({ key, size: 1, version: key }))
          return { objects, more: rest.length > limit }
        },
        head: () => Promise.reject(new Error('not asked')),
        get: () => Promise.reject(new Error('not asked')),
        link: () => Promise.reject(new Error('not asked')),
        close: () => {},
      }
      const options = { prefix: '', maxBytes: 1, linkSeconds: 1, timeoutMs: 60_000, log: () => {} }
      const provider = createObjectsProvider(fake, options)
      for await (const { path } of provider.list({}, context)) if (path === '001500') break
      expect(asked.map(({ after }) => after)).toEqual(['', '000999', '001999'])
      const rest: string[] = []
      for await (const { path } of provider.list({ after: '001500' }, context)) rest.push(path)
      expect(rest).toEqual(held.slice(1501))
      // Only what was not known yet was asked for.
      expect(asked.map(({ after }) => after)).toEqual(['', '000999', '001999', '002999'])
      // A caller that is gone leaves nothing under way.
      blocked = new Promise(() => {})
      const controller = new AbortController()
      const listing = createObjectsProvider(fake, options).list({}, { ...context, signal: controller.signal })
      for await (const { path } of listing) if (path === '001500') break
      expect(asked.at(-1)).toMatchObject({ after: '001999' })
      expect(asked.at(-1)?.signal.aborted).toBe(false)
      controller.abort()
      expect(asked.at(-1)?.signal.aborted).toBe(true)
    })

    test('of 20,000 keys page by page takes fewer than 32 requests', async () => {
      fill(20_000)
      const catalog = createCatalog({ mounts: [{ address: 's3://drawer', provider: await store.open() }] })
      const view = catalog.view(context.principal)
      const seen: string[] = []
      let cursor: string | undefined
      do {
        const page = await view.list(cursor === undefined ? {} : { cursor })
        seen.push(...page.items.map(({ uri }) => uri))
        cursor = page.nextCursor
      } while (cursor !== undefined)
      expect(new Set(seen).size).toBe(20_000)
      expect(seen).toHaveLength(20_000)
      // What is kept between two pages is kept for a second: on a slow machine it may be asked for again.
      expect(store.requests.length).toBeLessThan(32)
    })

    test('that is resumed has the keys that were added meanwhile, once another listing has shown them', async () => {
      fill(1500)
      const provider = await store.open()
      const first: string[] = []
      for await (const { path } of provider.list({}, context)) if (first.push(path) === 500) break
      const after = first.at(-1) ?? ''
      store.table.put(`${after}-new`, 'new')
      // A listing of all, as a poll makes it, has seen it: nobody may be told less than that.
      expect((await listAll(provider)).map(({ path }) => path)).toContain(`${after}-new`)
      const [next] = await listAll(provider, { after })
      expect(next?.path).toBe(`${after}-new`)
    })

    test('of the children of a directory takes one request, however many keys are below them', async () => {
      for (let i = 0; i < 12; i++) fill(1000, `${i}/`)
      for (const key of ['0', '0-', '00', 'empty/', 'x/y', 'a//b', '/c']) store.table.put(key, key)
      const provider = await store.open()
      const found: string[] = []
      for await (const { path, entry } of iterateChildren((query) => provider.list(query, context), '')) {
        found.push(path)
        expect(entry === undefined).toBe(path.endsWith('/'))
      }
      const numbers = ['0', '0-', '0/', '00', '1/', '10/', '11/', '2/', '3/', '4/', '5/', '6/', '7/', '8/', '9/']
      expect(found).toEqual([...numbers, 'a/', 'empty/', 'x/'])
      expect(store.requests).toHaveLength(1)
      const after: string[] = []
      for await (const { path } of iterateChildren((query) => provider.list(query, context), '', '11/'))
        after.push(path)
      expect(after).toEqual([...numbers.slice(7), 'a/', 'empty/', 'x/'])
      // A folder in which there is nothing is there, as its owner made it.
      expect(await provider.stat?.('empty/', context)).toEqual({ path: 'empty/', mimeType: 'inode/directory' })
      await expect(provider.stat?.('none/', context)).rejects.toMatchObject({ kind: 'not-found' })
    })

    test('of thousands of directories takes one request for each thousand', async () => {
      for (let i = 0; i < 2500; i++) for (const name of ['a', 'b']) store.table.put(`d${i}/${name}`, 'x')
      const provider = await store.open()
      let count = 0
      for await (const _ of iterateChildren((query) => provider.list(query, context), '')) count++
      expect(count).toBe(2500)
      expect(store.requests).toHaveLength(3)
    })

    test('of a partly denied directory has only its allowed children, and takes fewer than 14 requests for 4,000 keys', async () => {
      for (let i = 0; i < 4; i++) fill(1000, `${i}/`)
      const access = compileAccess([{ allow: ['*'], match: ['0/**', '2/000001.txt'] }])
      const mounts = [{ address: 's3://drawer', provider: await store.open(), access }]
      const view = createCatalog({ mounts }).view(context.principal)
      const { items } = await view.directory({ uri: 's3://drawer/' })
      expect(items.map(({ uri }) => uri)).toEqual(
        ['s3://drawer/0/', 's3://drawer/2/'].map((uri) => uri.replace(/\/$/, '/')),
      )
      expect((await view.directory({ uri: 's3://drawer/2/' })).items).toHaveLength(1)
      expect(store.requests.length).toBeLessThan(14)
    })

    test('leaves out keys that are not paths, and logs so once with some of them', async () => {
      for (const key of oddKeys) store.table.put(key, 'odd')
      store.table.put('fine.txt', 'fine')
      const provider = await store.open()
      for (let i = 0; i < 3; i++) expect((await listAll(provider)).map(({ path }) => path)).toEqual(['fine.txt'])
      const warnings = provider.logged.filter(({ message }) => message.startsWith('keys that are not valid paths'))
      expect(warnings).toHaveLength(1)
      expect(warnings[0]?.fields).toMatchObject({ keys: oddKeys.length - 1, folders: 1 })
      const { examples = [] } = (warnings[0]?.fields ?? {}) as { examples?: string[] }
      expect(examples).toHaveLength(5)
      for (const example of examples) expect(example).toMatch(/^"[\x20-\x7e]+"$/)
    })

    test('that is polled reports an object whose version has changed', async () => {
      store.table.put('a.txt', 'before')
      store.table.put('b.txt', 'kept')
      const provider = polled(await store.open(), { intervalMs: 100 })
      const abort = new AbortController()
      const changes = await provider.watch?.(abort.signal)
      store.table.put('a.txt', 'after!')
      for await (const change of changes ?? []) {
        expect(change).toEqual({ path: 'a.txt' })
        break
      }
      abort.abort()
    })
  })

  describe('an object', () => {
    test('has the same size, type and version in stat and in a read; stat has its time, and a read its metadata', async () => {
      const modified = Date.UTC(2026, 10, 21, 12, 0, 5)
      store.table.put('report', '{"a":1}', {
        ...{ modified, contentType: 'application/json; charset=utf-8', metadata: { owner: 'ada' } },
        storageClass: 'STANDARD_IA',
      })
      const provider = await store.open()
      const entry = await provider.stat?.('report', context)
      expect(entry).toMatchObject({ path: 'report', size: 7, modified, mimeType: 'application/json' })
      const content = await readOne(provider, { path: 'report' })
      expect(content).toMatchObject({ text: '{"a":1}', mimeType: 'application/json', size: 7, version: entry?.version })
      expect(content.meta?.[metaKeys.object]).toMatchObject({ metadata: { owner: 'ada' }, storageClass: 'STANDARD_IA' })
    })

    test('is read with one request, and a part of it with at most two', async () => {
      store.table.put('long.txt', 'x'.repeat(100_000))
      const provider = await store.open()
      await readText(provider, 'long.txt')
      expect(store.requests).toHaveLength(1)
      store.requests.length = 0
      const part = await readOne(provider, { path: 'long.txt', range: { start: 50_000, end: 50_010 } })
      expect(part).toMatchObject({ text: 'x'.repeat(10), range: { start: 50_000, end: 50_010 }, size: 100_000 })
      expect(store.requests).toHaveLength(1)
      const fresh = await store.open()
      store.requests.length = 0
      await readOne(fresh, { path: 'long.txt', range: { start: 50_000, end: 50_010 } })
      expect(store.requests).toHaveLength(2)
    })

    test('that is larger than the limit is too large, and a part of it within the limit is not', async () => {
      store.table.put('large.bin', new Uint8Array(5000))
      const provider = await store.open({ maxBytes: 1000 })
      for (const range of [undefined, { start: 0 }, { start: 10, end: 3000 }])
        await expect(
          readOne(provider, { path: 'large.bin', ...(range === undefined ? {} : { range }) }),
        ).rejects.toMatchObject({ kind: 'too-large', detail: { size: 5000, limit: 1000 } })
      const part = await readOne(provider, { path: 'large.bin', range: { start: 4500, end: 9000 } })
      expect(part).toMatchObject({ range: { start: 4500, end: 5000 } })
      await expect(readOne(provider, { path: 'large.bin', range: { start: 5000, end: 5001 } })).rejects.toMatchObject({
        kind: 'invalid',
        detail: { reason: 'range', size: 5000 },
      })
    })

    test('that is too large releases its connection, however many there are', async () => {
      store.table.put('large.bin', new Uint8Array(1_000_000))
      const provider = await store.open({ maxBytes: 1000 })
      // More than there are connections.
      const reads = Array.from({ length: 40 }, () => readOne(provider, { path: 'large.bin' }))
      for (const outcome of await Promise.allSettled(reads))
        expect(outcome).toMatchObject({ reason: { kind: 'too-large' } })
      const part = await readOne(provider, { path: 'large.bin', range: { start: 0, end: 10 } })
      expect(part).toMatchObject({ size: 1_000_000 })
    })

    test('of many megabytes is refused until there is memory for it, and a smaller object is read with one request', async () => {
      const mib = 2 ** 20
      store.table.put('movie.bin', new Uint8Array(9 * mib))
      store.table.put('picture.bin', new Uint8Array(2 * mib))
      const provider = await store.open({ maxBytes: 16 * mib })
      const read = (path: string) => provider.read({ path, params: new Map() }, { ...context, most: mib / 2 })
      await expect(read('movie.bin')).rejects.toMatchObject({
        kind: 'too-large',
        detail: { fault: 'later', size: 9 * mib },
      })
      store.requests.length = 0
      expect(await read('picture.bin')).toMatchObject([{ size: 2 * mib }])
      expect(store.requests).toHaveLength(1)
      expect(await readOne(provider, { path: 'movie.bin' })).toMatchObject({ size: 9 * mib })
    })

    test('of many megabytes is read in parts while it is sent', async () => {
      const mib = 2 ** 20
      store.table.put('movie.bin', randomBytes(9 * mib + 1))
      const provider = sliced(await store.open({ maxBytes: 16 * mib }))
      const sending = { signal: context.signal, gate: createGate(4, 4), share: undefined, timeoutMs: 60_000 }
      const catalog = createCatalog({ mounts: [{ address: 'bucket://b', provider }] })
      store.requests.length = 0
      const [content] = (
        await catalog.view(context.principal).read('bucket://b/movie.bin', {
          room: async () => {},
          large: (size, read) => openLarge('bucket://b/movie.bin', size, read, sending),
        })
      ).contents
      if (content === undefined || !('stream' in content)) throw new Error('It is no stream.')
      expect(store.requests.length).toBeLessThan(4)
      const pieces: Uint8Array[] = []
      for await (const piece of content.stream) pieces.push(Buffer.from(piece))
      expect(Buffer.concat(pieces).equals(store.table.get('movie.bin')?.bytes ?? Buffer.alloc(0))).toBe(true)
      expect(store.requests.length).toBeGreaterThan(9)
      await catalog.close()
    })

    test('that is larger than the limit gets a link if links are on, and the link is not logged', async () => {
      store.table.put('large.txt', 'y'.repeat(200_000))
      const provider = await store.open({ maxBytes: 100_000, linkMs: 60_000 })
      const content = await readOne(provider, { path: 'large.txt' })
      expect(content).toMatchObject({ text: 'y'.repeat(65_536), range: { start: 0, end: 65_536 } })
      expect(content.meta).toMatchObject({ [metaKeys.truncated]: true, [metaKeys.size]: 200_000 })
      const { href = '', expires = '' } = (content.meta?.[metaKeys.link] ?? {}) as { href?: string; expires?: string }
      expect(Date.parse(expires) - Date.now()).toBeLessThanOrEqual(60_000)
      const response = await fetch(href)
      expect(response.status).toBe(200)
      expect(await response.text()).toBe('y'.repeat(200_000))
      const forged = await fetch(href.replace(/Expires=\d+/, 'Expires=3600'))
      expect(forged.status).toBe(403)
      expect(JSON.stringify(provider.logged)).not.toContain('Signature')
      // What is asked for in parts has no need of one.
      const part = await readOne(provider, { path: 'large.txt', range: { start: 0, end: 10 } })
      expect(part.meta?.[metaKeys.link]).toBeUndefined()
    })

    test('that the store does not hand out gives an error with the reason, and is no problem for a check of the mount', async () => {
      store.table.put('cold.txt', 'cold', { storageClass: 'GLACIER' })
      store.table.put('sealed.txt', 'sealed')
      const provider = await store.open()
      store.intercept = ({ method, path, query }, response) => {
        if (!path.endsWith('sealed.txt') || method !== 'GET') return false
        // Google gives the metadata of a sealed object without its key.
        if (name === 'gcs' && query.get('alt') !== 'media') return false
        if (name === 's3') {
          response.writeHead(400, { 'content-type': 'application/xml' })
          response.end('<Error><Code>InvalidRequest</Code><Message>SSE-C</Message></Error>')
        } else sendGcsError(response, 400, 'resourceIsEncryptedWithCustomerEncryptionKey')
        return true
      }
      await expect(readText(provider, 'sealed.txt')).rejects.toMatchObject({
        kind: 'invalid',
        detail: { reason: 'withheld' },
      })
      expect((await checkProvider(provider)).problems).toEqual([])
      // Google's archive is read at once.
      if (name === 'gcs') return expect(await readText(provider, 'cold.txt')).toBe('cold')
      await expect(readText(provider, 'cold.txt')).rejects.toMatchObject({
        kind: 'invalid',
        message: expect.stringMatching(/archived\. Restore it/),
        detail: { reason: 'withheld' },
      })
      expect((await provider.stat?.('cold.txt', context))?.size).toBe(4)
    })

    test('is read as one version even if it is replaced between two requests', async () => {
      store.table.put('a.txt', 'a'.repeat(20_000))
      let replaced = 0
      store.intercept = ({ headers }) => {
        // Once the part is there, and before its beginning is asked for.
        if (headers.range === 'bytes=0-8191' && replaced++ === 0) store.table.put('a.txt', 'b'.repeat(20_000))
        return false
      }
      const provider = await store.open()
      const content = await readOne(provider, { path: 'a.txt', range: { start: 10_000, end: 10_005 } })
      expect(content).toMatchObject({ text: 'bbbbb' })
      expect(replaced).toBe(2)
      store.intercept = ({ headers }) => {
        if (headers.range === 'bytes=0-8191') store.table.put('a.txt', `${Math.random()}`.padEnd(20_000))
        return false
      }
      const busy = await store.open()
      await expect(readOne(busy, { path: 'a.txt', range: { start: 10_000, end: 10_005 } })).rejects.toMatchObject({
        kind: 'unavailable',
        message: expect.stringMatching(/changes faster/),
      })
    })
  })

  describe('a store that', () => {
    test('throttles is asked again, a limited number of times', async () => {
      store.table.put('a.txt', 'a')
      let refused = 0
      store.intercept = (...args) => refused++ < 2 && store.throttle(...args)
      const provider = await store.open()
      expect(await readText(provider, 'a.txt')).toBe('a')
      store.intercept = store.throttle
      store.requests.length = 0
      await expect(listAll(provider)).rejects.toMatchObject({
        kind: 'unavailable',
        message: expect.stringMatching(/limits the rate of requests/),
      })
      expect(store.requests).toHaveLength(3)
    })

    test('truncates an answer is asked again, and no truncated content is served', async () => {
      store.table.put('a.txt', 'whole')
      let cut = 0
      const half: Subject['intercept'] = ({ method, path }, response) => {
        if (method !== 'GET' || !path.endsWith('a.txt')) return false
        cut++
        response.writeHead(200, { 'content-length': 5, etag: '"e"', 'x-goog-generation': '1' })
        response.write('who', () => response.destroy())
        return true
      }
      store.intercept = (...args) => cut < 1 && half(...args)
      const provider = await store.open()
      expect(await readText(provider, 'a.txt')).toBe('whole')
      expect(cut).toBe(1)
      store.intercept = half
      await expect(readText(provider, 'a.txt')).rejects.toMatchObject({ kind: 'unavailable' })
      expect(cut).toBe(4)
    })

    test('sends bytes that do not match their checksum causes an error, and the bytes are not served', async () => {
      store.table.put('a.txt', 'whole')
      store.intercept = ({ path }, response) => {
        if (!path.endsWith('a.txt')) return false
        const sums = { 'x-amz-checksum-crc32': 'AAAAAA==', 'x-goog-hash': 'crc32c=AAAAAA==' }
        response.writeHead(200, { 'content-length': 5, etag: '"e"', 'x-goog-generation': '1', ...sums })
        response.end('wrong')
        return true
      }
      const provider = await store.open()
      await expect(readText(provider, 'a.txt')).rejects.toMatchObject({ kind: 'unavailable' })
    })

    test('denies the permission to read makes an object absent, with the reason in the log only; if it denies the permission to list, the error of a listing says so', async () => {
      store.table.put('secret.txt', 'secret')
      store.forbidden.add('secret.txt')
      const provider = await store.open()
      for (let i = 0; i < 3; i++) {
        await expect(readText(provider, 'secret.txt')).rejects.toMatchObject({ kind: 'not-found' })
        await expect(provider.stat?.('secret.txt', context)).rejects.toMatchObject({ kind: 'not-found' })
      }
      expect(provider.logged.filter(({ message }) => message.includes('refuses access'))).toHaveLength(1)
      store.forbidden.add('list')
      await expect(listAll(provider)).rejects.toMatchObject({
        kind: 'unavailable',
        message: expect.stringMatching(/may not list/),
      })
    })

    test('never answers causes a time-out, after which reads succeed again', async () => {
      store.table.put('a.txt', 'a')
      const provider = await store.open({ timeoutMs: 600 })
      store.intercept = () => true
      const outcomes = await Promise.allSettled([
        readText(provider, 'a.txt'),
        provider.stat?.('a.txt', context),
        listAll(provider),
      ])
      for (const outcome of outcomes) expect(outcome).toMatchObject({ reason: { kind: 'unavailable' } })
      store.intercept = undefined
      // The machine may be as slow as the store was.
      await eventually(
        () => readText(provider, 'a.txt').catch(() => undefined),
        (text) => text === 'a',
      )
    })

    test('sends an answer one byte at a time causes a time-out', async () => {
      const provider = await store.open({ timeoutMs: 600 })
      const timers: NodeJS.Timeout[] = []
      store.intercept = (_, response) => {
        response.writeHead(200, { 'content-length': 1000, etag: '"e"', 'x-goog-generation': '1' })
        timers.push(setInterval(() => response.write('x'), 50))
        return true
      }
      try {
        await expect(readText(provider, 'a.txt')).rejects.toMatchObject({ kind: 'unavailable' })
        await expect(listAll(provider)).rejects.toMatchObject({ kind: 'unavailable' })
      } finally {
        timers.forEach(clearInterval)
      }
    })

    test('does not run causes an error that says that nothing listens at its endpoint', async () => {
      // Nobody listens at the first port of all.
      const provider = await store.open({ endpoint: 'http://127.0.0.1:1' })
      await expect(readText(provider, 'a.txt')).rejects.toMatchObject({
        kind: 'unavailable',
        message: 'Nothing listens at the endpoint. Start the store, or correct "endpoint".',
      })
    })

    test('does not answer gets no further request once the caller has cancelled', async () => {
      fill(10)
      const provider = await store.open()
      store.intercept = () => true
      for (const ask of [
        (signal: AbortSignal) => provider.read({ path: 'a', params: new Map() }, { ...context, signal }),
        (signal: AbortSignal) => provider.stat?.('a', { ...context, signal }),
        (signal: AbortSignal) =>
          provider
            .list({}, { ...context, signal })
            [Symbol.asyncIterator]()
            .next(),
      ]) {
        const abort = new AbortController()
        const before = store.requests.length
        const asked = ask(abort.signal)
        await expect.poll(() => store.requests.length, { timeout: 30_000 }).toBe(before + 1)
        abort.abort(new Error('gone'))
        await expect(asked).rejects.toThrow('gone')
        expect(store.requests).toHaveLength(before + 1)
      }
    })

    test('gets 200 reads at once gets at most 32 connections', async () => {
      store.table.put('a.txt', 'a')
      const open = new Set<unknown>()
      let most = 0
      store.intercept = (_, __, { socket }) => {
        if (!open.has(socket)) socket.once('close', () => open.delete(socket))
        most = Math.max(most, open.add(socket).size)
        return false
      }
      const provider = await store.open()
      await Promise.all(Array.from({ length: 200 }, () => readText(provider, 'a.txt')))
      expect(most).toBeGreaterThan(1)
      expect(most).toBeLessThanOrEqual(32)
    })
  })

  test('a closed provider answers no request', async () => {
    const provider = await store.open()
    await provider.close?.()
    await expect(readText(provider, 'a.txt')).rejects.toMatchObject({ kind: 'unavailable' })
    await expect(listAll(provider)).rejects.toMatchObject({ kind: 'unavailable' })
  })
})
