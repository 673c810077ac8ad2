import fs from 'node:fs'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { connect, type RemoteView, type ServerTarget } from '../../src/client/index.ts'
import { type Catalog, createCatalog } from '../../src/core/catalog.ts'
import { isResourceError } from '../../src/core/errors.ts'
import { foreignUriOf, pathOfForeign } from '../../src/core/foreign.ts'
import { metaKeys } from '../../src/core/meta.ts'
import type { Page, Resource, ResourceTemplate, View } from '../../src/core/view.ts'
import { type RemoteOptions, remote } from '../../src/providers/remote/index.ts'
import { templatesToWire } from '../../src/server/protocol/wire.ts'
import { createFolder } from '../support/folder.ts'
import { fixture } from '../support/mcp-servers.ts'
import { memory } from '../support/memory.ts'
import { volumeOf } from '../support/volume.ts'

const principal = { id: 'ada', roles: [] }
const address = 'remote://there'
const endings: (() => Promise<unknown>)[] = []
const endAll = async () => {
  for (const end of endings.splice(0).reverse()) await end()
}

interface Logged {
  readonly message: string
}

function relay(target: ServerTarget, options: Partial<RemoteOptions> = {}) {
  const logged: Logged[] = []
  const log = (_: string, message: string) => void logged.push({ message })
  const provider = remote({ target, log, ...options })
  const catalog = createCatalog({ mounts: [{ address, provider }], log })
  endings.push(catalog.close)
  return { provider, catalog, view: catalog.view(principal), logged }
}

async function pagesOf<T>(next: (query: { readonly cursor?: string }) => Promise<Page<T>>): Promise<readonly T[]> {
  const items: T[] = []
  for (let cursor: string | undefined; ; ) {
    const page: Page<T> = await next(cursor === undefined ? {} : { cursor })
    items.push(...page.items)
    cursor = page.nextCursor
    if (cursor === undefined) return items
  }
}

const pathOf = (uri: string) => decodeURIComponent(uri.slice(address.length + 1))
const failure = async (work: Promise<unknown>) => {
  const error = await work.then(() => 'no failure').catch((caught: unknown) => caught)
  return isResourceError(error) ? error : Promise.reject(new Error(`no ResourceError: ${String(error)}`))
}

/** What is told of something, but for its address and the mark of whoever relays. */
function facts({ meta, ...rest }: Resource | ResourceTemplate) {
  const { [metaKeys.via]: _, ...others } = meta ?? {}
  return { ...rest, ...(Object.keys(others).length === 0 ? {} : { meta: others }) }
}

const sdks = ['sdk100', 'sdk112', 'sdk113', 'sdk124', 'official']

