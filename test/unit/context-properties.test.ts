import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { ResourceForm } from '../../src/context/forms.ts'
import {
  type Assembled,
  type AssembleOptions,
  assemble,
  type Encoding,
  encodings,
  type Format,
  formats,
  openCounter,
} from '../../src/context/index.ts'
import { type PackItem, pack } from '../../src/context/prefix.ts'
import { type RenderedPart, rendererOf } from '../../src/context/render.ts'
import { createCatalog } from '../../src/core/catalog.ts'
import { ResourceError } from '../../src/core/errors.ts'
import type { View } from '../../src/core/view.ts'
import { awkwardText } from '../support/awkward-text.ts'
import { memory } from '../support/memory.ts'
import { volumeOf } from '../support/volume.ts'

const now = Date.parse('2026-01-31T00:00:00Z')

const folder = fc.dictionary(
  fc.constantFrom('a.md', 'b.ts', 'c.csv', 'd.json', 'e`f.txt', 'dir/"g"&<h>.md', '日本/語.md', 'dir/i', 'j.log'),
  fc.record(
    {
      text: awkwardText,
      title: awkwardText.map((text) => text.toWellFormed()),
      priority: fc.constantFrom(0, 0.3, 0.5, 0.9, 1),
      modified: fc.integer({ min: 0, max: now + 1e9 }),
    },
    { requiredKeys: ['text'] },
  ),
)
const options = fc.record({
  query: fc.oneof(fc.constantFrom('', 'word', 'heading export', '日本語 文章'), awkwardText),
  budget: fc.integer({ min: 0, max: 1500 }),
  cap: fc.constantFrom(100, 400, 5000),
  reserve: fc.constantFrom(0, 0.03),
  encoding: fc.constantFrom<Encoding>(...encodings),
  format: fc.constantFrom<Format>(...formats),
})

/** What nobody may see, and what is excluded, say something that nothing else does. */
const canary = 'canaryword'

function viewOf(entries: Parameters<typeof memory>[0]): View {
  const provider = memory({ ...entries, 'denied/x.md': `${canary} word`, 'excluded/y.md': `${canary} word heading` })
  const catalog = createCatalog({
    mounts: [{ address: 'memory://m', provider, access: (_, path) => !path.startsWith('denied/') }],
  })
  return catalog.view({ id: 'ada', roles: [] })
}
const always = { now, excludes: ['memory://m/excluded/'] } satisfies Partial<AssembleOptions>

/** What is assembled. `undefined`: what is required does not fit, and nothing else is wrong. */
async function assembled(view: View, given: AssembleOptions): Promise<Assembled | undefined> {
  return assemble(view, given).catch((error: unknown) => {
    if (error instanceof ResourceError && error.detail.reason === 'budget') return undefined
    throw error
  })
}

test('no context exceeds its budget, or shows denied or excluded resources, and equal input gives equal contexts', async () => {
  await fc.assert(
    fc.asyncProperty(folder, options, async (entries, given) => {
      const view = viewOf(entries)
      const first = await assembled(view, { ...always, ...given })
      if (first === undefined) return
      const counter = await openCounter(given.encoding)
      expect(await counter.count(first.text)).toBe(first.tokens)
      expect(first.tokens).toBeLessThanOrEqual(given.budget)
      expect(first.text.isWellFormed()).toBe(true)
      expect(JSON.stringify([first.text, first.items, first.omitted, first.manifest])).not.toMatch(
        new RegExp(`${canary}|denied/|excluded/`),
      )
      expect(await assemble(view, { ...always, ...given })).toEqual(first)
    }),
    { numRuns: volumeOf(120, 20) },
  )
})

test('of two budgets, the smaller one never gives a context with more tokens', async () => {
  await fc.assert(
    fc.asyncProperty(folder, options, fc.integer({ min: 0, max: 800 }), async (entries, given, more) => {
      const view = viewOf(entries)
      const small = await assembled(view, { ...always, ...given })
      const large = await assembled(view, { ...always, ...given, budget: given.budget + more })
      if (small !== undefined) expect(small.tokens).toBeLessThanOrEqual(large?.tokens ?? -1)
    }),
    { numRuns: volumeOf(60, 20) },
  )
})

test('packing a context stays within the budget, takes no less with a larger budget, and leaves out only items that do not fit', async () => {
  const items = fc.array(
    fc.record({
      score: fc.integer({ min: 1, max: 100 }),
      options: fc.array(
        fc.record({ tokens: fc.integer({ min: 1, max: 300 }), worth: fc.double({ min: 0.01, max: 1, noNaN: true }) }),
        {
          maxLength: 4,
        },
      ),
    }),
    { maxLength: 20 },
  )
  await fc.assert(
    fc.asyncProperty(items, fc.nat(1000), fc.nat(300), fc.nat(400), async (given, budget, more, cap) => {
      const named: PackItem[] = given.map((item, index) => ({ ...item, uri: `x:${index}` }))
      const limits = { budget, cap, frame: 20, items: 15 }
      const packed = await pack(named, limits)
      const larger = await pack(named, { ...limits, budget: budget + more })
      if (packed === undefined || larger === undefined) throw new Error('nothing is required')
      expect(packed.tokens).toBeLessThanOrEqual(budget)
      expect(larger.tokens).toBeGreaterThanOrEqual(packed.tokens)
      const sum = [...packed.taken].reduce((all, [item, at]) => all + (item.options[at]?.tokens ?? 0), 0)
      expect(packed.tokens).toBe(packed.taken.size === 0 ? 0 : sum + 20)
      if (packed.taken.size >= 15) return
      const frame = packed.taken.size === 0 ? 20 : 0
      const left = named.filter((item) => !packed.taken.has(item)).flatMap((item) => item.options)
      expect(left.every(({ tokens }) => packed.tokens + tokens + frame > budget)).toBe(true)
    }),
    { numRuns: volumeOf(500) },
  )
})

