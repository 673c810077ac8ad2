import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { memory } from '../../examples/memory-provider.ts'
import type { Provider } from '../../src/core/provider.ts'
import type { CheckOptions, Expectation, PromiseId } from '../../src/testing/index.ts'
import { checkProvider, describeProvider, formatProblem, promiseIds, promises } from '../../src/testing/index.ts'
import { brokenLists } from '../support/broken-lists.ts'
import { brokenOthers } from '../support/broken-others.ts'
import { brokenReads } from '../support/broken-reads.ts'
import { held, type Mutants, never, saying } from '../support/mutate-provider.ts'
import { bytesOf, contents, expectationOf, many, rich, streamOf } from '../support/rich-provider.ts'

const mutants: Mutants<PromiseId> = { ...brokenLists, ...brokenReads, ...brokenOthers }

const options: CheckOptions = { timeoutMs: 250, maxBytes: 1024 * 1024 }
const broken = async (provider: Provider, expectation: Expectation, given: CheckOptions = {}) => {
  const report = await checkProvider(provider, expectation, { ...options, ...given })
  return [...new Set(report.problems.map((problem) => problem.promise))]
}

const itself: Record<string, unknown> = {}
itself.self = itself

describe('the contract suite', () => {
  test('passes a provider that keeps every promise', async () => {
    const report = await checkProvider(rich(), expectationOf(contents), options)
    expect(report).toEqual({ problems: [], examined: 11, complete: true })
  })

  test('passes the provider of the documentation, which only lists and reads', async () => {
    const { entries = {} } = expectationOf(contents)
    const bare = Object.fromEntries(Object.entries(entries).map(([path, { mimeType: _, ...entry }]) => [path, entry]))
    expect((await checkProvider(memory(contents), { entries: bare }, options)).problems).toEqual([])
  })

  test.each<readonly [Readonly<Record<string, unknown>>, PromiseId, string]>([
    [{ read: async () => undefined }, 'read-content', 'it answered undefined instead of an array of contents'],
    [{ read: async () => 'text' }, 'read-content', 'it answered "text" instead of an array of contents'],
    [
      {
        list: async function* () {
          yield 'a.txt'
        },
      },
      'list-paths',
      'it listed "a.txt", which is not an entry with a path',
    ],
    [
      {
        list: async function* () {
          yield null
        },
      },
      'list-paths',
      'it listed null, which is not an entry with a path',
    ],
    [
      {
        list: async function* () {
          yield { path: 'a.txt', size: 1n }
        },
      },
      'metadata',
      'size is 1',
    ],
    [
      {
        list: async function* () {
          yield { path: 'a.txt', title: itself }
        },
      },
      'metadata',
      'title is [object Object]',
    ],
    [{ templates: async () => 5 }, 'templates', 'it answered 5'],
  ])('reports an answer of a wrong type, as JavaScript allows: %o', async (wrong, promise, seen) => {
    const provider = { ...memory({ 'a.txt': 'a' }), ...wrong } as unknown as Provider
    const { problems } = await checkProvider(provider, {}, options)
    expect(problems).toContainEqual(expect.objectContaining({ promise, seen }))
  })

  test('passes a large listing and an empty one', async () => {
    expect((await checkProvider(rich(many), {}, options)).problems).toEqual([])
    expect(await checkProvider(memory({}), {}, options)).toEqual({ problems: [], examined: 0, complete: true })
  })

  test('passes a provider that removes the byte order mark of a text, and one that answers streams', async () => {
    const marked = { 'bom.txt': '\ufeffabcdef', 'stream.bin': Uint8Array.of(1, 2, 3, 4) }
    const inner = memory(marked)
    const provider: Provider = {
      ...inner,
      read: async (request, context) => {
        const [content] = await inner.read(request, context)
        if (content !== undefined && 'text' in content) return [{ text: content.text.slice(1) }]
        return [{ stream: streamOf(bytesOf(content)), length: 4 }]
      },
    }
    expect(
      (await checkProvider(provider, { entries: { 'bom.txt': { text: 'abcdef' }, 'stream.bin': {} } }, options))
        .problems,
    ).toEqual([])
  })

  for (const id of promiseIds)
    describe(`for "${promises[id]}", a provider that breaks it`, () => {
      const source = id === 'abort-during' ? many : contents
      for (const [name, mutate] of Object.entries(mutants[id]))
        test(name, async () => {
          expect(await broken(mutate(rich(source)), expectationOf(source))).toEqual([id])
          for (const timer of held.splice(0)) clearInterval(timer as NodeJS.Timeout)
        })
      test('is reported for some promise', () => expect(Object.keys(mutants[id])).not.toEqual([]))
    })

  test('stops at its limit, and says that it has not checked everything', async () => {
    let most = 0
    const counting: Provider = {
      ...memory(many),
      async *list(query, context) {
        let count = 0
        for await (const entry of memory(many).list(query, context)) {
          most = Math.max(most, ++count)
          yield entry
        }
      },
    }
    const report = await checkProvider(counting, {}, { ...options, limit: 50, samples: 5 })
    expect(report).toEqual({ problems: [], examined: 50, complete: false })
    expect(most).toBeLessThanOrEqual(52)
  })

  test('with a limit, still finds a broken promise before it', async () => {
    for (const id of ['list-order', 'list-resume', 'list-prefix', 'read-missing'] as const)
      for (const [name, mutate] of Object.entries(mutants[id]))
        if (!name.endsWith('at the end'))
          expect(await broken(mutate(rich()), {}, { limit: 10, samples: 10 })).toEqual([id])
  })

  test('does not read contents that are larger than its bound', async () => {
    const read: string[] = []
    const inner = memory({ large: 'x'.repeat(2000), small: 'x' })
    const provider: Provider = {
      ...inner,
      read: (request, context) => {
        if (!context.signal.aborted) read.push(request.path)
        return inner.read(request, context)
      },
    }
    expect(await broken(provider, {}, { maxBytes: 1000 })).toEqual([])
    expect(read).toContain('small')
    expect(read).not.toContain('large')
  })

  test('checks again through each wrapper, and names the wrapper that breaks a promise', async () => {
    const through = {
      same: (inner: Provider) => inner,
      sliced: mutants['read-range']['an end that is included'] ?? ((inner: Provider) => inner),
    }
    const report = await checkProvider(rich(), {}, { ...options, through })
    expect(new Set(report.problems.map((problem) => [problem.promise, problem.through].join()))).toEqual(
      new Set(['read-range,sliced']),
    )
  })

  test('leaves out the excepted promises', async () => {
    const mutate = mutants['read-size']['fewer bytes than are listed'] ?? ((inner: Provider) => inner)
    expect(await broken(mutate(rich()), {}, { except: { 'read-size': 'the text is decoded' } })).toEqual([])
  })

  test('rejects when its signal is aborted', async () => {
    const signal = AbortSignal.timeout(50)
    const slow: Provider = { ...memory(contents), read: () => never() }
    await expect(checkProvider(slow, {}, { timeoutMs: 5000, signal })).rejects.toThrow(/aborted|timeout/)
  })

  test('gives up on a provider that never answers', async () => {
    const report = await checkProvider({ ...rich(), read: never, stat: never }, {}, { timeoutMs: 50 })
    expect(report.complete).toBe(false)
  })

  test('reports the broken promise, its place, and the observed value', async () => {
    const [problem] = (await checkProvider(saying({ size: -1 })(rich()), {}, options)).problems
    expect(problem === undefined ? '' : formatProblem(problem)).toBe(
      'metadata: Metadata is valid: size, modified, version, priority, audience, MIME type, icons, titles. But at "a.txt": size is -1.',
    )
  })

  test('accepts templates with more resources than the listing, and requests none of them', async () => {
    const provider: Provider = {
      ...memory(contents),
      templates: async () => [{ template: '{name}', name: 'any' }],
      read: async ({ path }, context) =>
        path.includes('/') || path in contents
          ? memory(contents).read({ path, params: new Map() }, context)
          : [{ text: path }],
    }
    expect(await broken(provider, {}, { except: { 'abort-before': 'a test' } })).toEqual([])
  })
})

