import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  type Assembled,
  type AssembleOptions,
  assemble,
  createAssembleTool,
  type Format,
  formats,
  manifestFor,
  openCounter,
  parseManifest,
} from '../../src/context/index.ts'
import { createCatalog } from '../../src/core/catalog.ts'
import type { JsonObject } from '../../src/core/tool.ts'
import { awkwardText } from '../support/awkward-text.ts'
import { memory } from '../support/memory.ts'
import { volumeOf } from '../support/volume.ts'

const now = Date.parse('2026-01-31T00:00:00Z')
const ada = { id: 'ada', roles: [] }
const uri = (path: string) => `memory://docs/${path}`
type Entries = Readonly<Record<string, string>>

const viewOf = (entries: Entries) =>
  createCatalog({ mounts: [{ address: 'memory://docs', provider: memory(entries) }] }).view(ada)
const prose = (about: string, times: number) =>
  Array.from({ length: times }, (_, n) => `Line ${n} of ${about}.`).join('\n')

/** Thirty files, each of which says less of cursors than the one before it. */
const files: Entries = Object.fromEntries(
  Array.from({ length: 30 }, (_, n) => [
    `file-${String(n).padStart(2, '0')}.md`,
    `# Part ${n}\n\n${prose('cursors', 31 - n)}\n\n## Rest ${n}\n\n${prose(`topic ${n}`, 20)}`,
  ]),
)
const base = { query: 'cursors', budget: 4000, now } satisfies AssembleOptions
const assembled = (entries: Entries, more: Partial<AssembleOptions> = {}) =>
  assemble(viewOf(entries), { ...base, ...more })

/** How many characters two texts have in common in front. */
function inCommon(a: string, b: string): number {
  let at = 0
  while (at < Math.min(a.length, b.length) && a[at] === b[at]) at++
  return at
}

/** What is said to be as it was is so, to the byte, and is counted exactly. */
async function expectReused(before: Assembled, after: Assembled): Promise<void> {
  const counter = await openCounter('o200k_base')
  const reused = after.reusedPrefixTokens ?? Number.NaN
  const common = before.text.slice(0, inCommon(before.text, after.text))
  expect(await counter.count(common)).toBeGreaterThanOrEqual(reused)
  expect(after.tokens).toBe(await counter.count(after.text))
}

describe('a context that is given the manifest of an earlier context', () => {
  test('of the same question is the same text as the earlier one, and counts as completely reused', async () => {
    const before = await assembled(files)
    const after = await assembled(files, { earlier: before.manifest })
    expect(after.text).toBe(before.text)
    expect(after.reusedPrefixTokens).toBe(before.tokens)
    expect(before).not.toHaveProperty('reusedPrefixTokens')
  })

  test('keeps the beginning of the earlier text when a later file changes, even if files would now rank differently', async () => {
    const before = await assembled(files)
    const last = before.items.at(-3)?.uri.slice(uri('').length) ?? ''
    const changed = { ...files, [last]: `${prose('cursors', 32)}\n${files[last]}`, 'new.md': prose('cursors', 33) }
    const free = await assembled(changed)
    const after = await assembled(changed, { earlier: before.manifest })
    // Without the earlier one, what is better now comes first.
    expect(inCommon(before.text, free.text)).toBeLessThan(before.text.length / 4)
    expect(inCommon(before.text, after.text)).toBeGreaterThan(before.text.length / 2)
    expect(after.reusedPrefixTokens).toBeGreaterThan(before.tokens / 2)
    await expectReused(before, after)
    expect(after.tokens).toBeLessThanOrEqual(base.budget)
    // What is new is there all the same.
    expect(after.items.map((item) => item.uri)).toContain(uri('new.md'))
    expect(await assembled(changed, { earlier: before.manifest })).toEqual(after)
  })

  test('reuses the earlier text up to a changed file, which stays in its place', async () => {
    const before = await assembled(files)
    const [first, second, third] = before.items.map((item) => item.uri)
    const path = third?.slice(uri('').length) ?? ''
    const after = await assembled({ ...files, [path]: `One more line.\n${files[path]}` }, { earlier: before.manifest })
    expect(after.items.slice(0, 3).map((item) => item.uri)).toEqual([first, second, third])
    const head = before.tokens - before.items.reduce((sum, item) => sum + item.tokens, 0)
    const two = before.items.slice(0, 2).reduce((sum, item) => sum + item.tokens, head)
    expect(after.reusedPrefixTokens).toBe(two)
    await expectReused(before, after)
  })

  test('does not show deleted and excluded resources again', async () => {
    const before = await assembled(files)
    const second = before.items[1]?.uri.slice(uri('').length) ?? ''
    const { [second]: _, ...others } = files
    const after = await assembled(others, { earlier: before.manifest })
    expect(after.text).not.toContain(second)
    expect(after.items[0]?.uri).toBe(before.items[0]?.uri)
    const excluding = { earlier: before.manifest, excludes: [uri(second)] }
    expect((await assembled(files, excluding)).text).not.toContain(second)
  })

  test('is made for its own question, budget and format where they differ from the earlier ones', async () => {
    const before = await assembled(files)
    const { manifest: earlier } = before
    const about = { query: 'topic 27' }
    const other = await assembled(files, { ...about, earlier })
    const free = await assembled(files, about)
    expect(other.items.map((item) => item.uri)).toContain(free.items[0]?.uri)
    expect((await assembled(files, { earlier, budget: 500 })).tokens).toBeLessThanOrEqual(500)
    expect((await assembled(files, { earlier, format: 'xml' })).reusedPrefixTokens).toBe(0)
    const large = await assembled(files, { earlier, budget: 20_000 })
    expect(large.tokens).toBeGreaterThan(1.5 * before.tokens)
  })

  test('shows the same lines of an unchanged file when the rarity of words has changed', async () => {
    const long = Array.from(
      { length: 12 },
      (_, n) => `## Chapter ${n}\n\n${prose(n % 4 === 0 ? 'cursors' : 'weather', 40)}`,
    )
    const entries = { ...files, 'long.md': long.join('\n\n') }
    const pinned = { query: 'cursors weather', budget: 3000 }
    const before = await assembled(entries, pinned)
    const at = before.manifest.findIndex(({ level }) => level === 'windows')
    expect(at).toBeGreaterThanOrEqual(0)
    const more = { ...entries, 'z-weather.md': prose('weather', 3) }
    const after = await assembled(more, { ...pinned, earlier: before.manifest })
    expect(after.manifest[at]?.ranges).toEqual(before.manifest[at]?.ranges)
    expect(after.manifest[at]?.prefix).toBe(before.manifest[at]?.prefix)
  })
})

