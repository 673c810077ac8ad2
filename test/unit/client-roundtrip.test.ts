import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { memory } from '../../examples/memory-provider.ts'
import { connect } from '../../src/client/index.ts'
import { createCatalog } from '../../src/core/catalog.ts'
import { isResourceError } from '../../src/core/errors.ts'
import type { ReadResult, Resource, View } from '../../src/core/view.ts'
import { type HttpService, localPrincipal, serveHttp } from '../../src/server/index.ts'
import { sliced } from '../../src/wrap/sliced.ts'

const documents = {
  'README.md': '# Read me\n',
  'src/[id].tsx': 'export {}\n',
  'src/深い/場所/メモ.txt': '梅雨',
  'image.png': Uint8Array.of(0x89, 0x50, 0x4e, 0x47),
  'empty.txt': '',
}
const many = Object.fromEntries(Array.from({ length: 1000 }, (_, i) => [`${i % 7}/${i}.txt`, String(i)]))

const catalog = createCatalog({
  mounts: [
    { address: 'docs://manual', provider: sliced(memory(documents)) },
    { address: 'file:///many', provider: memory(many) },
  ],
  pages: { first: 10 },
})
const local = catalog.view(localPrincipal)

let service: HttpService
const remotes: Record<string, View> = {}
beforeAll(async () => {
  const options = {
    view: catalog.view,
    log: () => {},
    name: 'test',
    version: '1',
    host: '127.0.0.1',
    port: 0,
    sse: true,
  }
  service = await serveHttp(options)
  remotes['Streamable HTTP'] = await connect({ url: service.url })
  remotes['HTTP with SSE'] = await connect({ url: service.url.replace(/mcp$/, 'sse') })
})
afterAll(async () => {
  for (const view of Object.values(remotes)) await view.close?.()
  await service.close()
})

async function pagesOf(next: (cursor: string | undefined) => ReturnType<View['list']>): Promise<readonly Resource[]> {
  const items: Resource[] = []
  for (let cursor: string | undefined; ; ) {
    const page = await next(cursor)
    items.push(...page.items)
    cursor = page.nextCursor
    if (cursor === undefined) return items
  }
}

const given = (cursor: string | undefined) => (cursor === undefined ? {} : { cursor })

const failure = (work: Promise<unknown>) =>
  work.then(
    () => 'no failure',
    (error) => (isResourceError(error) ? [error.kind, error.kind === 'not-found' ? '' : error.message] : error),
  )

/** Contents without the kind of their bytes, and without the name, which few revisions have. */
const plain = ({ contents }: ReadResult) =>
  contents.map(({ name: _, ...content }) => ('bytes' in content ? { ...content, bytes: [...content.bytes] } : content))

describe.each(['Streamable HTTP', 'HTTP with SSE'])(
  'a client view over %s equals the view that is served, in',
  (kind) => {
    const remote = (): View => remotes[kind] ?? local

    test('the addresses and names of its mounts', async () => {
      expect((await remote().mounts()).map(({ uri, name }) => [uri, name])).toEqual(
        (await local.mounts()).map(({ uri, name }) => [uri, name]),
      )
    })

    test('all of its resources, and their facts', async () => {
      expect(await pagesOf((cursor) => remote().list(given(cursor)))).toEqual(
        await pagesOf((cursor) => local.list(given(cursor))),
      )
    })

    test('its directories', async () => {
      for (const uri of ['docs://manual', 'docs://manual/src/', 'file:///many', 'file:///many/3/'])
        expect(await pagesOf((cursor) => remote().directory({ uri, ...given(cursor) }))).toEqual(
          await pagesOf((cursor) => local.directory({ uri, ...given(cursor) })),
        )
    })

    test('its contents, whole and in parts', async () => {
      for (const { uri } of (await local.list()).items)
        expect(plain(await remote().read(uri))).toEqual(plain(await local.read(uri)))
      const part = 'docs://manual/README.md?bytes=0-3'
      expect((await remote().read(part)).contents[0]).toMatchObject({ text: '# Re', uri: part })
    })

    test('its templates and completions', async () => {
      const { items } = await local.templates()
      expect((await remote().templates()).items).toEqual(items)
      const request = { uriTemplate: items[0]?.uriTemplate ?? '', argument: { name: 'path', value: 's' } }
      expect(await remote().complete(request)).toEqual(await local.complete(request))
    })

    test('its errors', async () => {
      const asks: readonly ((view: View) => Promise<unknown>)[] = [
        (view) => view.read('docs://manual/none'),
        (view) => view.read('docs://elsewhere/x'),
        (view) => view.read('docs://manual/../x'),
        (view) => view.read('docs://manual/README.md?bytes=9-1'),
        (view) => view.directory({ uri: 'docs://manual/none/' }),
        (view) => view.directory({ uri: 'docs://manual/README.md' }),
        (view) => view.complete({ uriTemplate: 'x:{a}', argument: { name: 'a', value: '' } }),
      ]
      for (const ask of asks) expect(await failure(ask(remote()))).toEqual(await failure(ask(local)))
    })
  },
)
