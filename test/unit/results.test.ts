import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { comparePaths, isPath } from '../../src/core/path.ts'
import type { Change, Content, Context, Entry } from '../../src/core/provider.ts'
import { createScrubber } from '../../src/core/scrub.ts'
import {
  formatReport,
  hashPrompt,
  type NewAnalysis,
  normalizePrompt,
  type Results,
  type ResultsOptions,
  results,
} from '../../src/providers/results/index.ts'
import { escapeName, unescapeName } from '../../src/providers/results/paths.ts'
import type { Store } from '../../src/store/index.ts'
import { failure } from '../support/mcp-servers.ts'
import { analysisOf, sqliteStore } from '../support/results.ts'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

const context = (): Context => ({ principal: { id: 'test', roles: [] }, signal: new AbortController().signal })

let store: Store
let remove: () => Promise<void>
beforeAll(async () => {
  const made = await sqliteStore()
  store = made.store
  remove = made.remove
})
afterAll(() => remove?.())

let collections = 0
/** Results that share the store with those of other tests, and nothing else. */
const fresh = (options: Partial<ResultsOptions> = {}): Results =>
  results({ store, collection: `test ${collections++}`, ...options })

const paths = async (provider: Results, query = {}): Promise<readonly string[]> => {
  const found: Entry[] = []
  for await (const entry of provider.list(query, context())) found.push(entry)
  return found.map(({ path }) => path)
}

const textAt = async (provider: Results, path: string, params: Readonly<Record<string, string>> = {}) => {
  const [content] = await provider.read({ path, params: new Map(Object.entries(params)) }, context())
  return (content as Content & { readonly text: string }).text
}
const jsonAt = async (...args: Parameters<typeof textAt>) => JSON.parse(await textAt(...args))

const future = (ms: number) => new Date(Date.now() + ms).toISOString()

/** Puts what is over in a moment: in a longer one where the machine is so slow that it is over before it is put. Answers when. */
async function putBriefly(own: Results, analysis: NewAnalysis): Promise<number> {
  for (let ms = 500; ; ms *= 2) {
    const expires = future(ms)
    const stored = await own.put({ ...analysis, expires }).catch((error: unknown) => {
      if (ms > 30_000) throw error
    })
    if (stored !== undefined) return Date.parse(expires)
  }
}