test('a context with an earlier manifest never exceeds the budget, and never overstates the reused tokens', async () => {
  const folder = fc.dictionary(fc.constantFrom('a.md', 'b.ts', 'c.csv', 'd.json', 'e.txt'), awkwardText)
  const ranges = fc.array(fc.record({ start: fc.integer(), end: fc.integer() }), { maxLength: 3 })
  const forged = fc.array(
    fc.record({
      uri: fc.constantFrom('a.md', 'b.ts', 'x.md').map(uri),
      level: fc.constantFrom('link' as const, 'windows' as const, 'full' as const),
      tokens: fc.constant(1),
      ranges,
      prefix: fc.constant('0123456789abcdef'),
    }),
    { maxLength: 3 },
  )
  await fc.assert(
    fc.asyncProperty(
      folder,
      folder,
      fc.integer({ min: 0, max: 800 }),
      fc.constantFrom<Format>(...formats),
      forged,
      async (first, second, budget, format, wrong) => {
        const options = { query: 'word heading', budget, format, now }
        const before = await assemble(viewOf(first), options)
        for (const earlier of [before.manifest, [...before.manifest, ...wrong], wrong]) {
          const after = await assemble(viewOf({ ...first, ...second }), { ...options, earlier })
          expect(after.tokens).toBeLessThanOrEqual(budget)
          await expectReused(before, after)
        }
      },
    ),
    { numRuns: volumeOf(80, 20) },
  )
})

describe('the argument "earlier" of the tool assemble_context', () => {
  const call = async (entries: Entries, given: JsonObject) => {
    const tool = createAssembleTool(viewOf(entries), { now: () => now })
    return (await tool.call(given, { principal: ada, signal: new AbortController().signal })).structured ?? {}
  }

  test('takes the manifest of an earlier answer, and the answer states how much is reused', async () => {
    const before = await call(files, { query: 'cursors', budget: 4000 })
    const after = await call(files, { query: 'cursors', budget: 4000, earlier: before.manifest as JsonObject[] })
    expect(after.text).toBe(before.text)
    expect(after.reusedPrefixTokens).toBe(before.tokens)
    expect(before).not.toHaveProperty('reusedPrefixTokens')
  })

  test.each([
    [{ earlier: 'x' }, '"earlier" must be an array.'],
    [{ earlier: [1] }, '"earlier[0]" must be an entry of a manifest.'],
    [{ earlier: [{ uri: 'a:b', level: 'all' }] }, '"earlier[0].level" must be one of'],
    [{ earlier: [{ level: 'full' }] }, '"earlier[0].uri" must be a URI.'],
    [{ earlier: [{ uri: 'a:b', level: 'full', ranges: 1 }] }, '"earlier[0].ranges" must be an array'],
    [{ earlier: [{ uri: 'a:b', level: 'full', prefix: 1 }] }, '"earlier[0].prefix" must be a string.'],
  ] satisfies [JsonObject, string][])('is refused for %j', async (given, message) => {
    await expect(call(files, given)).rejects.toThrow(message)
  })
})

test('a manifest keeps the fields for "earlier" through JSON', async () => {
  const before = await assembled(files)
  const after = await assembled(files, { earlier: before.manifest })
  const manifest = manifestFor(base, after)
  expect(manifest.reusedPrefixTokens).toBe(before.tokens)
  expect(parseManifest(JSON.stringify(manifest))).toEqual(manifest)
})
