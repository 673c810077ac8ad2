import {
  CreateBucketCommand,
  DeleteBucketPolicyCommand,
  DeleteObjectCommand,
  PutBucketPolicyCommand,
  PutObjectCommand,
  S3Client,
} from '@aws-sdk/client-s3'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { comparePaths } from '../../src/core/path.ts'
import type { Context, Provider } from '../../src/core/provider.ts'
import { iterateChildren } from '../../src/core/tree.ts'
import { s3 } from '../../src/providers/s3/index.ts'
import { describeProvider } from '../../src/testing/index.ts'
import { polled } from '../../src/wrap/polled.ts'
import { type Ceph, cephReason, hasCeph, startCeph } from '../support/ceph.ts'
import { startDatabaseProxy } from '../support/database-proxy.ts'
import { freeze } from '../support/freeze.ts'
import { expectedObjects, heldObjects } from '../support/object-samples.ts'
import { isRequired, requires, type Suite } from '../support/require.ts'
import { isThorough } from '../support/volume.ts'

// A machine with other work takes its time.
vi.setConfig({ testTimeout: 120_000 })

// Ceph takes a processor five seconds to start. The other way to run the same suite, on a stand-in, is `s3.test.ts`.
const suite: Suite =
  isThorough || isRequired('ceph')
    ? requires('ceph', hasCeph, cephReason)
    : (title, tests) => describe.skip(`${title} (skipped: only where at least a quarter of the volume is run)`, tests)
const context: Context = { principal: { id: 'test', roles: [] }, signal: new AbortController().signal }
const bucket = 'drawer'
const other = { accessKeyId: 'AKIDOTHER', secretAccessKey: 'secret-of-somebody-else' }

let ceph: Ceph
let client: S3Client
let opened: Provider[] = []

const put = (Key: string, content: string | Uint8Array) =>
  client.send(new PutObjectCommand({ Bucket: bucket, Key, Body: Buffer.from(content) }))

const open = async (options: Partial<Parameters<typeof s3>[0]> = {}) => {
  const provider = await s3({ bucket, endpoint: ceph.url, keys: ceph.keys, ...options })
  opened.push(provider)
  return provider
}

const read = async (provider: Provider, path: string) => {
  const [content] = await provider.read({ path, params: new Map() }, context)
  return content !== undefined && 'text' in content ? content.text : undefined
}

const listed = async (provider: Provider, prefix = '') => {
  const paths: string[] = []
  for await (const { path } of provider.list({ prefix }, context)) paths.push(path)
  return paths
}

