import { describe, expect, test } from 'vitest'
import { ResourceError } from '../../src/core/errors.ts'
import type { Resource, ResourceContent } from '../../src/core/view.ts'
import { errorToWire, revisions } from '../../src/server/messages/messages.ts'
import { promptToWire, readToWire, resourceToWire } from '../../src/server/protocol/wire.ts'

const rich: Resource = {
  uri: 'file:///r/a',
  name: 'a',
  title: 'A',
  description: 'The letter',
  mimeType: 'text/plain; charset=utf-8',
  size: 3,
  modified: Date.UTC(2026, 0, 12, 15, 0, 58),
  version: 'v1',
  priority: 0.8,
  audience: ['user', 'assistant'],
  icons: [{ src: 'https://example.org/a.png', sizes: ['48x48'] }, { src: 'javascript:alert(1)' }, { src: 'file:///x' }],
}

describe('a resource on the wire', () => {
  test('has the fields of the revision, and no newer ones', () => {
    const members = revisions.map((revision) => {
      const { annotations, ...rest } = resourceToWire(rich, revision) as { annotations: object }
      return [revision, Object.keys(rest).sort().join(' '), Object.keys(annotations).sort().join(' ')]
    })
    const old = ['description mimeType name size uri', 'audience priority']
    const newer = '_meta description mimeType name size title uri'
    expect(members).toEqual([
      ['2026-07-28', '_meta description icons mimeType name size title uri', 'audience lastModified priority'],
      ['2025-11-25', '_meta description icons mimeType name size title uri', 'audience lastModified priority'],
      ['2025-06-18', newer, 'audience lastModified priority'],
      ['2025-03-26', ...old],
      ['2024-11-05', ...old],
      ['2024-10-07', ...old],
    ])
    expect(resourceToWire(rich, '2026-07-28')).toMatchObject({
      annotations: { lastModified: '2026-01-12T15:00:58.000Z', priority: 0.8 },
      icons: [{ src: 'https://example.org/a.png' }],
    })
  })

  test.each([
    ['priority', Number.NaN],
    ['priority', 1.01],
    ['priority', -1],
    ['modified', Number.NaN],
    ['modified', Number.POSITIVE_INFINITY],
    ['modified', 1e15],
    ['modified', -1e15],
    ['size', 1.5],
    ['size', -1],
    ['size', 2 ** 60],
    ['mimeType', 'text/plain\r\nX: y'],
    ['mimeType', 'not a type'],
    ['mimeType', ''],
    ['audience', ['everybody']],
  ])('leaves out a %s of %j, which strict clients reject', (member, value) => {
    const { annotations: _, ...bare } = resourceToWire({ uri: 'a:b', name: 'n' }, '2026-07-28')
    expect(resourceToWire({ uri: 'a:b', name: 'n', [member]: value }, '2026-07-28')).toEqual(bare)
  })

  test('keeps the MIME types of the specification, with their parameters', () => {
    for (const mimeType of [
      'text/x-rust',
      'inode/directory',
      'application/json;format=MyApplication::DatabaseSchema',
      'application/vnd.a+json',
    ])
      expect(resourceToWire({ uri: 'a:b', name: 'n', mimeType }, '2024-11-05')).toMatchObject({ mimeType })
  })

  test('has no raw control characters in its name, and no lone surrogates', () => {
    const { name, title } = resourceToWire({ uri: 'a:b', name: 'a\n\u001b[31m', title: 'x\ud800\u2028' }, '2026-07-28')
    expect(name).toBe('a\\u000a\\u001b[31m')
    expect(title).toBe('x\ufffd\\u2028')
  })
})

