import { describe, expect, test } from 'vitest'
import type { ServerTarget } from '../../src/client/index.ts'
import type { Resource } from '../../src/core/view.ts'
// @ts-expect-error: the fixtures are JavaScript, since they run as programs of their own.
import { resources as held } from '../fixtures/mcp/data.mjs'
import {
  everything,
  failure,
  fixture,
  listen,
  open,
  serveOfficial,
  serveSessions,
  serveSse,
  uris,
} from '../support/mcp-servers.ts'

interface Kind {
  readonly target: () => Promise<ServerTarget>
  /** The revision that is agreed on. */
  readonly revision: string
}

const kinds: Readonly<Record<string, Kind>> = {
  'stdio (SDK 2)': { target: async () => fixture('official'), revision: '2026-07-28' },
  'stdio (SDK 1.24)': { target: async () => fixture('old', 'sdk124'), revision: '2025-11-25' },
  'stdio (SDK 1.13)': { target: async () => fixture('old', 'sdk113'), revision: '2025-06-18' },
  'stdio (SDK 1.12)': { target: async () => fixture('old', 'sdk112'), revision: '2025-03-26' },
  'stdio (SDK 1.0)': { target: async () => fixture('old', 'sdk100'), revision: '2024-11-05' },
  'Streamable HTTP (SDK 2)': { target: async () => ({ url: await listen(serveOfficial()) }), revision: '2026-07-28' },
  'Streamable HTTP (SDK 1.24)': {
    target: async () => ({ url: await listen(await serveSessions([])) }),
    revision: '2025-11-25',
  },
  'HTTP with SSE (SDK 1.12)': { target: async () => ({ url: await listen(await serveSse()) }), revision: '2025-03-26' },
}

for (const [name, { target, revision }] of Object.entries(kinds))
  describe(`a server over ${name}`, () => {
    const knowsTitles = revision >= '2025-06-18'

    test('is listed page by page, to the end, with the facts that its revision has', async () => {
      const view = await open(await target())
      expect(uris((await view.list()).items)).toHaveLength(2)
      const all = await everything(view)
      expect(uris(all)).toEqual(held.map(({ uri }: Resource) => uri))
      expect(all[0]).toMatchObject({
        name: 'a.md',
        description: 'A page',
        mimeType: 'text/markdown',
        size: 5,
        priority: 0.8,
        audience: ['user'],
      })
      if (knowsTitles)
        expect(all[0]).toMatchObject({ title: 'The first', modified: Date.UTC(2026, 0, 2, 3, 4, 5), version: 'v1' })
      if (revision >= '2025-11-25')
        expect(all[0]?.icons).toEqual([{ src: 'https://example.com/a.png', mimeType: 'image/png', sizes: ['48x48'] }])
    })

    test('is read with texts as text and binary contents as bytes', async () => {
      const view = await open(await target())
      const text = await view.read('file:///docs/a.md')
      expect(text.contents[0]).toMatchObject({ uri: 'file:///docs/a.md', mimeType: 'text/markdown', text: '# one' })
      if (knowsTitles) expect(text.contents[0]).toMatchObject({ version: 'v1', meta: { more: 1 } })
      const bytes = await view.read('file:///docs/sub/c.png')
      expect(bytes.contents).toEqual([
        { uri: 'file:///docs/sub/c.png', mimeType: 'image/png', bytes: Buffer.from([0x89, 0x50, 0x4e, 0x47]) },
      ])
      expect((await view.read('file:///docs/sub/b.md')).contents).toEqual([{ uri: 'file:///docs/sub/b.md', text: '' }])
    })

    test('gives answers with its cache times, or without any before revision 2026-07-28', async () => {
      const view = await open(await target())
      const cache = revision === '2026-07-28' ? { ttlMs: 5000, scope: 'public' } : { ttlMs: 0, scope: 'private' }
      expect((await view.list()).cache).toEqual(cache)
      expect((await view.read('memo://today')).cache).toEqual(cache)
    })

    test('answers "not found" for an absent resource', async () => {
      const view = await open(await target())
      expect((await failure(view.read('file:///docs/none'))).kind).toBe('not-found')
      expect((await failure(view.directory({ uri: 'file:///none/' }))).kind).toBe('not-found')
    })

    test('lists and completes templates', async () => {
      const view = await open(await target())
      expect((await view.templates()).items[0]).toMatchObject({ uriTemplate: 'file:///docs/{+path}', name: 'page' })
      const request = {
        uriTemplate: 'file:///docs/{+path}',
        argument: { name: 'path', value: 'a' },
        arguments: new Map([['other', 'x']]),
      }
      const values = knowsTitles ? ['a1', 'other=x'] : ['a1']
      expect(await view.complete(request)).toEqual({ values, total: values.length, hasMore: false })
    })

    test('is shown as a tree that is built from its listing', async () => {
      const view = await open(await target())
      const mounts = await view.mounts()
      expect(mounts.map(({ uri, mimeType }) => [uri, mimeType])).toEqual([
        ['file:///docs/', 'inode/directory'],
        ['memo://', 'inode/directory'],
      ])
      const top = (await view.directory({ uri: 'file:///docs/' })).items
      expect(uris(top)).toEqual(['file:///docs/%E6%97%A5.txt', 'file:///docs/a.md', 'file:///docs/sub/'])
      expect(top[2]).toEqual({ uri: 'file:///docs/sub/', name: 'sub', mimeType: 'inode/directory' })
      expect(uris((await view.directory({ uri: 'file:///docs/sub' })).items)).toEqual([
        'file:///docs/sub/b.md',
        'file:///docs/sub/c.png',
      ])
      expect(uris((await view.directory({ uri: 'memo://' })).items)).toEqual(['memo://today'])
      expect(await failure(view.directory({ uri: 'file:///docs/a.md' }))).toMatchObject({
        kind: 'invalid',
        detail: { reason: 'not-a-directory' },
      })
    })

    test('is no longer waited for when the caller cancels', async () => {
      const view = await open(await target())
      await expect(view.list({}, { signal: AbortSignal.abort(new Error('enough')) })).rejects.toThrow('enough')
      const abort = new AbortController()
      const reading = view.read('memo://today', { signal: abort.signal })
      abort.abort(new Error('enough'))
      await expect(reading).rejects.toThrow('enough')
      expect((await view.read('memo://today')).contents).toHaveLength(1)
    })
  })

describe('errors of a server', () => {
  test('about the request keep their message and data', async () => {
    const view = await open(fixture('official'))
    expect(await failure(view.read('invalid:'))).toMatchObject({
      kind: 'invalid',
      message: 'Bad URI',
      detail: { reason: 'uri', limit: 3 },
    })
  })

  test('that are its own faults get the kind "internal", and a message of one line', async () => {
    const view = await open(fixture('official'))
    expect(await failure(view.read('broken:'))).toMatchObject({
      kind: 'internal',
      message: 'resources/read failed: Something broke',
    })
  })

  test('about unknown cursors get the kind "invalid"', async () => {
    const view = await open(fixture('official'))
    expect(await failure(view.list({ cursor: 'made up' }))).toMatchObject({
      kind: 'invalid',
      detail: { reason: 'cursor' },
    })
  })
})
