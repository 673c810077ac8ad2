import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { compileAccess } from '../../src/core/access.ts'
import { createCatalog } from '../../src/core/catalog.ts'
import { isResourceError } from '../../src/core/errors.ts'
import { segmentFault } from '../../src/core/path.ts'
import type { Principal } from '../../src/core/provider.ts'
import { formatUri, parseAddress, parseUri } from '../../src/core/uri.ts'
import { live, until } from '../support/live.ts'
import { volumeOf } from '../support/volume.ts'

const alice: Principal = { id: 'alice', roles: ['reader'] }

/** What stands for one character in a path: raw where that changes nothing, or escaped with digits in either case. */
function spellingsOf(character: string): readonly string[] {
  const bytes = Array.from(Buffer.from(character), (byte) => byte.toString(16).padStart(2, '0'))
  const escaped = bytes.map((byte) => `%${byte}`).join('')
  // Raw, these are structure; a raw % may begin an escape with what follows it.
  const raw = /[%?#\\/]/.test(character) ? [] : [character]
  return [...raw, escaped, escaped.toUpperCase()]
}

const anyCase = (text: string) =>
  fc
    .array(fc.boolean(), { minLength: text.length, maxLength: text.length })
    .map((flags) => Array.from(text, (c, index) => (flags[index] ? c.toUpperCase() : c)).join(''))

const anySpelling = (path: string) =>
  fc
    .tuple(...Array.from(path, (c) => (c === '/' ? fc.constant(c) : fc.constantFrom(...spellingsOf(c)))))
    .map((parts) => parts.join(''))
    // White space at the end of a URI is refused, since it is lost on the way.
    .map((text) => text.replace(/\s$/u, (space) => encodeURIComponent(space)))

const fileHead = fc.oneof(
  anyCase('file').map((scheme) => `${scheme}:`),
  fc.tuple(anyCase('file'), anyCase('localhost')).map(([scheme, host]) => `${scheme}://${host}`),
  anyCase('file').map((scheme) => `${scheme}://`),
)
const hostHead = fc.tuple(anyCase('docs'), anyCase('manual.example')).map(([scheme, host]) => `${scheme}://${host}`)

const segment = fc
  .string({ unit: 'grapheme', minLength: 1, maxLength: 6 })
  .filter(
    (text) =>
      segmentFault(text) === undefined && !/^[\u200b-\u200d\u2060\ufeff]|[\u200b-\u200d\u2060\ufeff]$/u.test(text),
  )
const path = fc.array(segment, { minLength: 1, maxLength: 4 }).map((segments) => segments.join('/'))

const paths = ['open/a b.md', 'open/100%.md', 'open/é[1]?#.md', 'secret/plan.md', 'secret/Ünder/x', 'denied.txt']

function world() {
  const provider = live(Object.fromEntries(paths.map((at) => [at, `text of ${at}`])))
  const access = compileAccess([{ deny: ['*'], match: ['secret/**', 'denied.txt'] }, { allow: ['*'] }])
  const secret = new Uint8Array(32)
  const pages = { first: 1, most: 1 }
  const mounts = ['file:///srv', 'docs://manual.example'].map((address) => ({ address, provider, access }))
  return { provider, catalog: createCatalog({ mounts, secret, pages }) }
}

/** What reading answers, without the spelling that it was asked by. */
async function outcome(ask: () => Promise<unknown>): Promise<unknown> {
  try {
    return await ask()
  } catch (error) {
    if (!isResourceError(error)) throw error
    return { kind: error.kind, detail: error.detail }
  }
}

describe('every spelling of one URI', () => {
  test('is parsed to one resource (UR06, UR07, UR16, PT13)', () => {
    fc.assert(
      fc.property(
        fc
          .constantFrom('file:///', 'docs://manual.example')
          .chain((address) =>
            path.chain((at) =>
              fc.tuple(
                fc.constant(formatUri(parseAddress(address), at).replace('////', '///')),
                address === 'file:///' ? fileHead : hostHead,
                anySpelling(at),
              ),
            ),
          ),
        ([canonical, head, spelled]) => {
          expect(parseUri(`${head}/${spelled}`)).toEqual(parseUri(canonical))
        },
      ),
      { numRuns: volumeOf(3000) },
    )
  })

  test('gets the same access decision when it is read, listed or subscribed to (UR06, UR07, UR16, PT13)', async () => {
    const { catalog } = world()
    const view = catalog.view(alice)
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...paths).chain((at) =>
          fc.oneof(
            fc.tuple(
              fc.constant(`file:///srv/${encode(at)}`),
              fileHead.map((head) => `${head}/srv/`),
              anySpelling(at),
            ),
            fc.tuple(
              fc.constant(`docs://manual.example/${encode(at)}`),
              hostHead.map((h) => `${h}/`),
              anySpelling(at),
            ),
          ),
        ),
        async ([canonical, head, spelledPath]) => {
          const spelled = head + spelledPath
          const read = (uri: string) =>
            outcome(async () => (await view.read(uri)).contents.map(({ uri: _, ...rest }) => rest))
          expect(await read(spelled)).toEqual(await read(canonical))
          const directory = (uri: string) => outcome(() => view.directory({ uri: uri.replace(/\/[^/]*$/, '/') }))
          expect(await directory(spelled)).toEqual(await directory(canonical))
          expect(catalog.allows(alice, spelled)).toBe(catalog.allows(alice, canonical))
          const subscription = view.subscribe?.(() => {})
          const honoured = await subscription?.add([spelled])
          expect(honoured).toEqual(catalog.allows(alice, canonical) ? [spelled] : [])
          subscription?.close()
        },
      ),
      { numRuns: volumeOf(300) },
    )
    await catalog.close()
  })

  test('is answered in its own spelling (UR06, UR07, UR16, PT13)', async () => {
    const { catalog } = world()
    const view = catalog.view(alice)
    for (const uri of [
      'FILE:/srv/open/a b.md',
      'file://LOCALHOST/srv/open/a%20b.md',
      'DOCS://Manual.Example/open/100%.md',
    ])
      expect((await view.read(uri)).contents.map((content) => content.uri)).toEqual([uri])
    await catalog.close()
  })

  test('is reported in the spelling that was subscribed to, and can be unsubscribed in another spelling (UR06, UR07, UR16, PT13)', async () => {
    const { catalog, provider } = world()
    const heard: string[] = []
    const subscription = catalog.view(alice).subscribe?.(({ uris }) => heard.push(...uris))
    const [one, two, other] = ['FILE:///srv/open/100%.md', 'file:/srv/open/a b.md', 'file:///srv/open/é[1]%3F%23.md']
    await subscription?.add([one, two, other])
    provider.set('open/100%.md', { text: 'x' })
    await until(() => heard.includes(one))
    expect(heard).toEqual([one])
    subscription?.remove('file://localhost/srv/open/a%20b.md')
    expect(subscription?.uris).toEqual([one, other])
    subscription?.remove('file:///srv/none')
    expect(subscription?.uris).toEqual([one, other])
    await catalog.close()
  })

  test('continues a list with the cursor of another spelling (UR06, UR07, UR16, PT13)', async () => {
    const { catalog } = world()
    const view = catalog.view(alice)
    const first = await view.directory({ uri: 'file:///srv/open/' })
    const { nextCursor = '' } = first
    const second = await view.directory({ uri: 'file:///srv/open/', cursor: nextCursor })
    expect(second.items).toHaveLength(1)
    for (const uri of ['FILE:/srv/open', 'file://Localhost/srv/%6fpen/'])
      expect(await view.directory({ uri, cursor: nextCursor })).toEqual(second)
    await catalog.close()
  })
})

