import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openCatalog } from '../../src/config/build.ts'
import { loadConfig } from '../../src/config/load.ts'
import { planConfig } from '../../src/config/plan.ts'
import { createCatalog } from '../../src/core/catalog.ts'
import { canonicalDataUri, parseDataUri } from '../../src/core/data-uri.ts'
import { parseAddress, parseUri } from '../../src/core/uri.ts'
import { inline } from '../../src/providers/inline/index.ts'

describe('a data: URI', () => {
  test.each([
    ['data:,', 'text/plain', { charset: 'US-ASCII' }, ''],
    ['data:,A%20brief%20note', 'text/plain', { charset: 'US-ASCII' }, 'A brief note'],
    ['data:text/plain,a,b', 'text/plain', {}, 'a,b'],
    ['DATA:Text/HTML,<p>', 'text/html', {}, '<p>'],
    ['data:text/plain;charset=UTF-8,%E6%97%A5', 'text/plain', { charset: 'UTF-8' }, '日'],
    ['data:text/plain,日', 'text/plain', {}, '日'],
    ['data:;charset=utf-8,x', 'text/plain', { charset: 'utf-8' }, 'x'],
    ['data:text/plain;a="b c";charset=utf-8,x', 'text/plain', { a: 'b c', charset: 'utf-8' }, 'x'],
    ['data:application/json;base64,eyJhIjoxfQ==', 'application/json', {}, '{"a":1}'],
    ['data:application/json;base64,eyJhIjoxfQ', 'application/json', {}, '{"a":1}'],
    ['data:;BASE64,SGVs bG8%3D', 'text/plain', { charset: 'US-ASCII' }, 'Hello'],
    ['data:text/plain;base64,SGVs%0D%0AbG8=', 'text/plain', {}, 'Hello'],
    ['data:text/plain;base64,', 'text/plain', {}, ''],
    ['data:image/svg+xml;utf8=1,<svg>%23</svg>', 'image/svg+xml', { utf8: '1' }, '<svg>#</svg>'],
    ['data:text/plain,a?b=c&d', 'text/plain', {}, 'a?b=c&d'],
    ['data:text/plain;base64=x,YQ==', 'text/plain', { base64: 'x' }, 'YQ=='],
    ['data:text/plain%2Chello', 'text/plain', {}, 'hello'],
    ['data:text/plain,%2541', 'text/plain', {}, '%41'],
  ])('gives its MIME type, its parameters and its content: %s', (uri, mimeType, parameters, text) => {
    const data = parseDataUri(uri)
    expect([data.mimeType, Object.fromEntries(data.parameters), data.bytes.toString()]).toEqual([
      mimeType,
      parameters,
      text,
    ])
  })

  test.each([
    ...[
      'data:',
      'data:text/plain',
      'data:text/plain;base64',
      'data:text,x',
      'data:/plain,x',
      'data:text/,x',
      'data:text/pl ain,x',
    ],
    ...[
      'data:text/plain;base64,a',
      'data:;base64,ab=c',
      'data:;base64,a===',
      'data:;base64,ab=',
      'data:;base64,a_-b',
      'data:;base64,é',
    ],
    ...['data:text/plain;charset,x', 'data:;base64;charset=utf-8,x', 'http://x', ''],
  ])('is invalid: %j', (uri) => {
    expect(() => parseDataUri(uri)).toThrow(expect.objectContaining({ kind: 'invalid' }))
  })

  test.each(['%', '%4', '%zz', '100% of %x'])('keeps a percent sign that starts no escape: %j', (text) => {
    expect(parseDataUri(`data:,${text}`).bytes.toString()).toBe(text)
    expect(canonicalDataUri(`data:,${text}`)).toBe(canonicalDataUri(`data:,${encodeURIComponent(text)}`))
  })

  test('is brought to one spelling, whatever the spelling of the client, and a malformed one is refused', () => {
    const canonical = 'data:text/plain;charset=utf-8,a%20b/c%3Fd'
    for (const spelling of [
      canonical,
      'DATA:text/plain;charset=utf-8,a b/c?d',
      'data:text/plain%3Bcharset%3Dutf-8%2Ca%20b%2Fc%3fd',
      'data:text%2fplain;charset=utf-8,%61%20b/c%3Fd',
    ])
      expect(parseAddress(spelling).text).toBe(canonical)
    expect(parseAddress('data:x;y=a%2Cb,c').text).toBe('data:x;y=a%2Cb,c')
    expect(parseUri('data:,a?lines=1')).toEqual({
      scheme: 'data',
      authority: '',
      segments: [',a%3Flines=1'],
      directory: false,
    })
    for (const bad of ['data:,a#b', 'data:,a\\b', ' data:,a', 'data:', `data:,${'x'.repeat(9000)}`])
      expect(() => parseUri(bad)).toThrow()
  })
})