describe.each(sdks)('a mounted server (%s) is relayed with', (sdk) => {
  const target = fixture('varied', sdk)
  let direct: RemoteView
  let view: View
  beforeAll(async () => {
    direct = await connect(target)
    view = relay(target).view
  }, 60_000)
  afterAll(async () => {
    await direct.close()
    await endAll()
  }, 60_000)

  test('its listing, field by field', async () => {
    const theirs = await pagesOf((query) => direct.list(query))
    const ours = await pagesOf((query) => view.list(query))
    expect(theirs.length).toBe(15)
    const byPath = new Map(ours.map((resource) => [pathOf(resource.uri), facts(resource)]))
    expect(byPath.size).toBe(theirs.length)
    for (const { uri, ...rest } of theirs) {
      const found = byPath.get(pathOfForeign(uri))
      expect({ ...found, uri: '' }).toEqual({ ...facts({ uri, ...rest }), uri: '' })
    }
    expect(byPath.get('file/srv/docs/a.md')).toMatchObject({
      name: 'The page',
      size: 26,
      modified: Date.parse('2026-01-02T03:04:05Z'),
    })
  })

  test('its contents: text and bytes, several at once, under each URI', async () => {
    for (const { uri } of await pagesOf((query) => direct.list(query))) {
      const theirs = await direct.read(uri)
      const ours = await view.read(`${address}/${pathOfForeign(uri).split('/').map(encodeURIComponent).join('/')}`)
      const told = ({ name: _, path: __, uri: at, ...content }: (typeof ours.contents)[number]) => ({ at, ...content })
      expect(ours.contents.map((content) => ({ ...told(content), at: pathOf(content.uri) }))).toEqual(
        theirs.contents.map((content) => ({ ...told(content), at: pathOfForeign(content.uri) })),
      )
    }
  })

  test('its templates, the resources that they expand to, and their completions', async () => {
    const theirs = await pagesOf((query) => direct.templates(query))
    const ours = await pagesOf((query) => view.templates(query))
    expect(ours.map(({ uriTemplate }) => uriTemplate.slice(address.length))).toEqual([
      '/rows/{table}/{id}{?limit}',
      '/file/{+path}',
      '/note:/{id}',
    ])
    expect(ours.map((one) => ({ ...facts(one), uriTemplate: '' }))).toEqual(
      theirs.map((one) => ({ ...facts(one), uriTemplate: '' })),
    )
    const { contents } = await view.read(`${address}/rows/shop/a%20b?limit=5`)
    expect(contents).toMatchObject([
      { uri: `${address}/rows/shop/a%20b?limit=5`, text: 'read rows://shop/a%20b?limit=5' },
    ])
    const request = { argument: { name: 'id', value: '4' }, arguments: new Map([['table', 'shop']]) }
    expect(await view.complete({ uriTemplate: ours[0]?.uriTemplate ?? '', ...request })).toEqual(
      await direct.complete({ uriTemplate: theirs[0]?.uriTemplate ?? '', ...request }),
    )
  })

  test('its not-found errors, also for another spelling of a URI', async () => {
    for (const path of ['notes/none', 'notes/a/=b', 'notes/a/=%62', 'file/srv/docs/a.md%3F', 'NOTES/a/b', '==/x', 'a'])
      expect((await failure(view.read(`${address}/${path}`))).kind, path).toBe('not-found')
  })

  test('its notifications of changed and new resources', async () => {
    const told: string[] = []
    let listed = 0
    const subscription = view.subscribe?.((change) => {
      told.push(...change.uris)
      if (change.listed) listed++
    })
    const uri = `${address}/notes/a/b`
    expect(await subscription?.add([uri, `${address}/memo/`])).toEqual([uri, `${address}/memo/`])
    expect(await subscription?.addList()).toBe(true)
    await expect
      .poll(
        async () => {
          await view.read(`${address}/do:/touch-notes`)
          await view.read(`${address}/do:/touch-memo`)
          return [...new Set(told)].sort()
        },
        { timeout: 30_000 },
      )
      .toEqual([`${address}/memo/`, uri])
    await view.read(`${address}/do:/grow`)
    await expect.poll(() => listed, { timeout: 30_000 }).toBeGreaterThan(0)
    expect((await pagesOf((query) => view.list(query))).map((resource) => resource.uri)).toContain(
      `${address}/notes/new`,
    )
    subscription?.close()
  }, 60_000)
})