describe('describeProvider', () => {
  const collect = (provider: Provider, given: CheckOptions = {}) => {
    const tests: { name: string; body: () => Promise<void> }[] = []
    const groups: string[] = []
    let disposed = 0
    const framework = {
      describe: (name: string, body: () => void) => {
        groups.push(name)
        body()
      },
      test: (name: string, body: () => Promise<void>) => void tests.push({ name, body }),
    }
    const subject = {
      provider,
      expectation: { entries: expectationOf(contents).entries ?? {} },
      dispose: () => disposed++,
    }
    describeProvider(framework, 'mine', () => subject, { ...options, ...given })
    return { tests, groups, disposed: () => disposed }
  }

  test('registers one test for each promise, and again for each wrapper', () => {
    const { tests, groups } = collect(rich(), { through: { same: (inner) => inner } })
    expect(groups).toEqual(['mine', 'mine, through same'])
    expect(tests.map(({ name }) => name)).toEqual([...Object.values(promises), ...Object.values(promises)])
  })

  test('makes the provider once, and closes and disposes of it', async () => {
    let closed = 0
    const { tests, disposed } = collect({ ...rich(), close: async () => void closed++ })
    await Promise.all(tests.map(({ body }) => body()))
    expect([closed, disposed()]).toEqual([1, 1])
  })

  test('fails exactly the test of the promise that is broken', async () => {
    const { tests } = collect(mutants['read-version']['another version']?.(rich()) ?? rich())
    const results = await Promise.allSettled(tests.map(({ body }) => body()))
    expect(tests.filter((_, i) => results[i]?.status === 'rejected').map(({ name }) => name)).toEqual([
      promises['read-version'],
    ])
  })

  test('names the reason of an exception', () => {
    const { tests } = collect(rich(), { except: { 'read-size': 'the text is decoded' } })
    expect(tests.map(({ name }) => name)).toContain(`${promises['read-size']} (Not promised: the text is decoded)`)
  })
})

describe('docs/writing-a-provider.md', () => {
  const page = readFileSync(new URL('../../docs/writing-a-provider.md', import.meta.url), 'utf8')
  const example = (name: string) => readFileSync(new URL(`../../${name}`, import.meta.url), 'utf8')
  const blocks = [...page.matchAll(/```ts\n(.*?)```/gs)].map(([, code]) => code)

  test('shows the provider of the examples and its test unchanged', () => {
    const provider = example('examples/memory-provider.ts').replaceAll('../src/index.ts', 'hikidashi')
    const contract = example('test/contract/memory.test.ts')
      .replaceAll('../../src/testing/index.ts', 'hikidashi/testing')
      .replaceAll('../../examples/', './')
    expect(blocks).toContain(provider)
    expect(blocks).toContain(contract)
  })

  test('lists every promise', () => {
    const rows = promiseIds.map((id) => `| \`${id}\` | ${promises[id]} |`)
    expect(page).toContain(`${rows.join('\n')}\n`)
  })
})