test('packing a context gives the same result if tokens are counted only near the budget', async () => {
  const option = fc.record({
    least: fc.integer({ min: 1, max: 300 }),
    more: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 300 })),
    worth: fc.constantFrom(0.01, 0.05, 0.15, 0.5, 0.9, 1),
  })
  const items = fc.array(
    fc.record({ score: fc.integer({ min: 1, max: 20 }), options: fc.array(option, { maxLength: 5 }) }),
    {
      maxLength: 20,
    },
  )
  let counted = 0
  let all = 0
  await fc.assert(
    fc.asyncProperty(items, fc.nat(1500), fc.nat(400), async (given, budget, cap) => {
      const limits = { budget, cap, frame: 20, items: 15 }
      const exact: PackItem[] = given.map(({ score, options }, index) => ({
        uri: `x:${index}`,
        score,
        options: options.map(({ least, more, worth }) => ({ tokens: least + more, worth })),
      }))
      const late: PackItem[] = given.map(({ score, options }, index) => ({
        uri: `x:${index}`,
        score,
        options: options.map(({ least, more, worth }) => {
          all++
          const one: ResourceForm = {
            part: { resource: { uri: `x:${index}`, name: 'x' }, level: 'full' },
            tokens: least,
            worth,
            count: async () => {
              counted++
              one.tokens = least + more
              one.count = undefined
            },
          }
          return one
        }),
      }))
      const takenOf = ({ taken, tokens }: NonNullable<Awaited<ReturnType<typeof pack>>>) => ({
        tokens,
        taken: [...taken].map(([{ uri }, at]) => `${uri} ${at}`).sort(),
      })
      const [first, second] = [await pack(exact, limits), await pack(late, limits)]
      if (first === undefined || second === undefined) throw new Error('nothing is required')
      expect(takenOf(second)).toEqual(takenOf(first))
    }),
    { numRuns: volumeOf(500) },
  )
  expect(counted).toBeLessThan(0.8 * all)
})

const unescapes: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', '#13': '\r' }

/** Reads the whole texts back, knowing nothing but the format. */
const readers: Readonly<Record<Format, (text: string) => readonly (string | undefined)[]>> = {
  json: (text) => (JSON.parse(text) as { type: string; text: string }[]).slice(1).map((one) => one.text),
  mcp: (text) =>
    text
      .trimEnd()
      .split('\n')
      .slice(1)
      .map((line) => (JSON.parse(line) as { resource: { text: string } }).resource.text),
  xml: (text) =>
    [...text.matchAll(/<document [^<>]*>([^<>]*)<\/document>/g)].map(([, body = '']) =>
      body.replace(/&(amp|lt|gt|quot|#13);/g, (_, name: string) => unescapes[name] ?? ''),
    ),
  markdown: (text) => {
    const bodies: string[] = []
    const lines = text.split('\n')
    for (let at = 0; at < lines.length; at++) {
      const fence = /^(`{3,})[a-z0-9]*$/.exec(lines[at] ?? '')?.[1]
      if (fence === undefined) continue
      const end = lines.indexOf(fence, at + 1)
      bodies.push(lines.slice(at + 1, end).join('\n'))
      at = end
    }
    return bodies
  },
}

test.each(formats)('a whole text in a context in %s can be parsed back unchanged', (format) => {
  const renderer = rendererOf(format)
  // biome-ignore lint/suspicious/noControlCharactersInRegex: XML has no way to hold these
  const impossible = /[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]/g
  fc.assert(
    fc.property(fc.array(fc.tuple(awkwardText, awkwardText), { minLength: 1, maxLength: 4 }), (given) => {
      const bodies = given.map(([text]) => {
        const body = text.toWellFormed()
        return format === 'xml' ? body.replace(impossible, '') : body
      })
      const parts = bodies.map((body, index): RenderedPart => {
        const resource = { uri: `x:/${given[index]?.[1] ?? ''}`, name: 'x', mimeType: 'text/plain' }
        return { resource, level: 'full', body }
      })
      const text = [renderer.head, ...parts.map((part, index) => renderer.part(part, index + 1)), renderer.tail].join(
        '',
      )
      expect(readers[format](text)).toEqual(bodies)
    }),
    { numRuns: volumeOf(200) },
  )
})
