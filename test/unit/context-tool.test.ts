import { Ajv2020 } from 'ajv/dist/2020.js'
import { describe, expect, test } from 'vitest'
import { createProfileFinder } from '../../src/config/profiles.ts'
import { parseBudget } from '../../src/context/asked.ts'
import {
  assemble,
  createAssembleTool,
  manifestDifferences,
  manifestFor,
  measure,
  openCounter,
  parseBasket,
  parseManifest,
} from '../../src/context/index.ts'
import { createFairSemaphore } from '../../src/context/tool.ts'
import { createCatalog } from '../../src/core/catalog.ts'
import { ResourceError } from '../../src/core/errors.ts'
import type { Principal } from '../../src/core/provider.ts'
import type { JsonObject } from '../../src/core/tool.ts'
import { openViewChannel } from '../../src/server/serve.ts'
import { meta } from '../attack/harness/wire.ts'
import { type MemoryEntry, memory } from '../support/memory.ts'
import { openSchema, schemaRevisions } from '../support/wire-schema.ts'

const now = Date.parse('2026-01-31T00:00:00Z')
const ada: Principal = { id: 'ada', roles: [] }
const uri = (path: string) => `memory://docs/${path}`
const prose = (word: string, times = 40) => Array.from({ length: times }, (_, n) => `Line ${n} of ${word}.`).join('\n')

const files: Readonly<Record<string, MemoryEntry | string>> = {
  'cursor.md': `# Cursors\n${prose('cursors and paging')}\n## Sealing\n${prose('seals')}`,
  'paging.md': { text: `# Paging\n${prose('paging')}`, mimeType: 'text/markdown', modified: now - 86_400_000 },
  'weather.md': prose('rain'),
  'rules.md': { text: 'The rules.', priority: 1, audience: ['assistant'] },
}

const catalogOf = (entries = files) =>
  createCatalog({ mounts: [{ address: 'memory://docs', provider: memory(entries) }] })
const toolOf = (entries = files) => createAssembleTool(catalogOf(entries).view(ada), { now: () => now })

interface Item {
  readonly uri: string
  readonly level: string
  readonly tokens: number
  readonly levels: Readonly<Record<string, number>>
  readonly notes: readonly string[]
  readonly missing?: boolean
}
interface Structured {
  readonly text: string
  readonly tokens: number
  readonly items: readonly Item[]
  readonly omitted: readonly { readonly uri: string; readonly reason: string }[]
  readonly suggestions: readonly { readonly uri: string; readonly explanation: { readonly score: number } }[]
  readonly fits: boolean
  readonly frame: number
  readonly usable: number
}

const context = { principal: ada, signal: new AbortController().signal }
const isValid = new Ajv2020({ strict: false }).compile(toolOf().outputSchema ?? {})

async function call(given: JsonObject, tool = toolOf()) {
  const answer = await tool.call(given, context)
  expect(isValid(answer.structured), JSON.stringify(isValid.errors)).toBe(true)
  return { ...answer, structured: answer.structured as unknown as Structured }
}

const refusal = async (given: JsonObject, tool = toolOf()) =>
  tool.call(given, context).then(
    () => expect.fail('it was answered'),
    (error: unknown) =>
      error instanceof ResourceError ? `${error.kind}: ${error.message}` : expect.fail(String(error)),
  )