/** Tries until it answers, as a client does. */
const recovered = async (provider: Provider, path: string, within: number) => {
  const until = Date.now() + within
  for (;;) {
    try {
      return await read(provider, path)
    } catch (error) {
      if (Date.now() > until) throw error
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  }
}

suite('the provider s3 with a gateway of Ceph', () => {
  beforeAll(async () => {
    ceph = await startCeph()
    client = new S3Client({ endpoint: ceph.url, region: 'us-east-1', forcePathStyle: true, credentials: ceph.keys })
    await client.send(new CreateBucketCommand({ Bucket: bucket }))
    await ceph.admin(
      ...['user', 'create', '--uid=other', '--display-name=other'],
      ...[`--access-key=${other.accessKeyId}`, `--secret-key=${other.secretAccessKey}`],
    )
    const entries = Object.entries(heldObjects)
    // Many at once, and not all.
    for (let at = 0; at < entries.length; at += 50)
      await Promise.all(entries.slice(at, at + 50).map(([key, content]) => put(key, content)))
  }, 300_000)
  afterAll(async () => {
    await Promise.all(opened.map((provider) => provider.close?.()))
    opened = []
    client?.destroy()
    await ceph?.close()
  }, 60_000)

  describeProvider(
    { describe: (name, body) => suite(name, body), test },
    'the provider s3',
    async () => ({
      provider: await s3({ bucket, endpoint: ceph.url, keys: ceph.keys }),
      expectation: expectedObjects,
    }),
    { samples: 6, timeoutMs: 30_000 },
  )

  test('lists each directory once in its parent, and resumes after any path', async () => {
    const provider = await open()
    const childrenOf = async (directory: string, after?: string) => {
      const paths: string[] = []
      for await (const { path } of iterateChildren((query) => provider.list(query, context), directory, after))
        paths.push(path)
      return paths
    }
    const expected = [...new Set(Object.keys(heldObjects).map((key) => key.replace(/\/.*$/s, '/')))].sort(comparePaths)
    expect(await childrenOf('')).toEqual(expected)
    for (const [at, path] of expected.entries()) expect(await childrenOf('', path)).toEqual(expected.slice(at + 1))
    expect(await childrenOf('a/')).toEqual(['a/b/'])
    expect(await provider.stat?.('a/b/', context)).toMatchObject({ path: 'a/b/' })
  })

  test('reports a wrong secret and an unknown key as unavailable, with advice', async () => {
    const wrong = await open({ keys: { ...ceph.keys, secretAccessKey: 'wrong' } })
    for (const ask of [() => read(wrong, 'a.txt'), () => wrong.stat?.('a.txt', context), () => listed(wrong)])
      await expect(ask()).rejects.toMatchObject({ kind: 'unavailable', message: expect.stringMatching(/secret key/) })
    const unknown = await open({ keys: { accessKeyId: 'AKIDNOBODY', secretAccessKey: 'x' } })
    await expect(listed(unknown)).rejects.toMatchObject({
      kind: 'unavailable',
      message: expect.stringMatching(/access key/),
    })
  })

  test('treats unreadable objects as absent, and names the right or the bucket that a listing lacks', async () => {
    const provider = await open({ keys: other })
    await expect(read(provider, 'a.txt')).rejects.toMatchObject({ kind: 'not-found' })
    await expect(provider.stat?.('a.txt', context)).rejects.toMatchObject({ kind: 'not-found' })
    await expect(listed(provider)).rejects.toMatchObject({
      kind: 'unavailable',
      message: expect.stringMatching(/ListBucket/),
    })
    const nowhere = await open({ bucket: 'no-such-bucket' })
    await expect(listed(nowhere)).rejects.toMatchObject({
      kind: 'unavailable',
      message: expect.stringMatching(/bucket/),
    })
  })

  test('reads one version of an object that changes all the time, or gives up', async () => {
    const size = 300_000
    const provider = await open()
    let going = true
    const writing = (async () => {
      for (let i = 0; going; i++) await put('changing.txt', String(i % 10).repeat(size))
    })()
    try {
      await recovered(provider, 'changing.txt', 30_000)
      for (let i = 0; i < 40; i++) {
        const range = i % 2 === 0 ? undefined : { start: 100_000, end: 250_000 }
        const outcome = await provider
          .read({ path: 'changing.txt', params: new Map(), ...(range === undefined ? {} : { range }) }, context)
          .catch((error: unknown) => error)
        // It may give up; it may not mix.
        if (outcome instanceof Error) expect(outcome).toMatchObject({ kind: 'unavailable' })
        else {
          const [content] = outcome as Awaited<ReturnType<Provider['read']>>
          const text = content !== undefined && 'text' in content ? content.text : ''
          expect(text).toBe((text[0] ?? '').repeat(range === undefined ? size : 150_000))
        }
      }
    } finally {
      going = false
      await writing
      await client.send(new DeleteObjectCommand({ Bucket: bucket, Key: 'changing.txt' }))
    }
  })

  test('reports created, changed and deleted objects by polling', async () => {
    await put('live/kept', 'kept')
    await put('live/changed', 'before')
    await put('live/gone', 'gone')
    const abort = new AbortController()
    const changes = await polled(await open({ prefix: 'live' }), { intervalMs: 100 }).watch?.(abort.signal)
    await put('live/changed', 'after')
    await put('live/new', 'new')
    await client.send(new DeleteObjectCommand({ Bucket: bucket, Key: 'live/gone' }))
    const told = new Map<string | undefined, boolean | undefined>()
    for await (const { path, listed: isListed } of changes ?? []) {
      told.set(path, isListed)
      if (told.size === 3) break
    }
    abort.abort()
    expect(Object.fromEntries(told)).toEqual({ changed: undefined, new: true, gone: true })
  })

  test('loses access when a right is revoked, and has it back when it is granted again', async () => {
    const policy = JSON.stringify({
      Version: '2012-10-17',
      Statement: [
        {
          Effect: 'Allow',
          Principal: { AWS: ['arn:aws:iam:::user/other'] },
          Action: ['s3:ListBucket', 's3:GetObject'],
          Resource: [`arn:aws:s3:::${bucket}`, `arn:aws:s3:::${bucket}/*`],
        },
      ],
    })
    const grant = () => client.send(new PutBucketPolicyCommand({ Bucket: bucket, Policy: policy }))
    const provider = await open({ keys: other })
    await grant()
    try {
      expect(await recovered(provider, 'a.txt', 30_000)).toBe('dot')
      const all = await listed(provider)
      expect(all).toContain('a.txt')
      // While a listing is taken.
      const listing = provider.list({}, context)[Symbol.asyncIterator]()
      expect((await listing.next()).done).toBe(false)
      await client.send(new DeleteBucketPolicyCommand({ Bucket: bucket }))
      await listing.return?.()
      await expect(read(provider, 'a.txt')).rejects.toMatchObject({ kind: 'not-found' })
      await expect(provider.stat?.('a.txt', context)).rejects.toMatchObject({ kind: 'not-found' })
      await expect(listed(provider)).rejects.toMatchObject({
        kind: 'unavailable',
        message: expect.stringMatching(/ListBucket/),
      })
      await grant()
      expect(await recovered(provider, 'a.txt', 30_000)).toBe('dot')
      expect(await listed(provider)).toEqual(all)
    } finally {
      await client.send(new DeleteBucketPolicyCommand({ Bucket: bucket }))
    }
  })

  test('gives up on a network that passes single bytes, and leaves no connection open', async () => {
    const proxy = await startDatabaseProxy(Number(new URL(ceph.url).port), false)
    try {
      const provider = await open({ endpoint: `http://127.0.0.1:${proxy.port}`, timeoutMs: 1500 })
      expect(await recovered(provider, 'a.txt', 30_000)).toBe('dot')
      for (const pace of ['slow', 'stuck'] as const) {
        proxy.pace = pace
        const asked = [read(provider, 'a.txt'), listed(provider), provider.stat?.('a.txt', context)]
        for (const outcome of await Promise.allSettled(asked))
          expect(outcome).toMatchObject({ status: 'rejected', reason: { kind: 'unavailable' } })
        proxy.pace = 'free'
        expect(await recovered(provider, 'a.txt', 30_000)).toBe('dot')
        expect(await listed(provider, 'kana/')).toHaveLength(2)
      }
      // What is cut is asked for again.
      proxy.cut()
      expect(await recovered(provider, 'a.txt', 30_000)).toBe('dot')
      await provider.close?.()
      await expect.poll(() => proxy.open, { timeout: 30_000 }).toBe(0)
    } finally {
      await proxy.close()
    }
  })

  test('gives up on a frozen gateway, and continues when it is back', async () => {
    const provider = await open({ timeoutMs: 1500 })
    expect(await recovered(provider, 'a.txt', 30_000)).toBe('dot')
    await freeze(ceph.gateway.pid)
    try {
      await expect(read(provider, 'a.txt')).rejects.toMatchObject({ kind: 'unavailable' })
      await expect(listed(provider)).rejects.toMatchObject({ kind: 'unavailable' })
    } finally {
      process.kill(ceph.gateway.pid, 'SIGCONT')
    }
    expect(await recovered(provider, 'a.txt', 30_000)).toBe('dot')
  })

  test('reports that nothing listens when the gateway is gone, and continues when it is back', async () => {
    const provider = await open({ timeoutMs: 10_000 })
    expect(await recovered(provider, 'a.txt', 30_000)).toBe('dot')
    await ceph.gateway.stop()
    await expect(read(provider, 'a.txt')).rejects.toMatchObject({
      kind: 'unavailable',
      message: expect.stringMatching(/Nothing listens/),
    })
    await ceph.gateway.start()
    expect(await recovered(provider, 'a.txt', 30_000)).toBe('dot')
    expect(await listed(provider, 'kana/')).toHaveLength(2)
  })
})
