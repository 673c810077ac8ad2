import fc from 'fast-check'
import { describe, expect, test, vi } from 'vitest'
import {
  type Allows,
  openSearchIndex,
  type SearchDocument,
  type SearchHit,
  type SearchIndex,
} from '../../src/search/index.ts'
import type { Store } from '../../src/store/index.ts'
import { fold, parseQuery, tokenize } from '../../src/text/analyser.ts'
import { useEngineStores } from '../support/search-stores.ts'
import { volumeOf } from '../support/volume.ts'

// Each takes a few seconds at most; on a machine that is busy with other things, whatever that makes of it.
vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 })

const stores = useEngineStores()

let made = 0
const begin = (store: Store = stores.SQLite) => openSearchIndex({ store, name: `test-${++made}` })
const documentOf = (path: string, text: string, more: Partial<SearchDocument> = {}): SearchDocument => ({
  uri: `files://m/${path}`,
  mount: 'files://m',
  version: '1',
  text,
  ...more,
})
async function all<Item>(items: AsyncIterable<Item>, most = 1000): Promise<readonly Item[]> {
  const found: Item[] = []
  for await (const item of items) if (found.push(item) === most) break
  return found
}
const find = (index: SearchIndex, text: string, more = {}) => all(index.search({ text, ...more }))
const pathsOf = (hits: readonly SearchHit[]) => hits.map(({ uri }) => uri.slice('files://m/'.length))
const marked = ({ snippet: { text, marks } }: SearchHit) => marks.map(([start, end]) => text.slice(start, end))