describe('a result that is stored', () => {
  test('is read as it was stored, with defaults filled in', async () => {
    const own = fresh({ ttl: 60_000, language: 'ja' })
    const { id, status, created, expires } = await own.put(analysisOf('Why?', { tags: ['b', 'a', 'b'] }))
    expect(status).toBe('created')
    expect(id).toMatch(/^[0-9a-f]{32}$/)
    expect(Date.parse(expires ?? '') - Date.parse(created)).toBe(60_000)
    expect(await jsonAt(own, `results/${id}`)).toEqual({
      ...analysisOf('Why?', { tags: ['a', 'b'] }),
      ...{ id, created, expires, language: 'ja', totalCost: 0.25 },
    })
    expect(await own.get(id)).toEqual(await jsonAt(own, `results/${id}`))
    expect(await jsonAt(own, `results/${id}/votes/model-a`)).toMatchObject({ provider: 'model-a', tokens: 120 })
  })

  test('is kept once, however often it is stored, in any order of its keys', async () => {
    const own = fresh({ ttl: 60_000 })
    const first = await own.put(analysisOf('same'))
    const [row] = await store.collection('unused').list({ limit: 1 })
    expect(row).toBeUndefined()
    const version = (await own.stat?.(`results/${first.id}`, context()))?.version
    const turned = Object.fromEntries(Object.entries(analysisOf('same')).reverse())
    for (const again of [analysisOf('same'), turned, { ...turned, id: first.id }])
      expect(await own.put(again)).toEqual({ ...first, status: 'unchanged' })
    expect((await own.stat?.(`results/${first.id}`, context()))?.version).toBe(version)
    expect(await own.put(analysisOf('same', { rounds: 2 }))).not.toMatchObject({ id: first.id })
  })

  test('gets other tags and another expiry when it is stored again with them', async () => {
    const own = fresh({ ttl: 60_000 })
    const first = await own.put(analysisOf('tagged', { tags: ['old'] }))
    const tagged = await own.put(analysisOf('tagged', { tags: ['new'] }))
    expect(tagged).toEqual({ ...first, status: 'replaced' })
    expect(await paths(own, { prefix: 'by-tag/' })).toEqual(['by-tag/new'])
    const end = future(3_600_000)
    expect(await own.put(analysisOf('tagged', { expires: end }))).toMatchObject({ status: 'replaced', expires: end })
    // What was not said stays.
    expect(await own.get(first.id)).toMatchObject({ tags: ['new'], expires: end, created: first.created })
    expect(await own.put(analysisOf('tagged'))).toMatchObject({ status: 'unchanged' })
  })

  test('replaces an earlier result with the same id', async () => {
    const own = fresh()
    await own.put(analysisOf('first', { id: 'one', tags: ['t'] }))
    expect(await own.put(analysisOf('second', { id: 'one' }))).toMatchObject({ id: 'one', status: 'replaced' })
    expect(await own.get('one')).toMatchObject({ prompt: 'second', tags: [] })
    expect(await own.lookup({ prompt: 'first' })).toMatchObject({ match: 'none' })
    expect(await own.delete('one')).toBe(true)
    expect(await own.delete('one')).toBe(false)
    expect(await paths(own)).toEqual(['recent'])
  })

  test('is created once if many store it at the same time, and is listed under exactly its own tags', async () => {
    const own = fresh()
    const statuses = await Promise.all(
      Array.from({ length: 20 }, (_, at) => own.put(analysisOf('crowd', { id: 'crowd', tags: [`t${at % 3}`] }))),
    )
    expect(statuses.filter(({ status }) => status === 'created')).toHaveLength(1)
    const { tags = [] } = (await own.get('crowd')) ?? {}
    expect(await paths(own, { prefix: 'by-tag/' })).toEqual(tags.map((tag) => `by-tag/${tag}`))
  })
})

