import fc from 'fast-check'
import { describe, expect, test, vi } from 'vitest'
import type { RemoteChanges } from '../../src/client/changes.ts'
import type { ServerLink } from '../../src/client/connection.ts'
import { directChildren, rootsOf } from '../../src/client/requests.ts'
import { createRemoteView, nextCursor, parseCursor } from '../../src/client/view.ts'
import { ResourceError } from '../../src/core/errors.ts'
import { withResolvers } from '../../src/core/kit/abort.ts'
import type { ChangeListener, Resource, ViewChange } from '../../src/core/view.ts'
import { uris } from '../support/mcp-servers.ts'

describe('a tree that is built from a listing', () => {
  const list = (...given: readonly string[]): readonly Resource[] => given.map((uri) => ({ uri, name: uri }))

  test.each([
    [['file:///home/me/a/x.ts', 'file:///home/me/a/b/y.ts'], ['file:///home/me/a/']],
    [['file:///a', 'file:///b/c'], ['file:///']],
    [
      ['docs://one/x', 'docs://two/y/z', 'docs://two/y/w'],
      ['docs://one/', 'docs://two/y/'],
    ],
    [['memo://today', 'memo://tomorrow'], ['memo://']],
    [
      ['note:1', 'note:2', 'urn:isbn:1'],
      ['note:', 'urn:'],
    ],
    [['https://host/a?q=b/c'], ['https://host/']],
    [['no scheme', '/absolute', ''], []],
    [[], []],
  ])('of %j has the roots %j', (given, roots) => {
    expect(uris(rootsOf(list(...given)))).toEqual(roots)
  })

  test.each<[string, readonly string[], readonly string[] | undefined]>([
    ['x://a/', ['x://a/b', 'x://a/c/d', 'x://a/c/e', 'x://a-b', 'x://ab/c'], ['x://a/b', 'x://a/c/']],
    ['x://a', ['x://a', 'x://a/b'], ['x://a/b']],
    ['x://', ['x://a', 'x://a/b'], ['x://a', 'x://a/']],
    ['note:', ['note:1', 'note:2/3'], ['note:1', 'note:2/']],
    ['x://a/', ['x://a/b?q=c/d', 'x://a/e#f/g'], ['x://a/b?q=c/d', 'x://a/e#f/g']],
    ['x://none/', ['x://a/b'], undefined],
  ])('has below %j, for the listing %j, the children %j', (uri, given, children) => {
    expect(directChildren(list(...given), uri)?.map((child) => child.uri)).toEqual(children)
  })

  test('uses what the server reports for a directory, and supports an empty one', () => {
    const folder = { uri: 'x://a/b/', name: 'b', title: 'The folder', mimeType: 'inode/directory' }
    expect(directChildren([...list('x://a/b/c'), folder], 'x://a/')).toEqual([folder])
    expect(directChildren([folder], 'x://a/b/')).toEqual([])
  })
})

describe('a tree of a server that cannot read directories', () => {
  const connect = () => {
    const server = { listed: ['x://a/one'], send: async () => {} }
    let tell = (_: ViewChange) => {}
    const link = {
      connection: { hasResources: true, hasPrompts: false, hasTools: false, tells: { listed: true }, revision: '' },
      request: async (method: string) => {
        if (method !== 'resources/list') throw new ResourceError('internal', 'no such method')
        const resources = server.listed.map((uri) => ({ uri, name: uri }))
        await server.send()
        return { resources }
      },
    } as unknown as ServerLink
    const changes = {
      open: (listener: ChangeListener) => {
        tell = listener
      },
    } as unknown as RemoteChanges
    const view = createRemoteView(link, changes)
    const found = async () => uris((await view.directory({ uri: 'x://a/' })).items)
    return { server, view, found, tell: (change: ViewChange) => tell(change) }
  }

  test('is built from a new listing after a notification of a change', async () => {
    const { server, view, found, tell } = connect()
    let heard: Promise<readonly string[]> | undefined
    view.subscribe?.(() => {
      heard = found()
    })
    expect(await found()).toEqual(['x://a/one'])
    server.listed = ['x://a/one', 'x://a/two']
    expect(await found()).toEqual(['x://a/one'])
    tell({ uris: [], listed: true })
    expect(await heard).toEqual(server.listed)
  })

  test('is not built from a listing that was requested before the change', async () => {
    const { server, view, found, tell } = connect()
    view.subscribe?.(() => {})
    const { promise, resolve } = withResolvers<void>()
    const send = vi.fn(() => promise)
    server.send = send
    const slow = found()
    await vi.waitFor(() => expect(send).toHaveBeenCalled())
    server.listed = ['x://a/two']
    tell({ uris: [], listed: true })
    server.send = async () => {}
    resolve()
    await slow
    expect(await found()).toEqual(['x://a/two'])
  })
})

describe('following the cursors of a list', () => {
  test('ends within three times the length of a cycle and of the pages before it', () => {
    fc.assert(
      fc.property(fc.nat(40), fc.integer({ min: 1, max: 40 }), (lead, length) => {
        const nextOf = (page: number) => `c${page < lead ? page : lead + ((page - lead) % length)}`
        let cursor: string | undefined
        let pages = 0
        for (; pages < 1000; pages++) {
          const next = nextCursor(parseCursor(cursor), nextOf(pages))
          if (next.repeats) break
          cursor = next.nextCursor
        }
        expect(pages).toBeLessThanOrEqual(3 * (lead + length) + 2)
      }),
    )
  })

  test('accepts any cursors: empty, long, with line ends and dots', () => {
    for (const raw of ['', '.', 'a.b.c', '\n', '\u{1f600}', 'x'.repeat(10_000)])
      expect(parseCursor(nextCursor(parseCursor(undefined), raw).nextCursor)).toMatchObject({ cursor: raw, pages: 1 })
  })
})