describe('the search index', () => {
  const issue =
    'Cursor pages break when the server restarts: the client sends its cursor, the listing answers "cursor is not valid" and starts over from the beginning of all resources.'

  test('finds a document without the quoted text of a question if the question is long', async () => {
    const index = await begin()
    await index.put([documentOf('src/listing.ts', 'A cursor of a listing outlives restarts of the server.')])
    expect(pathsOf(await find(index, issue))).toEqual(['src/listing.ts'])
    const told: string[] = []
    await find(index, issue, { fallback: (why: string) => told.push(why) })
    expect(told).toEqual([])
  })

  test('ranks passages with the quoted text of a question first, and requires it only beside fewer than three words', async () => {
    const index = await begin()
    const question = 'What are "hostname does not match" errors?'
    await index.put([
      documentOf('tls.md', 'Errors errors of a host name, errors that does not have a match.'),
      documentOf('faq.md', 'It says: hostname does not match.'),
    ])
    expect(pathsOf(await find(index, question))).toEqual(['faq.md', 'tls.md'])
    const allows: Allows = ({ uri }) => !uri.endsWith('faq.md')
    expect(pathsOf(await find(index, question, { allows }))).toEqual(['tls.md'])
    for (const text of ['"hostname does not match"', 'errors "hostname does not match"']) {
      const told: string[] = []
      const fallback = (why: string) => told.push(why)
      expect(pathsOf(await find(index, text, { fallback })), 'only the passage with the quotation').toEqual(['faq.md'])
      expect(told).toEqual([])
      expect(pathsOf(await find(index, text, { allows, fallback })), 'no visible passage has it').toEqual(['tls.md'])
      expect(told).toEqual([expect.stringContaining('No passage has the quoted text.')])
    }
  })

  test('finds the code that a sentence quotes in another spelling', async () => {
    const index = await begin()
    await index.put([
      documentOf('modifiers.ts', 'export function withData(value) {\n  return modified(value)\n}'),
      documentOf('other.ts', 'export function noData(value) {\n  return value\n}'),
    ])
    expect(pathsOf(await find(index, 'Adds the "with data" modifier.'))[0]).toEqual('modifiers.ts')
  })

  test('ranks a document with a word of the question before one with many of its function words', async () => {
    const index = await begin()
    await index.put([
      documentOf('loop.ts', 'const how = what; why(which); can(how); whose(there); could(would)'),
      documentOf('parse.ts', 'const parsed = lexer.next(); token(parsed); cursor(parsed)'),
      ...Array.from({ length: 20 }, (_, at) => documentOf(`lexer${at}.ts`, `lexer and token ${at} of a grammar`)),
    ])
    const found = pathsOf(await find(index, 'how can there be what would be a lexer token cursor', { limit: 100 }))
    expect(found[0]).toBe('parse.ts')
    expect(found.at(-1)).toBe('loop.ts')
  })

  test('answers a long question first with the document that has most of its words, spread over its passages', async () => {
    const other = 'Plain words about something else that fill the rest of a passage. '.repeat(14)
    const words = ['cursor and pages', 'server restarts', 'client and listing', 'beginning of resources']
    const index = await begin()
    const near = `The cursor is not valid when pages break. ${other}`
    await index.put([
      ...Array.from({ length: 4 }, (_, at) => documentOf(`near-${at}.txt`, near)),
      documentOf('spread.txt', words.map((each) => `${each}. ${other}`).join('\n\n')),
    ])
    expect(pathsOf(await find(index, issue))[0]).toBe('spread.txt')
  })

  test('prefers the folder that a label before the question names, such as "store:" or "fix(view):"', async () => {
    const index = await begin()
    const text = '# Rows\n\nrows are written at once\n'.repeat(60)
    await index.put(
      ['cli', 'server', 'store', 'view'].map((folder) => documentOf(`src/${folder}/rows.ts`, `${text}${folder}`)),
    )
    const [first] = pathsOf(await find(index, 'store: rows are written at once'))
    expect(first).toBe('src/store/rows.ts')
    const [other] = pathsOf(await find(index, 'fix(view): rows are written at once'))
    expect(other).toBe('src/view/rows.ts')
    await index.close()
  })

  test('finds other forms of a rare word after the word itself, and marks them', async () => {
    const index = await begin()
    await index.put([
      documentOf('a.md', 'the validation of a field'),
      documentOf('b.md', 'the validator of a field'),
      documentOf('c.md', 'the colour of a field'),
    ])
    const hits = await find(index, 'validator')
    expect(pathsOf(hits)).toEqual(['b.md', 'a.md'])
    expect(hits.map(marked)).toEqual([['validator'], ['validation']])
    await index.close()
  })

  test('keeps the line ends of snippets, and no other control character', async () => {
    const index = await begin()
    await index.put([documentOf('a.ts', 'export function brew() {\r\n\tkettle.boil()\u0007\n}\n')])
    const [hit] = await find(index, 'kettle')
    expect(hit?.snippet.text.trimEnd()).toBe('export function brew() {\n kettle.boil() \n}')
    expect(marked(hit as SearchHit)).toEqual(['kettle'])
  })

  test('finds words, identifiers and characters, and marks them', async () => {
    const index = await begin()
    await index.put([
      documentOf('a.md', '# Cache\n\nServers are caching pages.\n\n# Other\n\nUse `cacheSize` with care.'),
      documentOf('b.txt', '東京タワーに行った人は誰ですか。'),
      documentOf('c.txt', 'ﾄｳｷｮｳ ＣＡＣＨＥ　ｻｲｽﾞ', { title: 'Widths' }),
    ])
    expect(pathsOf(await find(index, 'cached server'))[0]).toBe('a.md')
    const [identifier] = await find(index, 'cache_size')
    expect([identifier?.heading, marked(identifier as SearchHit)]).toEqual(['Other', ['cacheSize']])
    for (const text of ['人', '東京', '京', 'か', 'タ', '東京タワー', 'ﾀﾜｰ'])
      expect(pathsOf(await find(index, text)), text).toContain('b.txt')
    expect(marked((await find(index, 'タワー'))[0] as SearchHit)).toEqual(['タワー'])
    expect(marked((await find(index, 'サイズ'))[0] as SearchHit)).toEqual(['ｻｲｽﾞ'])
    expect(pathsOf(await find(index, 'cache "ＣＡＣＨＥ　サイズ"'))).toEqual(['c.txt'])
    expect(pathsOf(await find(index, 'widths'))).toEqual(['c.txt'])
    for (const text of ['', ' ', '""', '!?', '犬']) expect(await find(index, text), text).toEqual([])
    const hit = (await find(index, 'caching'))[0]
    expect(hit).toMatchObject({ lines: { start: 1, end: 3 }, heading: 'Cache', mount: 'files://m' })
    await index.close()
  })

  test('finds a Japanese word by adjacent characters, and by single characters only if no document has the word', async () => {
    const index = await begin()
    await index.put([
      documentOf('word.md', '決済の手順。予定を決めて、返済する。'),
      documentOf('apart.md', '予定を決定し、救済した。'),
      documentOf('one.md', '決心がついた。'),
      documentOf('drug.md', '薬は苦い。'),
    ])
    const ask = async (text: string) => {
      const told: string[] = []
      const hits = await find(index, text, { fallback: (why: string) => told.push(why) })
      return { paths: pathsOf(hits), told, marks: hits.map(marked) }
    }
    // The characters by themselves are not marked either.
    expect(await ask('決済')).toEqual({ paths: ['word.md'], told: [], marks: [['決済']] })
    expect((await ask('決済 手順')).paths).toEqual(['word.md'])
    const apart = await ask('済決')
    expect(apart.paths.toSorted()).toEqual(['apart.md', 'one.md', 'word.md'])
    expect(apart.told).toEqual([expect.stringContaining('only single characters')])
    expect(apart.marks.flat().toSorted()).toContain('決')
    // Another word of the question stands somewhere: nothing is looked for by single characters.
    expect((await ask('済決 苦い')).paths).toEqual(['drug.md'])
    // One character that is asked for by itself, or that stands between particles, is a word.
    expect((await ask('済')).told).toEqual([])
    expect((await ask('済')).paths.toSorted()).toEqual(['apart.md', 'word.md'])
    expect(await ask('薬を飲む')).toMatchObject({ paths: ['drug.md'], told: [] })
    await index.close()
  })

  test('finds a compound by all of its parts, and by some parts only if no document has all, and says so', async () => {
    const index = await begin()
    const many = Array.from({ length: 30 }, (_, at) => documentOf(`many${at}.md`, `number ${at} in the list`))
    await index.put([
      ...many,
      documentOf('whole.md', 'A needle-in-haystack test.'),
      documentOf('apart.md', 'They look for a needle in a haystack.'),
      documentOf('camel.ts', 'function needleInHaystack() {}'),
      documentOf('needle.md', 'One needle only.'),
      documentOf('purple.md', 'A purple wall in the house.'),
      documentOf('haystack/find.md', 'Where is the needle in here?'),
    ])
    const ask = async (text: string) => {
      const told: string[] = []
      const hits = await find(index, text, { fallback: (why: string) => told.push(why) })
      return { paths: pathsOf(hits).toSorted(), told }
    }
    const whole = { paths: ['apart.md', 'camel.ts', 'haystack/find.md', 'whole.md'], told: [] }
    for (const text of ['needle-in-haystack', 'needleInHaystack', 'needle_in_haystack', 'needle.in.haystack'])
      expect(await ask(text), text).toEqual(whole)
    expect((await ask('needle-in-haystack purple')).paths).toEqual([...whole.paths, 'purple.md'].toSorted())
    // `in` is a word of this query.
    expect((await ask('in needle-in-haystack')).paths.length).toBeGreaterThan(30)
    const partial = { paths: ['purple.md'], told: [expect.stringContaining('No passage has all parts')] }
    expect(await ask('purple-unicorn')).toEqual(partial)
    expect(await ask('purple-needle')).toMatchObject({ told: partial.told })
    expect(await ask('unknown-unicorn')).toEqual({ paths: [], told: [] })
    const allows = ({ uri }: { readonly uri: string }) => uri.includes('many')
    expect((await find(index, 'needle-in-haystack', { allows })).length).toBe(30)
    await index.close()
  })

  test('matches single characters only if no document that the caller may see has the word', async () => {
    const index = await begin()
    await index.put([documentOf('hidden.md', '決済'), documentOf('seen.md', '決定')])
    const told: string[] = []
    const allows = ({ uri }: { readonly uri: string }) => uri.endsWith('seen.md')
    expect(pathsOf(await find(index, '決済', { allows, fallback: (why: string) => told.push(why) }))).toEqual([
      'seen.md',
    ])
    expect(told).toHaveLength(1)
    await index.close()
  })

  test('ranks a document named like the words first, and words that stand together before others, and shows equal text once', async () => {
    const index = await begin()
    const filler = 'Something else is told here at some length, and nothing of it matters to anybody. '
    await index.put([
      documentOf('far.txt', `rocket ${filler.repeat(6)} engine`),
      documentOf('near.txt', `${filler.repeat(6)} rocket engine`),
      documentOf('rocket-engine.txt', filler),
      documentOf('copy.txt', `${filler.repeat(6)} rocket engine`),
      documentOf('long.txt', Array.from({ length: 40 }, (_, i) => `rocket ${i} ${filler.repeat(8)}`).join('\n\n')),
    ])
    const paths = pathsOf(await find(index, 'rocket engine'))
    expect(paths[0]).toBe('rocket-engine.txt')
    expect(paths.indexOf('copy.txt')).toBeLessThan(paths.indexOf('far.txt'))
    expect(paths.filter((path) => path === 'near.txt' || path === 'copy.txt')).toEqual(['copy.txt'])
    expect(paths.filter((path) => path === 'long.txt')).toHaveLength(3)
    // Whoever may not see one of two that are the same sees the other.
    const others = await find(index, 'rocket engine', {
      allows: ({ uri }: { uri: string }) => !uri.endsWith('copy.txt'),
    })
    expect(pathsOf(others).filter((path) => path.endsWith('near.txt'))).toEqual(['near.txt'])
    await index.close()
  })

  test('shows the copy of a text with the shortest path', async () => {
    const index = await begin()
    const text = 'The quick needle lies in a haystack of many words.'
    await index.put(['.a/copy/b.md', 'a/deep/b.md', 'z/b.md', 'b.md'].map((path) => documentOf(path, text)))
    expect(pathsOf(await find(index, 'needle'))).toEqual(['b.md'])
    expect(pathsOf(await find(index, 'needle lies haystack'))).toEqual(['b.md'])
    expect(pathsOf(await find(index, 'needle', { where: { path: 'a/**' } }))).toEqual(['a/deep/b.md'])
  })

  test('filters hits by the mount, path, type and other metadata of the documents', async () => {
    const index = await begin()
    await index.put([
      documentOf('a/x.md', 'word', { mimeType: 'text/markdown', modified: 1000.5, priority: 0.9 }),
      documentOf('b/x.txt', 'word one', { mimeType: 'text/plain', audience: ['assistant'] }),
      { ...documentOf('c/x.txt', 'word two'), uri: 'git://r/c/x.txt', mount: 'git://r' },
    ])
    const paths = async (where: object) => (await find(index, 'word', { where })).map(({ uri }) => uri).sort()
    expect(await paths({ mounts: ['git://r'] })).toEqual(['git://r/c/x.txt'])
    expect(await paths({ path: 'a/**' })).toEqual(['files://m/a/x.md'])
    expect(await paths({ mimeType: 'text/*', audience: 'user' })).toEqual(['files://m/a/x.md'])
    expect(await paths({ since: 1000.5 })).toEqual(['files://m/a/x.md'])
    expect(await paths({ since: 1000.6 })).toEqual([])
    expect(await paths({ minPriority: 0.5 })).toEqual(['files://m/a/x.md'])
    await index.close()
  })

  test('pages to the last hit, also for a caller that sees few documents', async () => {
    const index = await begin()
    await index.put(
      Array.from({ length: 350 }, (_, i) =>
        documentOf(`${i}.txt`, `common ${i === 349 ? 'and long '.repeat(90) : ''}${i}`),
      ),
    )
    const allows = ({ uri }: { uri: string }) => uri.endsWith('/349.txt')
    expect(pathsOf(await find(index, 'common', { allows }))).toEqual(['349.txt'])
    expect((await find(index, 'common')).length).toBe(350)
    await index.close()
  })

  test('suggests words and titles with the typed beginning', async () => {
    const index = await begin()
    await index.put([
      documentOf('a.txt', 'configuration of a controller', { title: 'Configuration' }),
      documentOf('b.txt', '東京タワーと東京駅。東京駅は広い。'),
      documentOf('c.txt', 'the controls are secret'),
    ])
    const words = async (prefix: string, more = {}) =>
      (await all(index.suggest({ prefix, ...more }))).map(({ text }) => text)
    expect((await words('conf'))[0]).toBe('Configuration')
    expect(await words('contr')).toEqual(['controller', 'controls'])
    expect(await words('CONTROLLER')).toEqual(['controller'])
    expect(await words('東京')).toEqual(['東京', '東京駅'])
    expect(await words('')).toEqual([])
    const allows = ({ uri }: { uri: string }) => !uri.endsWith('c.txt')
    expect(await words('contr', { allows })).toEqual(['controller'])
    const [first] = await all(index.suggest({ prefix: 'configu' }))
    expect(first?.uris).toEqual(['files://m/a.txt'])
    await index.close()
  })

  test('accepts texts with any characters', async () => {
    const index = await begin()
    await index.put([
      documentOf('nul.txt', 'before\u0000after \ud800 lone', { title: 'a\u0000b\udc00' }),
      documentOf('empty.txt', ''),
      documentOf('long.txt', `${'x'.repeat(300_000)} needle`),
      documentOf('marks.txt', `a${'\u0301'.repeat(100_000)} needle`),
    ])
    expect(pathsOf(await find(index, 'lone'))).toEqual(['nul.txt'])
    expect(pathsOf(await find(index, 'empty'))).toEqual(['empty.txt'])
    expect(pathsOf(await find(index, 'needle')).sort()).toEqual(['long.txt', 'marks.txt'])
    expect(await find(index, 'z'.repeat(100_000))).toEqual([])
    await index.close()
  })

  test('shows each caller its own documents, also if two indexes of one process have the same name', async () => {
    const name = `test-${++made}`
    const [one, other] = await Promise.all([1, 2].map(() => openSearchIndex({ store: stores.SQLite, name })))
    await one?.put([documentOf('ada.txt', 'needle'), documentOf('bob.txt', 'needle')])
    const of =
      (path: string): Allows =>
      ({ uri }) =>
        uri.endsWith(path)
    for (const [index, path] of [[one, 'ada.txt'] as const, [other, 'bob.txt'] as const])
      expect(index && pathsOf(await find(index, 'needle', { allows: of(path) }))).toEqual([path])
  })

  test('reports documents that were divided by older rules, so that they are indexed again', async () => {
    const name = `test-${++made}`
    const labels = { mount: 'files://m' }
    await stores.SQLite.texts(`search/${name}`).put([
      { key: 'files://m/old', version: 'v', edition: 0, labels, value: '{"uri":"files://m/old"}', parts: [] },
    ])
    const index = await openSearchIndex({ store: stores.SQLite, name })
    await index.put([documentOf('new', 'text')])
    expect(await index.documents({ limit: 9 })).toEqual([
      { uri: 'files://m/new', version: '1' },
      { uri: 'files://m/old', version: '' },
    ])
    await index.close()
  })
})