describe('a mounted server', () => {
  afterEach(endAll, 60_000)

  test('with very many resources is listed completely, and resumed after a path', async () => {
    // A multiple of the length of a page.
    const total = volumeOf(100_000)
    const { provider, view } = relay(fixture('varied', 'official', `many-${total}`))
    const all = await pagesOf((query) => view.list(query))
    expect(new Set(all.map(({ uri }) => uri)).size).toBe(total)
    const context = { principal, signal: new AbortController().signal }
    for await (const { path } of provider.list({ prefix: 'n/many/', after: 'n/many/5' }, context)) {
      expect(path).toBe('n/many/50')
      break
    }
    const last = `n/many/${total - 1}`
    expect(await provider.stat?.(last, context)).toMatchObject({ path: last })
  }, 120_000)

  test('with an endless listing is unavailable, and the error names the key "maxResources"', async () => {
    const { provider, view } = relay(fixture('varied', 'sdk124', 'endless'), { maxResources: 500 })
    const error = await failure(view.list())
    expect(error.kind).toBe('unavailable')
    expect(error.message).toMatch(/cut off: it has over 500 resources. Raise "maxResources"/)
    const context = { principal, signal: new AbortController().signal }
    expect((await failure(provider.stat?.('n/1', context) ?? Promise.resolve())).kind).toBe('unavailable')
  }, 60_000)

  test('with repeated cursors is listed up to the repetition, with a warning', async () => {
    const { view, logged } = relay(fixture('varied', 'sdk124', 'circle'))
    const listed = await view.list()
    expect(listed.items.length).toBeGreaterThan(0)
    expect(listed.unavailable).toBeUndefined()
    expect(logged.map(({ message }) => message)).toContain(
      'a list of the server is cut off, because its cursor repeats',
    )
  }, 60_000)

  test('that dies is started again, also during a request', async () => {
    const { view, logged } = relay(fixture('varied', 'sdk124'))
    expect((await view.list()).items.length).toBeGreaterThan(0)
    for (let times = 0; times < 3; times++) {
      expect((await failure(view.read(`${address}/do:/die`))).kind).toBe('unavailable')
      await expect
        .poll(
          () =>
            view.read(`${address}/memo/today`).then(
              ({ contents }) => contents.length,
              () => 0,
            ),
          { timeout: 30_000 },
        )
        .toBe(1)
    }
    expect(logged.map(({ message }) => message)).toContain(
      'the connection to the server has ended: it is opened again when it is needed',
    )
  }, 90_000)

  test('that dies gets its subscriptions again, and each subscribed URI is reported as changed', async () => {
    const { view } = relay(fixture('varied', 'official'))
    const told = new Set<string>()
    const subscription = view.subscribe?.(({ uris }) => {
      for (const uri of uris) told.add(uri)
    })
    const uri = `${address}/notes/a/b`
    expect(await subscription?.add([uri])).toEqual([uri])
    await failure(view.read(`${address}/do:/die`))
    await expect.poll(() => [...told], { timeout: 30_000 }).toEqual([uri])
    told.clear()
    await expect
      .poll(
        async () => {
          await view.read(`${address}/do:/touch-notes`).catch(() => {})
          return [...told]
        },
        { timeout: 30_000, interval: 500 },
      )
      .toEqual([uri])
    subscription?.close()
  }, 90_000)

  test('gets the configured environment variables, and not a secret in those of this process', async () => {
    process.env.RELAY_CANARY = 'canary-4711'
    const target = fixture('varied', 'sdk124')
    const { view } = relay('command' in target ? { ...target, env: { GIVEN: 'yes' } } : target)
    const [content] = (await view.read(`${address}/env:/all`)).contents
    delete process.env.RELAY_CANARY
    const env = content !== undefined && 'text' in content ? content.text : ''
    expect(env).toContain('"GIVEN":"yes"')
    expect(env).not.toContain('canary-4711')
  })

  test('that cannot be started or is silent is unavailable, and one that sends too much gives the error too-large', async () => {
    const none = relay({ command: '/nowhere/server' })
    expect((await failure(none.view.list())).kind).toBe('unavailable')
    const silent = relay(fixture('hostile', 'silent'), { timeoutMs: 300 })
    expect((await failure(silent.view.read(`${address}/memo/today`))).kind).toBe('unavailable')
    const huge = relay(fixture('hostile', 'huge'), { maxBytes: 100_000 })
    const error = await failure(huge.view.read(`${address}/memo/today`))
    expect(error.kind).toBe('too-large')
    expect(error.message).toBe('The answer of the server is longer than "maxBytes" of the mount.')
  }, 60_000)

  test('is no longer waited for when the caller cancels', async () => {
    const { view } = relay(fixture('hostile', 'slow'))
    const controller = new AbortController()
    const reading = view.read(`${address}/memo/today`, { signal: controller.signal })
    setTimeout(() => controller.abort(new Error('gone')), 200)
    await expect(reading).rejects.toThrow('gone')
  }, 60_000)
})

test('path rules of a remote mount hold for other spellings of a URI too', async () => {
  const provider = remote({ target: fixture('varied', 'sdk124') })
  const access = (_: unknown, path: string) => path !== 'memo/today'
  const catalog: Catalog = createCatalog({ mounts: [{ address, provider, access }] })
  const view = catalog.view(principal)
  for (const path of [
    'memo/today',
    'memo/=today',
    'memo/%74oday',
    'memo/today%3F',
    'memo/today%23',
    'MEMO/today',
    'memo:/=/=/today',
  ])
    expect((await failure(view.read(`${address}/${path}`))).kind, path).toBe('not-found')
  expect(foreignUriOf('memo/today')).toBe('memo://today')
  await catalog.close()
}, 60_000)

test('an index over a remote mount is notified of its changed and its new resources', async () => {
  const provider = remote({ target: fixture('varied', 'sdk113') })
  const catalog = createCatalog({ mounts: [{ address, provider }] })
  const view = catalog.view(principal)
  const heard = new Set<string | undefined>()
  const controller = new AbortController()
  const hear = (changes: readonly { readonly path?: string }[]) => {
    for (const { path } of changes) heard.add(path)
  }
  await catalog.reader(address)?.watch?.(hear, controller.signal)
  await expect
    .poll(
      async () => {
        await view.read(`${address}/do:/touch-notes`).catch(() => {})
        return heard.has('notes/a/b')
      },
      { timeout: 30_000 },
    )
    .toBe(true)
  await view.read(`${address}/do:/grow`)
  await expect.poll(() => heard.has('notes/new'), { timeout: 30_000 }).toBe(true)
  controller.abort()
  await catalog.close()
}, 60_000)