describe('an inline resource', () => {
  const everybody = { id: 'x', roles: [] }

  test('is listed at its own address, and read by any spelling of the address', async () => {
    const catalog = createCatalog({
      mounts: [
        {
          address: 'memo://team/greeting',
          provider: inline({ resources: { '': { text: 'Hello', title: 'A greeting' } } }),
        },
        {
          address: 'data:text/plain;base64,YS9i',
          provider: inline({ resources: { '': { data: 'data:text/plain;base64,YS9i' } } }),
        },
        // Slashes in data are no structure, nor is the case of letters in base64 the same letter.
        {
          address: 'data:text/plain;base64,YS9i/w==',
          provider: inline({ resources: { '': { data: 'data:text/plain;base64,YS9i/w==' } } }),
        },
        {
          address: 'data:text/plain;base64,yS9i',
          provider: inline({ resources: { '': { data: 'data:text/plain;base64,yS9i' } } }),
        },
      ],
    })
    const view = catalog.view(everybody)
    const { items } = await view.list({})
    expect(items.map(({ uri, name, title, mimeType, size }) => [uri, name, title, mimeType, size])).toEqual([
      ['data:text/plain;base64,YS9i', 'text/plain', undefined, 'text/plain', 3],
      ['data:text/plain;base64,YS9i/w==', 'text/plain', undefined, 'text/plain', 4],
      ['data:text/plain;base64,yS9i', 'text/plain', undefined, 'text/plain', 3],
      ['memo://team/greeting', 'greeting', 'A greeting', 'text/plain', 5],
    ])
    const read = async (uri: string) => (await view.read(uri)).contents[0]
    expect(await read('memo://team/greeting')).toMatchObject({ uri: 'memo://team/greeting', text: 'Hello' })
    for (const uri of ['data:text/plain;base64,YS9i', 'DATA:text/plain%3Bbase64%2CYS9i'])
      expect(await read(uri)).toMatchObject({ uri, text: 'a/b', immutable: true })
    expect(await read('data:text/plain;base64,YS9i/w==')).toMatchObject({ bytes: Buffer.from('a/b\xff', 'latin1') })
    // What nobody configured is not decoded: it would be an echo.
    for (const uri of [
      'data:text/plain,Hello',
      'data:,x',
      'data:text/plain;base64,YS9J',
      'memo://team',
      'memo://team/greeting/x',
    ])
      await expect(read(uri)).rejects.toMatchObject({ kind: 'not-found' })
    await catalog.close()
  })

  test.each<[RegExp, Parameters<typeof inline>[0]['resources']]>([
    [/exactly one/, { a: { text: 'x', bytes: new Uint8Array() } }],
    [/exactly one/, { a: {} }],
    [/not the path/, { 'a/': { text: 'x' } }],
    [/not the path/, { '../a': { text: 'x' } }],
    [/lies under "a"/, { a: { text: 'x' }, 'a/b/c': { text: 'y' } }],
    [/lone surrogate/, { a: { text: '\ud800' } }],
    [/more than 1048576 bytes/, { a: { text: 'x'.repeat(1024 * 1024 + 1) } }],
    [
      /together/,
      Object.fromEntries(Array.from({ length: 17 }, (_, at) => [`${at}`, { text: 'x'.repeat(1024 * 1024) }])),
    ],
  ])('that is invalid is refused with a message like %s (%#)', (message, resources) => {
    expect(() => inline({ resources })).toThrow(message)
  })
})