const words = [
  'alpha',
  'beta',
  'gamma delta',
  'fooBar',
  'foo bar',
  '東京',
  '京都に',
  'タワー',
  'か',
  '𠮷野家',
  'caching',
  'ＡＢＣ',
  '\n\n# Head\n',
  '。',
  'é',
]
const texts = fc.array(fc.constantFrom(...words), { maxLength: 12 }).map((some) => some.join(' '))
const paths = fc.constantFrom('a.md', 'b.txt', 'd/c.ts', 'd/e/f.txt', 'd.txt')
const steps = fc.array(
  fc.oneof(
    { weight: 4, arbitrary: fc.record({ put: fc.array(fc.tuple(paths, texts), { minLength: 1, maxLength: 3 }) }) },
    { weight: 1, arbitrary: fc.record({ remove: fc.constantFrom('a.md', 'd/', 'd/e/', 'b.txt', '') }) },
  ),
  { minLength: 1, maxLength: 5 },
)

/** The terms of a text, by their own counting. */
function termsIn(text: string): ReadonlySet<string> {
  const terms = new Set<string>()
  tokenize(fold(text).text, (term, _start, _end, kind) => {
    terms.add(term)
    // Each character that begins a pair can be asked for by itself.
    if (kind === 'bigram' || kind === 'tail') terms.add(String.fromCodePoint(term.codePointAt(0) ?? 0))
  })
  return terms
}

