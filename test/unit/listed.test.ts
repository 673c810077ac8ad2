import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createScrubber } from '../../src/core/scrub.ts'
import type { Resource } from '../../src/core/view.ts'
import { createEgress } from '../../src/server/protocol/egress.ts'
import { encodeMessage, formatMessage } from '../../src/server/protocol/messages.ts'
import { revisions } from '../../src/server/protocol/revisions.ts'
import { resourcesToWire } from '../../src/server/protocol/wire.ts'
import { resourcesToText } from '../../src/server/tools/shown.ts'

const text = fc.oneof(
  fc.string(),
  fc.string({ unit: 'binary' }),
  fc.constantFrom('a"b', 'a\\b', 'a\u0085b', '\u2028', '\ud800', '\u202e', 'text/plain', 'x;y', 'größe.md'),
)
const number = fc.oneof(fc.integer(), fc.double(), fc.constantFrom(0, 1024, 1_795_498_394_843, 2 ** 60))
const resource = fc.record<Resource>(
  {
    uri: fc.oneof(text, fc.constant('file:///r/a%20b.md')),
    name: text,
    title: text,
    description: text,
    mimeType: text,
    size: number,
    modified: number,
    version: text,
    priority: number,
    audience: fc.constantFrom([], ['user'], ['user', 'assistant']) as fc.Arbitrary<readonly ('user' | 'assistant')[]>,
    icons: fc.constantFrom([], [{ src: 'https://example.org/a.png' }]),
    meta: fc.dictionary(fc.string(), fc.jsonValue()),
  },
  { requiredKeys: ['uri', 'name'] },
)
/** What the files of a folder have: these are written without an object for each. */
const file = fc.record<Resource>(
  {
    uri: text,
    name: text,
    mimeType: fc.constantFrom('text/plain', 'image/png'),
    size: fc.nat(),
    modified: number,
    version: text,
  },
  { requiredKeys: ['uri', 'name', 'size'] },
)
const page = fc.record({
  items: fc.array(fc.oneof(resource, file), { maxLength: 300 }),
  cache: fc.constant({ ttlMs: 0, scope: 'private' } as const),
})
const request = { jsonrpc: '2.0', id: 1, method: 'resources/list' } as const
const answer = (result: Record<string, unknown>) => ({ jsonrpc: '2.0', id: 1, result }) as const

describe('a page that is written as text', () => {
  test('has the same bytes as one that is made of objects, in every revision', async () => {
    await fc.assert(
      fc.asyncProperty(page, fc.constantFrom(...revisions), async (one, revision) => {
        const written = answer(await resourcesToText(one, revision))
        const plain = formatMessage(answer(resourcesToWire(one, revision)))
        expect((await encodeMessage(written)).toString()).toBe(plain)
        expect(formatMessage(written)).toBe(plain)
      }),
      { numRuns: 60 },
    )
  })

  test('loses the same secrets', async () => {
    const secrets = ['s3cr"t-value', 'back\\slash-key', 'zeile\u2028ende', 'plain-secret-1', 'tab\tsecret']
    const egress = createEgress(createScrubber(secrets))
    const holding = fc
      .tuple(fc.constantFrom(...secrets, 'nothing of it', ...secrets.map((one) => JSON.stringify(one))), text, text)
      .map(([secret, before, after]) => `${before}${secret}${after}`)
    const given = fc.record<Resource>(
      { uri: text, name: holding, description: holding, version: holding, size: fc.nat() },
      { requiredKeys: ['uri', 'name'] },
    )
    await fc.assert(
      fc.asyncProperty(fc.array(fc.oneof(file, given), { maxLength: 8 }), async (items) => {
        const one = { items, cache: { ttlMs: 0, scope: 'private' } as const }
        const written = egress(answer(await resourcesToText(one, '2026-07-28')), request)
        const plain = egress(answer(resourcesToWire(one, '2026-07-28')), request)
        expect(formatMessage(written)).toBe(formatMessage(plain))
      }),
      { numRuns: 200 },
    )
  })

  test('is an error when it is longer than the limit', async () => {
    const items = Array.from({ length: 100 }, (_, at) => ({ uri: `file:///r/${at}`, name: `${at}`, size: at }))
    const written = answer(await resourcesToText({ items, cache: { ttlMs: 0, scope: 'private' } }, '2026-07-28'))
    expect(JSON.parse(formatMessage(written, 1000))).toMatchObject({ error: { data: { reason: 'too-large' } } })
  })
})