describe('inline resources in a configuration', () => {
  let folder: string
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'hikidashi-inline-'))
  })
  afterAll(() => rm(folder, { recursive: true }))

  const load = async (mounts: unknown) => {
    const file = join(folder, 'hikidashi.json')
    await writeFile(file, JSON.stringify({ mounts }, null, 1))
    return loadConfig(file)
  }

  test('are listed and read at any address, several in one mount or one as a mount of its own', async () => {
    const found = await load({
      'memo://team/greeting': { provider: 'inline', text: 'Hello', mimeType: 'text/markdown', title: 'A greeting' },
      'memo://others': {
        provider: 'inline',
        resources: { a: { text: 'x\ny\n' }, 'b/c': { base64: 'AAEC', title: 'Bytes' } },
      },
      'data:text/plain,Hi': { provider: 'inline', title: 'A short one' },
    })
    if ('problems' in found) throw new Error(JSON.stringify(found.problems))
    const catalog = await openCatalog(planConfig(found.config), { log: () => {} })
    const view = catalog.view({ id: 'x', roles: [] })
    expect((await view.list({})).items.map(({ uri, title }) => [uri, title])).toEqual([
      ['data:text/plain,Hi', 'A short one'],
      ['memo://others/a', undefined],
      ['memo://others/b/c', 'Bytes'],
      ['memo://team/greeting', 'A greeting'],
    ])
    expect((await view.read('memo://others/a?lines=2')).contents[0]).toMatchObject({ text: 'y\n' })
    expect((await view.read('data:text/plain,Hi')).contents[0]).toMatchObject({ text: 'Hi' })
    await catalog.close()
  })

  test.each([
    [{ 'a://b': { provider: 'inline' } }, 3, 'The mount has none of "text", "base64" and "resources".'],
    [{ 'a://b': { provider: 'inline', text: 'x', base64: 'eA==' } }, 3, 'more than one of "text"'],
    [{ 'a://b': { provider: 'inline', base64: 'not base64!' } }, 5, 'This is not base64.'],
    [{ 'a://b': { provider: 'inline', resources: { x: { text: 'a' }, y: {} } } }, 9, 'exactly one'],
    [{ 'a://b': { provider: 'inline', resources: { x: { text: 'a' }, 'x/y': { text: 'a' } } } }, 5, 'lies under "x"'],
    [{ 'data:,x': { provider: 'inline', text: 'y' } }, 5, 'already holds the content'],
    [{ 'data:text/plain;base64,x': { provider: 'inline' } }, 3, 'not base64'],
    [{ 'data:nothing': { provider: 'inline' } }, 3, 'a comma before its data'],
    [{ 'data:,a%20b': { provider: 'inline' }, 'data:,a b': { provider: 'inline' } }, 6, 'overlaps'],
    [{ 'a://b': { provider: 'inline', text: 'x', mimeType: 'nonsense' } }, 6, 'not a media type'],
    [{ 'a://b': { provider: 'inline', txt: 'x' } }, 5, 'Did you mean "text"?'],
  ])('that are wrong as in %j are reported with their line', async (mounts, line, message) => {
    const found = await load(mounts)
    const problems = 'problems' in found ? found.problems : []
    const texts = problems.map((problem) => `${problem.line}: ${problem.message} ${problem.fix}`)
    expect(
      texts.some((text) => text.startsWith(`${line}: `) && text.includes(message)),
      texts.join('\n'),
    ).toBe(true)
  })

  test('cannot be polled, because they cannot change', async () => {
    const found = await load({ 'a://b': { provider: 'inline', text: 'x', poll: '5s' } })
    if ('problems' in found) throw new Error(JSON.stringify(found.problems))
    await expect(openCatalog(planConfig(found.config), { log: () => {} })).rejects.toThrow(
      /does not change.*Remove "poll"/,
    )
  })
})