describe('both engines of the search index, SQLite and PostgreSQL,', () => {
  test('give the hits that a simple model gives, in the same order as each other', async () => {
    await fc.assert(
      fc.asyncProperty(
        steps,
        fc.array(fc.constantFrom(...words), { minLength: 1, maxLength: 3 }),
        async (run, query) => {
          const model = new Map<string, string>()
          const indexes = [await begin(stores.SQLite), await begin(stores.PostgreSQL)]
          for (const step of run) {
            if ('put' in step) {
              for (const [path, text] of step.put) model.set(path, text)
              for (const index of indexes) await index.put(step.put.map(([path, text]) => documentOf(path, text)))
            } else {
              for (const path of [...model.keys()])
                if (
                  path === step.remove ||
                  ((step.remove.endsWith('/') || step.remove === '') && path.startsWith(step.remove))
                )
                  model.delete(path)
              for (const index of indexes) await index.remove([`files://m/${step.remove}`])
            }
          }
          const text = query.join(' ')
          const parsed = parseQuery(text).terms
          const asked = parsed.map(({ term }) => term)
          const having = (some: readonly string[]) =>
            [...model].filter(([path, own]) => {
              const terms = termsIn(`${own}\n${path}\n${path.split('/').at(-1)}`)
              return some.some((term) => terms.has(term))
            })
          const words = having(parsed.flatMap(({ term, loose }) => (loose ? [] : [term])))
          const expected = words.length > 0 ? words : having(asked)
          const [one, other] = await Promise.all(indexes.map((index) => find(index, text)))
          expect(other).toEqual(one)
          // What has the same text is found once.
          const found = new Set(pathsOf(one ?? []))
          const foundTexts = new Set([...found].map((path) => model.get(path)))
          for (const path of found) expect(expected.map(([each]) => each)).toContain(path)
          for (const [path, own] of expected)
            expect(found.has(path) || foundTexts.has(own) || sharesAll(own, one ?? [])).toBe(true)
          for (const hit of one ?? []) checkSnippet(hit, asked)
          expect((await indexes[0]?.size())?.documents).toBe(model.size)
          expect(await indexes[1]?.size()).toEqual(await indexes[0]?.size())
          for (const index of indexes) await index.close()
        },
      ),
      { numRuns: volumeOf(40) },
    )
  })
})

/** Whether all passages of a text were found in another one. */
function sharesAll(text: string, hits: readonly SearchHit[]): boolean {
  const bare = (each: string) => each.replace(/[\s…]/g, '')
  const found = hits.map(({ snippet }) => bare(snippet.text))
  return text.split('\n\n# Head').every((part) => bare(part) === '' || found.some((each) => each.includes(bare(part))))
}

/** Marks lie in the snippet, one behind the other, and each on something that was asked for. */
function checkSnippet({ snippet: { text, marks } }: SearchHit, asked: readonly string[]): void {
  let last = -1
  expect(text.isWellFormed()).toBe(true)
  expect(text.length).toBeLessThanOrEqual(250)
  for (const [start, end] of marks) {
    expect(start).toBeGreaterThan(last)
    expect(end).toBeGreaterThan(start)
    expect(end).toBeLessThanOrEqual(text.length)
    const terms = termsIn(text.slice(start, end))
    expect(asked.some((term) => terms.has(term))).toBe(true)
    last = end
  }
}