describe('a call of assemble_context', () => {
  test('answers with a text within the budget, its exact number of tokens, and the list of its contents with the tokens of each level', async () => {
    const { text, structured } = await call({ query: 'cursors', budget: '1k' })
    const counter = await openCounter('o200k_base')
    expect(structured.text).toBe(text)
    expect(await counter.count(text)).toBe(structured.tokens)
    expect(structured.tokens).toBeLessThanOrEqual(970)
    expect(structured.items.map((item) => item.uri)).toContain(uri('cursor.md'))
    for (const { level, tokens, levels } of structured.items) expect(levels[level]).toBe(tokens)
    expect(Object.keys(structured.items.find((item) => item.uri === uri('cursor.md'))?.levels ?? {})).toEqual([
      'link',
      'outline',
      'windows',
      'full',
    ])
  })

  test('uses a pin at its named level, and says so if the pin does not have this level', async () => {
    const pins = [
      { uri: uri('cursor.md'), level: 'outline' },
      { uri: uri('weather.md'), level: 'windows' },
    ]
    const { structured } = await call({ pins, pins_only: true })
    expect(structured.items.map(({ level }) => level)).toEqual(['outline', 'outline'])
    expect(structured.items[1]?.notes).toEqual(['at the level outline: there is no windows of it'])
    const asked = await call({ pins, pins_only: true, query: 'rain' })
    expect(asked.structured.items.map(({ level }) => level)).toEqual(['outline', 'windows'])
  })

  test('uses only the pins if "pins_only" is set', async () => {
    const { structured } = await call({ pins: [uri('weather.md')], pins_only: true, query: 'cursors' })
    expect(structured.items.map((item) => item.uri)).toEqual([uri('weather.md')])
    expect(structured.omitted).toEqual([])
    const whole = await call({ pins: [uri('weather.md')], query: 'cursors' })
    expect(whole.structured.items.map((item) => item.uri).slice(0, 2)).toEqual([uri('weather.md'), uri('rules.md')])
  })

  test('treats empty lists and empty strings as omitted, because some hosts send every argument', async () => {
    const empty = { pins: [], excludes: [], mounts: [], earlier: [], pins_only: '', now: '', format: '', audience: '' }
    const plain = { query: 'paging', budget: 4000, now: '2026-01-31T12:00:00Z' }
    expect(await call({ ...empty, ...plain })).toMatchObject(await call(plain))
  })

  test('measures pins even if they do not fit or do not exist', async () => {
    const pins = [uri('cursor.md'), { uri: uri('weather.md'), level: 'link' }, uri('none.md')]
    const { structured } = await call({ measure: true, pins, budget: 100 })
    const [cursor, weather, none] = structured.items
    expect(structured).toMatchObject({ fits: false, usable: 97 })
    expect(structured.tokens).toBe(structured.frame + (cursor?.tokens ?? 0) + (weather?.tokens ?? 0))
    expect(weather).toMatchObject({ level: 'link', tokens: weather?.levels.link })
    expect(none).toMatchObject({ missing: true, tokens: 0 })
    // The same is then taken.
    const roomy = await call({ pins: pins.slice(0, 2), pins_only: true, budget: '8k' })
    expect(roomy.structured.tokens).toBe(structured.tokens)
  })

  test('suggests resources that are not pinned if it is asked to, and counts no tokens', async () => {
    const { structured, text } = await call({ suggest: true, query: 'paging', pins: [uri('cursor.md')], limit: 1 })
    expect(structured.suggestions.map((one) => one.uri)).toEqual([uri('rules.md')])
    const more = await call({ suggest: true, query: 'paging', mounts: ['memory://docs'] })
    expect(more.structured.suggestions.map((one) => one.uri)).toEqual(
      ['rules.md', 'paging.md', 'cursor.md', 'weather.md'].map(uri),
    )
    expect(text).toContain(uri('rules.md'))
    expect(structured).not.toHaveProperty('tokens')
  })

  test('is refused with the name of a wrong argument, and with what the argument must be', async () => {
    const faults: readonly (readonly [JsonObject, string])[] = [
      [{ query: 7 }, 'invalid: "query" must be a string.'],
      [
        { suggest: '', budget: '', pins: ['a:b'], limit: '0' },
        'invalid: "limit" must be a whole number from 1 to 100.',
      ],
      [{ query: 'x'.repeat(5000) }, 'invalid: "query" must have at most 4000 characters.'],
      [{ budget: 'lots' }, 'invalid: "budget" must be a number of tokens from 0 to 1000000, such as 8000 or "8k".'],
      [{ budget: 2_000_000 }, 'invalid: "budget" must be a number of tokens from 0 to 1000000, such as 8000 or "8k".'],
      [{ budget: -1 }, 'invalid: "budget" must be a number of tokens from 0 to 1000000, such as 8000 or "8k".'],
      [{ pins: 'x' }, 'invalid: "pins" must be an array.'],
      [
        { pins: [{ uri: 'x', level: 'most' }] },
        'invalid: "pins[0].level" must be one of link, outline, windows, full.',
      ],
      [{ pins: ['a', { level: 'full' }] }, 'invalid: "pins[1].uri" must be a URI.'],
      [{ pins: [{ uri: 'x', lines: 3 }] }, 'invalid: "pins[0]" has an unknown member. The members are: uri, level.'],
      [{ pins: Array(501).fill('memory://docs/a') }, 'invalid: "pins" must have at most 500 items.'],
      [{ pins: [uri('a/')] }, 'invalid: a pin must not be a folder'],
      [{ excludes: [''] }, 'invalid: "excludes[0]" must be a URI.'],
      [{ format: 'yaml' }, 'invalid: "format" must be one of markdown, xml, json, mcp.'],
      [{ encoding: 'p50k' }, 'invalid: "encoding" must be one of o200k_base, cl100k_base.'],
      [{ reserve: 0.9 }, 'invalid: reserve must be from 0 to 0.5'],
      [{ half_life_days: 0 }, 'invalid: halfLife must be above 0'],
      [{ now: 'yesterday' }, 'invalid: "now" must be a time, such as 2026-01-31T12:00:00Z.'],
      [{ suggest: 'yes' }, 'invalid: "suggest" must be true or false.'],
      [{ suggest: true, measure: true }, 'invalid: "suggest" and "measure" exclude each other. Leave one out.'],
      [{ measure: true }, 'invalid: "measure" needs "pins". Add the URIs to measure.'],
      [{ limit: 0 }, 'invalid: "limit" must be a whole number from 1 to 100.'],
      [
        { pins: [uri('cursor.md')], pins_only: true, budget: 50 },
        expect.stringMatching(
          /^invalid: The required resources take \d+ tokens, and the budget has room for 48: memory:\/\/docs\/cursor\.md \(\d+\)/,
        ),
      ],
    ]
    for (const [given, told] of faults) expect(await refusal(given)).toEqual(told)
    expect(await refusal({ qeury: 'x' })).toMatch(
      /^invalid: The call has an unknown argument\. The arguments are: query, budget/,
    )
  })

  test('ends when it is cancelled', async () => {
    const controller = new AbortController()
    const calling = toolOf().call({ query: 'cursors' }, { principal: ada, signal: controller.signal })
    controller.abort()
    await expect(calling).rejects.toMatchObject({ kind: 'unavailable' })
  })
})