describe('an invalid result', () => {
  const own = () => fresh({ maxBytes: 20_000 })
  const [vote] = analysisOf('x').votes
  test.each<readonly [string, unknown, string, RegExp]>([
    ['a text instead of an object', 'text', '', /must be an object/],
    ['an empty object', {}, 'prompt', /prompt: It is missing\./],
    ['a prompt of white space', analysisOf(' \n'), 'prompt', /It is empty/],
    [
      'a confidence above 1',
      analysisOf('x', { consensus: { content: '', confidence: 1.5 } }),
      'consensus.confidence',
      /and is 1\.5\./,
    ],
    ['a cost that is not a number', analysisOf('x', { totalCost: Number.NaN }), 'totalCost', /no finite number/],
    ['a fraction of a round', analysisOf('x', { rounds: 1.5 }), 'rounds', /whole number/],
    ['another task type', { ...analysisOf('x'), taskType: 'cheap' }, 'taskType', /"basic", "premium", "critical"/],
    ['no votes', analysisOf('x', { votes: [] }), 'votes', /It is empty/],
    ['two votes of one name', { ...analysisOf('x'), votes: [vote, vote] }, 'votes[1].provider', /earlier vote/],
    [
      'a vote without an answer',
      { ...analysisOf('x'), votes: [{ provider: 'a', model: 'b' }] },
      'votes[0].content',
      /a vote with "error"/,
    ],
    ['an id with ".."', analysisOf('x', { id: '../x' }), 'id', /1 to 128 characters/],
    ['an id of dots', analysisOf('x', { id: '..' }), 'id', /begin with a letter/],
    ['the id of a prototype', analysisOf('x', { id: '__proto__' }), 'id', /begin with a letter/],
    ['a long id', analysisOf('x', { id: 'x'.repeat(129) }), 'id', /1 to 128/],
    ['an id with a line end', analysisOf('x', { id: 'x\n' }), 'id', /1 to 128/],
    ['a tag with a control character', analysisOf('x', { tags: ['a\u0000'] }), 'tags[0]', /control character/],
    ['a tag with a line separator', analysisOf('x', { tags: ['a\u2028b'] }), 'tags[0]', /control character/],
    ['a tag of half a character', analysisOf('x', { tags: ['\ud800'] }), 'tags[0]', /lone surrogate/],
    ['a tag of white space', analysisOf('x', { tags: [' '] }), 'tags[0]', /white space/],
    ['an empty tag', analysisOf('x', { tags: [''] }), 'tags[0]', /It is empty/],
    [
      '10,000 tags',
      analysisOf('x', { tags: Array.from({ length: 10_000 }, (_, at) => `t${at}`) }),
      'tags',
      /It must have at most 32 items, and has 10000\./,
    ],
    [
      'a key of a prototype',
      JSON.parse(`{"__proto__":{"id":"x"},${JSON.stringify(analysisOf('x')).slice(1)}`),
      '',
      /keys are unknown: "__proto__"/,
    ],
    ['an unknown key', { ...analysisOf('x'), secret: 1 }, '', /keys are unknown: "secret"/],
    ['a huge prompt', analysisOf('x'.repeat(300_000)), 'prompt', /characters, and has 300000\./],
    ['an invalid time', analysisOf('x', { created: 'yesterday' }), 'created', /ISO 8601/],
    [
      'a time far ahead',
      analysisOf('x', { created: '2999-01-01T00:00:00Z' }),
      'created',
      /at most a day in the future/,
    ],
    ['an expiry in the past', analysisOf('x', { expires: '2001-01-01T00:00:00Z' }), 'expires', /must be in the future/],
  ])('is refused: %s', async (_, value, field, message) => {
    const error = await failure(own().put(value))
    expect(error.kind).toBe('invalid')
    expect(error.message).toMatch(message)
    expect(error.detail).toEqual({ reason: 'argument', field })
    // Nothing of a value is repeated but numbers and lengths.
    expect(error.message.length).toBeLessThan(500)
  })

  test('that would expire at once is refused, and the error names the creation time that the caller wrote', async () => {
    const error = await failure(fresh({ ttl: 60_000 }).put(analysisOf('x', { created: '2001-01-01T00:00:00Z' })))
    expect(error).toMatchObject({ kind: 'invalid', detail: { reason: 'argument', field: 'created' } })
    expect(error.message).toMatch(/^created: It is so long ago/)
  })

  test('that is larger than the limit is refused', async () => {
    const error = await failure(
      own().put(analysisOf('x', { consensus: { content: 'あ'.repeat(10_000), confidence: 1 } })),
    )
    expect(error).toMatchObject({ kind: 'invalid', detail: { reason: 'too-large', limit: 20_000 } })
  })
})

test('lone surrogates in texts of a result are replaced, and other text is unchanged', async () => {
  const own = fresh()
  const { id } = await own.put(analysisOf('cut \ud83d', { consensus: { content: 'a\u0000\u001b[2J', confidence: 1 } }))
  expect(await own.get(id)).toMatchObject({ prompt: 'cut \ufffd', consensus: { content: 'a\u0000\u001b[2J' } })
})

describe('names in a results mount', () => {
  test('correspond to path segments one to one', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom('~', '/', '.', '0', '1', '2', 'a', '日') }), (name) => {
        if (name === '') return
        expect(isPath(escapeName(name))).toBe(true)
        expect(escapeName(name)).not.toContain('/')
        expect(unescapeName(escapeName(name))).toBe(name)
      }),
    )
    for (const segment of ['~', '~3', 'a~', '~2', '~2a', '.', '~1~']) {
      const name = unescapeName(segment)
      if (name !== undefined) expect(escapeName(name)).toBe(segment)
    }
    expect(unescapeName('~2')).toBe('.')
    expect(unescapeName('~')).toBeUndefined()
    expect(unescapeName('~2a')).toBeUndefined()
  })

  test('make one directory of each tag, also of one with slashes or dots, which lists its results', async () => {
    const own = fresh()
    for (const [at, tag] of ['a/b', 'a~1b', '..', '.', '../x'].entries())
      await own.put(analysisOf(`p${at}`, { tags: [tag] }))
    for (const path of await paths(own, { prefix: 'by-tag/' }))
      expect((await jsonAt(own, path)).results, path).toHaveLength(1)
    expect((await jsonAt(own, 'by-tag/a~1b')).results[0].tags).toEqual(['a/b'])
    expect(await failure(own.read({ path: 'by-tag/a', params: new Map() }, context()))).toMatchObject({
      kind: 'not-found',
    })
  })
})