describe('while a mounted server starts slowly,', () => {
  const { args = [] } = fixture('varied', 'sdk112') as { readonly args?: readonly string[] }
  const folder = createFolder()
  afterAll(() => folder.remove())
  /** The servers answer as soon as this file is there. */
  const sign = 'start'
  afterEach(() => fs.rmSync(folder.at(sign), { force: true }))
  const waiting = `const timer = setInterval(() => {
    if (!require('fs').existsSync(${JSON.stringify(folder.at(sign))})) return
    clearInterval(timer)
    import(${JSON.stringify(args[0])})
  }, 50)`
  const late = { command: process.execPath, args: ['-e', waiting, '--', ...args] }
  const mount = () => {
    const catalog = createCatalog({
      mounts: [
        { address: 'a://late', provider: remote({ target: late, tools: true }) },
        { address: 'b://later', provider: remote({ target: late, tools: true }) },
        { address: 'own://there', provider: memory({ 'a.txt': 'a\n' }) },
      ],
    })
    endings.push(catalog.close)
    return catalog.view(principal)
  }

  test('the first list names the server as unavailable, and a notification follows when it is ready', async () => {
    const view = mount()
    const page = await view.list()
    expect(page.items.map(({ uri }) => uri)).toEqual(['own://there/a.txt'])
    expect(page.unavailable).toEqual(['a://late', 'b://later'])
    let told = 0
    const subscription = view.subscribe?.(({ listed }) => {
      if (listed) told++
    })
    endings.push(async () => subscription?.close())
    await subscription?.addList()
    folder.write({ [sign]: '' })
    await expect.poll(() => told, { timeout: 15_000 }).toBeGreaterThan(0)
    await expect.poll(async () => (await view.list()).unavailable, { timeout: 10_000 }).toBeUndefined()
    expect((await view.list()).items.length).toBeGreaterThan(1)
  }, 60_000)

  test('the lists of templates, prompts and tools do not wait, and those of templates and tools name the server as unavailable', async () => {
    const view = mount()
    const missing = ['a://late', 'b://later']
    const [templates, , tools] = await Promise.all([
      view.templates(),
      view.mounts(),
      view.tools?.list(new Set(), { soon: true }),
      view.prompts?.list().catch(() => {}),
    ])
    expect(templates.items.map(({ uriTemplate }) => uriTemplate)).toEqual(['own://there/{+path}'])
    expect(templates.unavailable).toEqual(missing)
    expect(tools).toEqual({ tools: [], unavailable: missing })
    expect(templatesToWire(templates, '2026-07-28')._meta).toEqual({ 'dev.hikidashi/unavailable': missing })
    let told = 0
    const subscription = view.subscribe?.((change) => {
      if (change.tools === true) told++
    })
    endings.push(async () => subscription?.close())
    await subscription?.addTools?.()
    folder.write({ [sign]: '' })
    await expect.poll(() => told, { timeout: 45_000 }).toBeGreaterThan(0)
    const isWhole = async () => (await view.tools?.list(new Set()))?.unavailable === undefined
    await expect.poll(isWhole, { timeout: 45_000 }).toBe(true)
    expect((await view.templates()).unavailable).toBeUndefined()
  }, 120_000)

  test('the lists of prompts and tools do not wait even if no other mount has any', async () => {
    const catalog = createCatalog({
      mounts: [
        { address: 'a://late', provider: remote({ target: late, tools: true }) },
        { address: 'own://there', provider: memory({ 'a.txt': 'a\n' }) },
      ],
    })
    endings.push(catalog.close)
    const view = catalog.view(principal)
    const [tools] = await Promise.all([
      view.tools?.list(new Set(), { soon: true }),
      view.prompts?.list().catch(() => {}),
    ])
    expect(tools).toEqual({ tools: [], unavailable: ['a://late'] })
  }, 60_000)

  test('a listing of the directory of the server waits until the server is ready', async () => {
    const view = mount()
    await view.list()
    const listed = view.directory({ uri: 'a://late' })
    folder.write({ [sign]: '' })
    const [first] = (await listed).items
    expect(first?.uri).toMatch(/^a:\/\/late\//)
  }, 60_000)
})