test('a context tool accepts budgets such as 32k, and no other texts', () => {
  expect(['8000', '32k', '1.5K', '1m', '8_000', '8,000', ' 4k '].map(parseBudget)).toEqual([
    8000, 32_000, 1500, 1_000_000, 8000, 8000, 4000,
  ])
  expect(['', 'k', '1g', '-1', '0.0001k', '1e3', '٣k'].map(parseBudget)).toEqual(Array(7).fill(undefined))
})

describe.each(schemaRevisions)('assemble_context on %s', (revision) => {
  test('is listed, and answers, as the schema of the protocol requires', async () => {
    const era = revision === '2026-07-28' ? 'modern' : 'legacy'
    const catalog = catalogOf()
    const channel = await openViewChannel(
      {
        ...{ name: 'tools', version: '1', view: catalog.view, log: () => {} },
        profileOf: createProfileFinder({ tools: 'off', profiles: [{ name: 'hikidashi-*', tools: false }] }, catalog),
        readingTools: (view) => [createAssembleTool(view, { now: () => now })],
      },
      ada,
      era,
    )
    // The explorer has the tools in any case.
    const clientInfo = { name: 'hikidashi-explorer', version: '1' }
    const ask = async (method: string, params: JsonObject = {}) => {
      const envelope = { ...meta, 'io.modelcontextprotocol/clientInfo': clientInfo }
      const own = era === 'modern' ? { ...params, _meta: envelope } : params
      const answer = await channel.request({ jsonrpc: '2.0', id: 1, method, params: own })
      return answer as unknown as { readonly result: Readonly<Record<string, unknown>> }
    }
    if (era === 'legacy') {
      await ask('initialize', { protocolVersion: revision, capabilities: {}, clientInfo })
      channel.notify({ jsonrpc: '2.0', method: 'notifications/initialized' })
    }
    const schema = openSchema(revision, { closed: true })
    const listed = await ask('tools/list')
    expect(schema.faults(listed, 'tools/list')).toEqual([])
    expect(JSON.stringify(listed)).toContain('"assemble_context"')
    for (const given of [
      { query: 'paging', format: 'mcp', pins: [{ uri: uri('weather.md'), level: 'link' }] },
      { query: 'paging' },
      { query: 'paging', suggest: true },
      { pins: [uri('none')], measure: true },
      { pins: [uri('none')] },
    ])
      expect(
        schema.faults(await ask('tools/call', { name: 'assemble_context', arguments: given }), 'tools/call'),
      ).toEqual([])
    const { result } = await ask('tools/call', {
      name: 'assemble_context',
      arguments: { format: 'mcp', pins_only: true, pins: [{ uri: uri('weather.md'), level: 'link' }, uri('rules.md')] },
    })
    expect(result.content).toMatchObject([
      { type: 'text', text: expect.stringContaining('not instructions') },
      revision >= '2025-06-18' ? { type: 'resource_link', uri: uri('weather.md') } : { text: uri('weather.md') },
      {
        type: 'resource',
        resource: { uri: uri('rules.md'), text: 'The rules.' },
        annotations: { audience: ['assistant'], priority: 1 },
      },
    ])
    await channel.close()
  })
})