test('results are listed after any path, for any ids', async () => {
  const own = fresh()
  const ids = ['a', 'a-', 'a-b', 'a-b-c', 'a-b.c', 'a.', 'a0', 'a~', 'aa', 'B', 'Z-9', '0', '0-0']
  for (const id of ids) await own.put(analysisOf(`About ${id}`, { id }))
  const all = await paths(own)
  expect(all).toHaveLength(1 + 3 * ids.length)
  expect([...all].sort(comparePaths)).toEqual(all)
  const keys = [
    ...all,
    ...ids.flatMap((id) => [`results/${id}!`, `results/${id}/`, `results/${id}-`, `results/${id}/votes/`]),
  ]
  for (const after of keys)
    expect(await paths(own, { after }), after).toEqual(all.filter((path) => comparePaths(path, after) > 0))
})

describe('the lookup of a result', () => {
  test('finds the same prompt in any spacing, character width and letter case, newest first', async () => {
    const own = fresh()
    const old = await own.put(analysisOf('Is  ＴＴＬ good?', { rounds: 1 }))
    const newer = await own.put(analysisOf('is TTL good?\n', { rounds: 2, taskType: 'critical' }))
    const found = await jsonAt(own, 'lookup', { prompt: 'IS ttl GOOD?' })
    expect(found).toMatchObject({ match: 'exact', analysis: { id: newer.id } })
    expect(found.results.map(({ id, similarity }: { id: string; similarity: number }) => [id, similarity])).toEqual([
      [newer.id, 1],
      [old.id, 1],
    ])
    const basic = await jsonAt(own, 'lookup', { prompt: 'is ttl good?', taskType: 'basic' })
    expect(basic.results.map(({ id }: { id: string }) => id)).toEqual([old.id])
    expect((await jsonAt(own, 'lookup', { prompt: 'is ttl good?', taskType: 'premium' })).match).toBe('none')
    expect(hashPrompt('ＴＴＬ')).toBe(hashPrompt(' ttl '))
    expect(normalizePrompt('a\u0000\t b')).toBe('a b')
    expect(hashPrompt('a b')).not.toBe(hashPrompt('ab'))
  })

  test('finds similar prompts with their similarity if there is no equal one, also in languages without spaces', async () => {
    const own = fresh()
    const close = await own.put(analysisOf('キャッシュの有効期限はどう決めるべきか?'))
    await own.put(analysisOf('データベースの索引はいつ作り直すべきか?'))
    await own.put(analysisOf('How should a cache decide when an entry expires?'))
    const found = await own.lookup({ prompt: 'キャッシュの有効期限はどのように決めるべきか' })
    expect(found.match).toBe('similar')
    expect(found.found[0]?.analysis.id).toBe(close.id)
    expect(found.found[0]?.similarity).toBeGreaterThan(0.6)
    expect(found.found[0]?.similarity).toBeLessThan(1)
    const english = await own.lookup({ prompt: 'How does a cache decide when the entry expires' })
    expect(english.found.map(({ analysis }) => analysis.prompt)).toEqual([
      'How should a cache decide when an entry expires?',
    ])
    expect(await own.lookup({ prompt: 'Something else entirely, 全然違う' })).toEqual({ match: 'none', found: [] })
  })

  test('refuses a missing prompt and an unknown task type', async () => {
    const own = fresh()
    const ask = (params: Readonly<Record<string, string>>) => failure(textAt(own, 'lookup', params))
    expect(await ask({})).toMatchObject({ kind: 'invalid', detail: { reason: 'parameter', parameter: 'prompt' } })
    expect(await ask({ prompt: 'x', taskType: 'y' })).toMatchObject({
      kind: 'invalid',
      detail: { reason: 'parameter', parameter: 'taskType' },
    })
    expect((await jsonAt(own, 'lookup', { prompt: '\u0000%_\ud800' })).match).toBe('none')
  })
})