describe('contents on the wire', () => {
  const cache = { ttlMs: 1500.7, scope: 'public' } as const
  const contents = [{ uri: 'file:///r/a', name: 'a', title: 'A', text: 'x\ud800', version: 'v', meta: { k: 1 } }]

  test('have name and title in revision 2025-06-18 only', async () => {
    const wire = async (revision: (typeof revisions)[number]) =>
      (await readToWire({ contents, cache }, revision)).contents
    expect(await wire('2025-06-18')).toEqual([
      {
        uri: 'file:///r/a',
        name: 'a',
        title: 'A',
        text: 'x\ufffd',
        _meta: { k: 1, 'dev.hikidashi/version': 'v', 'dev.hikidashi/untrusted': ['title'] },
      },
    ])
    expect(await wire('2026-07-28')).toEqual([
      { uri: 'file:///r/a', text: 'x\ufffd', _meta: { k: 1, 'dev.hikidashi/version': 'v' } },
    ])
    expect(await wire('2025-03-26')).toEqual([{ uri: 'file:///r/a', text: 'x\ufffd' }])
    for (const revision of revisions.filter((one) => one !== '2025-06-18'))
      expect(JSON.stringify(await wire(revision)), revision).not.toContain('"name"')
  })

  test('encode bytes and streams as padded base64', async () => {
    async function* stream() {
      yield new Uint8Array([1, 2])
      yield new Uint8Array([3, 4])
    }
    const both = [
      { uri: 'a:b', bytes: new Uint8Array([255, 0, 1, 2, 3, 4]).subarray(2, 6) },
      { uri: 'a:b', stream: stream(), length: 4 },
    ]
    const { contents: wired } = await readToWire({ contents: both, cache }, '2026-07-28')
    const blob = 'AQIDBA=='
    expect(wired).toEqual([
      { uri: 'a:b', blob },
      { uri: 'a:b', blob },
    ])
  })

  test('state how long they may be cached, in the revision that requires it', async () => {
    expect(await readToWire({ contents: [], cache }, '2026-07-28')).toMatchObject({ ttlMs: 1500, cacheScope: 'public' })
    expect(await readToWire({ contents: [], cache }, '2025-11-25')).toEqual({ contents: [] })
  })
})

describe('a resource in a prompt', () => {
  const block = async (mimeType: string, body: object, revision: (typeof revisions)[number]) => {
    const resource = { uri: 'file:///r/a', name: 'a', mimeType, ...body } as ResourceContent
    const { messages } = await promptToWire({ messages: [{ role: 'user', content: { resource } }] }, revision)
    return (messages as readonly { readonly content: object }[])[0]?.content
  }
  const bytes = Buffer.from('bytes')
  const data = bytes.toString('base64')

  test.each(revisions)(
    'is sent as an image if it is one, and as a sound if revision %s supports sounds',
    async (revision) => {
      expect(await block('image/png', { bytes }, revision)).toEqual({ type: 'image', data, mimeType: 'image/png' })
      const stream = (async function* () {
        yield bytes
      })()
      expect(await block('image/webp', { stream, length: bytes.length }, revision)).toMatchObject({
        type: 'image',
        data,
      })
      const sound = await block('audio/wav', { bytes }, revision)
      if (revision >= '2025-03-26') expect(sound).toEqual({ type: 'audio', data, mimeType: 'audio/wav' })
      else expect(sound).toMatchObject({ type: 'resource', resource: { blob: data, mimeType: 'audio/wav' } })
    },
  )

  test.each(revisions)('is embedded if it is text, or another type, in revision %s', async (revision) => {
    const drawing = await block('image/svg+xml', { text: '<svg/>' }, revision)
    expect(drawing).toMatchObject({ type: 'resource', resource: { text: '<svg/>' } })
    expect(await block('application/pdf', { bytes }, revision)).toMatchObject({
      type: 'resource',
      resource: { blob: data },
    })
    expect(await block('image/png\r\nx: y', { bytes }, revision)).toMatchObject({ type: 'resource' })
  })
})

describe('an error of a source on the wire', () => {
  test('has the data that a client can act on, and no internal cause', () => {
    const detail = { reason: 'too-large', limit: 10, fault: 'torn' } as const
    for (const kind of ['invalid', 'too-large'] as const)
      expect(errorToWire(new ResourceError(kind, 'Too large.', detail), '2026-07-28', undefined, () => {})).toEqual({
        code: -32602,
        message: 'Too large.',
        data: { reason: 'too-large', limit: 10 },
      })
  })
})