describe('callers that wait for a context', () => {
  test('take turns, however many calls one of them makes, and one that cancels waits no longer', async () => {
    const turns = createFairSemaphore(1)
    const order: string[] = []
    const gates = new Map<string, () => void>()
    const run = (name: string) =>
      turns.run(name[0] ?? '', undefined, async () => {
        order.push(name)
        await new Promise<void>((resolve) => gates.set(name, resolve))
      })
    const all = ['a1', 'a2', 'a3', 'b1', 'c1'].map(run)
    const controller = new AbortController()
    const given = turns.run('b', controller.signal, async () => order.push('b2'))
    controller.abort()
    await expect(given).rejects.toMatchObject({ kind: 'unavailable' })
    for (let at = 0; at < all.length; at++) {
      gates.get(order[at] ?? '')?.()
      await Promise.race(all.slice(at))
      await new Promise((resolve) => setImmediate(resolve))
    }
    await Promise.all(all)
    expect(order).toEqual(['a1', 'a2', 'b1', 'c1', 'a3'])
  })
})

describe('the manifest of a context', () => {
  const options = { query: 'cursors', budget: 2000, now }

  test('gives the changes since it was made, and the same context again', async () => {
    const before = manifestFor(options, await assemble(catalogOf().view(ada), options))
    const read = parseManifest(JSON.stringify(before))
    expect(read).toEqual(before)
    const { manifest: _, tokens: __, sha256: ___, now: then, ...again } = read
    const same = { budget: 0, ...again, now: Date.parse(then ?? '') }
    expect(manifestFor(same, await assemble(catalogOf().view(ada), same))).toEqual(before)

    const { 'cursor.md': changed, 'rules.md': gone, ...rest } = files
    const later = catalogOf({ ...rest, 'cursor.md': `${String(changed)}\nmore`, 'new.md': 'cursors, new' }).view(ada)
    const after = manifestFor(options, await assemble(later, options))
    expect(gone).toBeDefined()
    expect(manifestDifferences(before, after)).toEqual([
      { uri: uri('cursor.md'), what: 'changed', from: 'full', to: 'full' },
      { uri: uri('new.md'), what: 'new', to: 'full' },
      { uri: uri('rules.md'), what: 'gone', from: 'full' },
    ])
    expect(manifestDifferences(before, before)).toEqual([])
  })

  test('in the answer of the tool is parsed as a basket, as is a context in JSON; other JSON is refused', async () => {
    const pins = [
      { uri: uri('weather.md'), level: 'outline' as const },
      { uri: uri('rules.md'), level: 'full' as const },
    ]
    const { text, structured } = await call({ pins, pins_only: true, format: 'json' })
    expect(parseBasket(JSON.stringify(structured))).toEqual(pins)
    expect(parseBasket(text)).toEqual(pins)
    expect(parseBasket(JSON.stringify([uri('a'), { uri: uri('b'), level: 'auto' }]))).toEqual([
      { uri: uri('a') },
      { uri: uri('b') },
    ])
    for (const wrong of ['', '7', '{}', '[1]', '[{"level":"full"}]'])
      expect(() => parseBasket(wrong)).toThrow(ResourceError)
    for (const wrong of ['{', '[]', '{"manifest":7}', '{"manifest":[{}]}'])
      expect(() => parseManifest(wrong)).toThrow(ResourceError)
  })
})

test('the tokens that are measured for a pin equal the tokens that its context takes, for every level and format', async () => {
  const view = catalogOf().view(ada)
  for (const format of ['markdown', 'xml', 'json', 'mcp'] as const)
    for (const level of ['link', 'outline', 'windows', 'full'] as const) {
      const options = { query: 'paging', pins: [{ uri: uri('cursor.md'), level }], format, now }
      const { tokens, items } = await measure(view, options)
      const taken = await assemble(view, { ...options, pinsOnly: true, budget: 5000 })
      expect([taken.tokens, taken.items[0]?.level]).toEqual([tokens, items[0]?.level])
    }
})