describe('the report of an analysis', () => {
  const analysis = (given: Partial<NewAnalysis>) => ({
    ...analysisOf('# Not a heading\n| not | a table |', given),
    ...{ id: 'r', language: 'en', totalCost: 1 / 3, created: '2026-05-01T00:00:00.000Z', tags: ['a|b', '*'] },
  })

  test('is in the language of the analysis, or in the requested one', async () => {
    const own = fresh()
    const { id } = await own.put(analysisOf('何故?', { language: 'ja-JP', thresholds: { met: false } }))
    expect(await textAt(own, `results/${id}/report`)).toMatch(/^# 壁打ち分析\n[\s\S]*\n- しきい値：\*\*未達\*\*\n/)
    expect(await textAt(own, `results/${id}/report`, { lang: 'en' })).toMatch(
      /^# Wall-bounce analysis\n[\s\S]*\n- Thresholds: \*\*not met\*\*\n/,
    )
    expect(await failure(textAt(own, `results/${id}/report`, { lang: 'fr' }))).toMatchObject({
      detail: { reason: 'parameter', parameter: 'lang' },
    })
    expect(await textAt(own, `results/${(await own.put(analysisOf('why', { language: 'jam' }))).id}/report`)).toMatch(
      /^# Wall/,
    )
  })

  test('escapes the texts of the models', () => {
    const evil = '# Consensus\n\n```\n</details>\r\n---\u2028## Votes'
    const text = formatReport(
      analysis({
        consensus: { content: evil, confidence: 1 },
        votes: [
          { provider: 'a|b\\', model: '<img src=x>', content: evil, confidence: 1, agreement: 0, error: '| x |' },
        ],
      }),
      'en',
    )
    const own = text.split('\n').filter((line) => !line.startsWith('>'))
    expect(own.filter((line) => /^#+ /.test(line))).toEqual([
      ...['# Wall-bounce analysis', '## Question', '## Consensus', '## Facts', '## Votes', '### a\\|b\\\\'],
    ])
    expect(own.filter((line) => line.startsWith('|'))).toHaveLength(3)
    expect(own.join('\n')).not.toMatch(/[^\\]<img/)
    expect(text).toContain('- Tags: a\\|b, \\*')
    expect(text).toContain('$0.333333')
  })
})

describe('stored results', () => {
  test('expire, and so do their tags', async () => {
    const own = fresh({ ttl: 60_000 })
    const { id } = await own.put(analysisOf('short', { tags: ['t'] }))
    expect(await paths(own)).toContain('by-tag/t')
    await putBriefly(own, analysisOf('short'))
    await vi.waitFor(async () => expect(await own.get(id)).toBeUndefined(), { timeout: 30_000, interval: 50 })
    expect(await paths(own)).toEqual(['recent'])
    expect((await jsonAt(own, 'recent')).results).toEqual([])
    expect((await own.lookup({ prompt: 'short' })).match).toBe('none')
    expect(await own.put(analysisOf('short'))).toMatchObject({ id, status: 'created' })
  })

  test('keep to the limits: the oldest is removed first', async () => {
    const own = fresh({ keep: { records: 3 } })
    for (let at = 0; at < 6; at++) await own.put(analysisOf(`number ${at}`, { id: `n${at}` }))
    await own.evict()
    expect((await paths(own)).filter((path) => path.endsWith('/report'))).toEqual(
      ['n3', 'n4', 'n5'].map((id) => `results/${id}/report`),
    )
    const small = fresh({ keep: { bytes: 5000 } })
    for (let at = 0; at < 20; at++) await small.put(analysisOf(`number ${at}`, { id: `n${at}` }))
    await small.evict()
    const left = (await jsonAt(small, 'recent')).results.map(({ id }: { id: string }) => id)
    expect(left.length).toBeGreaterThan(0)
    expect(left.length).toBeLessThan(6)
    expect(left[0]).toBe('n19')
    // It happens by itself, too.
    for (let at = 20; at < 40; at++) await small.put(analysisOf(`number ${at}`, { id: `n${at}` }))
    await small.close?.()
    expect((await jsonAt(small, 'recent')).results.length).toBeLessThan(6)
  })
})

describe('a watch of results', () => {
  /** Watches until `seen` is told of what is waited for. */
  const watching = async (own: Results) => {
    const abort = new AbortController()
    const changes: (Change & { readonly at: number })[] = []
    const news = await own.watch?.(abort.signal)
    const over = (async () => {
      for await (const change of news ?? []) changes.push({ ...change, at: Date.now() })
    })()
    /** Waits until a path is told of, at a time or later. */
    const told = (path: string, from = 0) =>
      vi.waitFor(() => expect(changes.flatMap((change) => (change.at >= from ? [change.path] : []))).toContain(path), {
        timeout: 30_000,
        interval: 20,
      })
    const stop = () => {
      abort.abort()
      return over
    }
    return { changes, told, stop }
  }

  test('reports new, changed, deleted and expired results', async () => {
    const own = fresh()
    const kept = await own.put(analysisOf('kept', { id: 'kept', tags: ['old'] }))
    expect(kept.status).toBe('created')
    const { changes, told, stop } = await watching(own)
    await own.put(analysisOf('new', { id: 'new', tags: ['x/y'] }))
    await told('results/new')
    for (const path of ['results/new/', 'recent', 'by-tag/x~1y', 'lookup']) await told(path)
    changes.length = 0
    await own.put(analysisOf('kept', { id: 'kept', tags: ['newer'] }))
    // Those who look at the tag that it had are told, too.
    for (const path of ['results/kept', 'by-tag/old', 'by-tag/newer']) await told(path)
    expect(changes.find(({ path }) => path === 'by-tag/old')?.listed).toBe(true)
    changes.length = 0
    await own.delete('kept')
    for (const path of ['results/kept', 'by-tag/newer']) await told(path)
    changes.length = 0
    const over = await putBriefly(own, analysisOf('brief', { id: 'brief', tags: ['b'] }))
    for (const path of ['results/brief', 'by-tag/b', 'recent']) await told(path, over)
    expect(await own.get('brief')).toBeUndefined()
    await stop()
  })

  test('reports the expiry of results that existed before', async () => {
    const own = fresh()
    const over = await putBriefly(own, analysisOf('before', { id: 'before' }))
    const { told, stop } = await watching(own)
    // Where it was over before anybody watched, there is nothing to tell.
    if ((await own.get('before')) !== undefined) await told('results/before', over)
    await stop()
  })
})

describe('completion of results', () => {
  const ask = (own: Results, name: string, value: string, filled: Readonly<Record<string, string>> = {}) =>
    own.complete?.({ template: '', argument: { name, value }, arguments: new Map(Object.entries(filled)) }, context())

  test('offers ids, tags, providers, task types and languages', async () => {
    const own = fresh()
    await own.put(analysisOf('1', { id: 'a-1', tags: ['a/b', 'weekly'] }))
    await own.put(analysisOf('2', { id: 'b-2', votes: [{ provider: 'x/y', model: 'm', error: 'down' }] }))
    expect(await ask(own, 'id', 'a')).toEqual({ values: ['a-1'], total: 1, hasMore: false })
    expect(await ask(own, 'tag', '')).toMatchObject({ values: ['a~1b', 'weekly'] })
    expect(await ask(own, 'tag', 'a~')).toMatchObject({ values: ['a~1b'] })
    expect(await ask(own, 'provider', '')).toMatchObject({ values: ['model-a', 'x~1y'] })
    expect(await ask(own, 'provider', '', { id: 'b-2' })).toMatchObject({ values: ['x~1y'] })
    expect(await ask(own, 'provider', '', { id: 'none' })).toMatchObject({ values: [] })
    expect(await ask(own, 'taskType', 'c')).toMatchObject({ values: ['critical'] })
    expect(await ask(own, 'lang', '')).toMatchObject({ values: ['ja', 'en'] })
    for (const [name, value] of [
      ['id', '\u0000'],
      ['tag', '\ud800'],
      ['tag', '\u0000'],
      ['prompt', 'x'],
    ] as const)
      expect(await ask(own, name, value)).toMatchObject({ values: [] })
  })

  test('of many values says that there are more', async () => {
    const own = fresh()
    for (let at = 0; at < 101; at++) await own.put(analysisOf(`${at}`, { id: `i${at}` }))
    expect(await ask(own, 'id', 'i')).toMatchObject({ hasMore: true })
    expect((await ask(own, 'id', 'i'))?.values).toHaveLength(100)
  })
})

describe('a known secret in results', () => {
  const secret = 'hunter2-hunter2'
  const scrubber = createScrubber([secret])

  test('is not stored, neither in texts nor in search keys', async () => {
    const own = fresh({ scrubber })
    const { id } = await own.put(analysisOf(`What is ${secret}?`, { tags: [secret] }))
    expect(await textAt(own, `results/${id}`)).not.toContain(secret)
    expect(await paths(own, { prefix: 'by-tag/' })).toEqual(['by-tag/[redacted]'])
    expect(await own.lookup({ prompt: `What is ${secret}?` })).toMatchObject({ match: 'exact' })
    expect(await failure(own.put(analysisOf('x', { id: secret })))).toMatchObject({ kind: 'invalid' })
  })

  test('is not served if another process stored it', async () => {
    const collection = `test ${collections++}`
    const { id } = await fresh({ collection }).put(analysisOf(`It is ${secret}`))
    const own = fresh({ collection, scrubber })
    for (const path of [`results/${id}`, `results/${id}/report`, 'recent', `results/${id}/votes/model-a`])
      expect(await textAt(own, path), path).not.toContain(secret)
  })
})

describe('getOrCompute', () => {
  const key = (prompt: string) => ({ prompt, taskType: 'basic' as const })
  const { prompt: _, taskType: __, ...made } = analysisOf('any')

  test('computes once for all callers, stores the value, and finds a stored value', async () => {
    const own = fresh({ ttl: 60_000 })
    let computed = 0
    const compute = async () => {
      computed++
      await new Promise((resolve) => setTimeout(resolve, 20))
      return { ...made, rounds: computed }
    }
    const all = await Promise.all(Array.from({ length: 50 }, () => own.getOrCompute(key('joined'), compute)))
    expect(computed).toBe(1)
    expect(new Set(all.map(({ id }) => id)).size).toBe(1)
    expect(await own.getOrCompute(key(' JOINED'), compute)).toEqual(all[0])
    expect(await own.get(all[0]?.id ?? '')).toEqual(all[0])
    await own.put(analysisOf('put', { rounds: 7 }))
    expect(await own.getOrCompute(key('put'), compute)).toMatchObject({ rounds: 7 })
    expect(await own.getOrCompute({ prompt: 'put', taskType: 'critical' }, compute)).toMatchObject({ rounds: 2 })
    expect(computed).toBe(2)
  })

  test('computes again after the value was removed', async () => {
    const own = fresh()
    let computed = 0
    const compute = async () => ({ ...made, rounds: ++computed })
    const first = await own.getOrCompute(key('removed'), compute)
    await own.delete(first.id)
    expect(await own.getOrCompute(key('removed'), compute)).toMatchObject({ rounds: 2 })
  })

  test('throws the error of the computation, and stores nothing', async () => {
    const own = fresh()
    const down = new Error('the model is down')
    await expect(own.getOrCompute(key('fails'), () => Promise.reject(down))).rejects.toBe(down)
    expect(await failure(own.getOrCompute(key('wrong'), async () => ({ ...made, rounds: 0 })))).toMatchObject({
      kind: 'invalid',
      detail: { field: 'rounds' },
    })
    expect(await own.getOrCompute(key('fails'), async () => made)).toMatchObject({ prompt: 'fails' })
  })

  test('can be cancelled by its caller', async () => {
    const own = fresh()
    const abort = new AbortController()
    const seen = new Promise((resolve) => {
      void own
        .getOrCompute(
          key('slow'),
          (signal) => new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
          { signal: abort.signal },
        )
        .catch(resolve)
    })
    abort.abort(new Error('enough'))
    expect(await seen).toMatchObject({ message: 'enough' })
  })
})