describe('a % that starts no escape', () => {
  test.each([
    ['file:///r/100%', '100%'],
    ['file:///r/100%.md', '100%.md'],
    ['file:///r/%zz', '%zz'],
    ['file:///r/a%4', 'a%4'],
    ['file:///r/%%41', '%A'],
    ['file:///r/%%32%65', '%2e'],
    ['file:///r/%25zz', '%zz'],
  ])('is a literal character: %s (PT08, UR06)', (uri, name) => {
    expect(parseUri(uri).segments).toEqual(['r', name])
  })

  test.each([
    'file:///r/%c0%ae',
    'file:///r/%e3%81%zz',
    'file:///r/%%2fx',
    'file:///r/%ED%A0%80',
    'file:///r/%2e%2e/%',
  ])('does not make a refused URI valid: %s (PT08, UR06)', (uri) => {
    expect(() => parseUri(uri)).toThrow()
  })

  test('is a literal character in a query and in a data: URI too (PT08, UR06)', async () => {
    expect(parseUri('docs://m/a?q=100%').query).toBe('q=100%25')
    expect(parseUri('data:,100%').segments).toEqual([',100%25'])
    expect(parseAddress('data:,100%').text).toBe(parseAddress('data:,100%25').text)
    const templates = [{ template: 'a{?q}', name: 'q' }]
    const provider = {
      ...live({ a: '' }),
      templates: async () => templates,
      read: async ({ params }: { readonly params: ReadonlyMap<string, string> }) => [{ text: params.get('q') ?? '' }],
    }
    const view = createCatalog({ mounts: [{ address: 'docs://m', provider }] }).view(alice)
    expect((await view.read('docs://m/a?q=100%')).contents).toMatchObject([{ text: '100%' }])
  })
})

function encode(path: string): string {
  return path.split('/').map(encodeURIComponent).join('/')
}
