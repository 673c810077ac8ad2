import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { memory } from '../../examples/memory-provider.ts'
import { notFound, ResourceError } from '../../src/core/errors.ts'
import type { Content, Context, Entry, ListQuery, Provider } from '../../src/core/provider.ts'
import {
  type CheckOptions,
  checkProvider,
  describeProvider,
  type Expectation,
  formatProblem,
  type PromiseId,
  promiseIds,
  promises,
} from '../../src/testing/index.ts'

/** The contents of the providers of the contract suite's own tests. */
const contents: Readonly<Record<string, string | Uint8Array>> = {
  'a-b': 'dash',
  'a.txt': 'dot',
  'a/b.txt': 'in a directory',
  'a/c/d.md': '# deep\n',
  'a/c/e.md': '# deeper\n',
  'bin/data': Uint8Array.from({ length: 100 }, (_, i) => i * 3),
  'empty.txt': '',
  'kana/\u{ff71}.txt': 'half-width',
  'kana/\u{20bb7}.txt': 'beyond the basic plane',
  'kana/\u{304c}.txt': 'composed',
  'with space.txt': 'space',
}

const many: typeof contents = Object.fromEntries(
  Array.from({ length: 1100 }, (_, i) => [`many/${String(i).padStart(4, '0')}`, String(i)]),
)

async function entriesOf(provider: Provider): Promise<ReadonlyMap<string, Entry>> {
  const entries = new Map<string, Entry>()
  const context = { principal: { id: 'rich', roles: [] }, signal: new AbortController().signal }
  for await (const entry of provider.list({}, context)) entries.set(entry.path, entry)
  return entries
}

/** A provider with every optional method. */
function rich(source = contents): Provider {
  const inner = memory(source)
  // Its contents never change.
  let listed: Promise<ReadonlyMap<string, Entry>> | undefined
  const provider: Provider = {
    async *list(query, context) {
      for await (const entry of inner.list(query, context))
        yield {
          ...entry,
          title: 'A title',
          modified: 1_700_000_000_000,
          version: `v${entry.size}`,
          mimeType: 'text/plain; charset=utf-8',
          priority: 0.5,
          audience: ['user'],
          icons: [{ src: 'https://example.com/icon.png' }],
        }
    },
    async stat(path, context) {
      context.signal.throwIfAborted()
      listed ??= entriesOf(provider)
      return (await listed).get(path) ?? Promise.reject(notFound())
    },
    async read({ path, range }, context) {
      const [content] = await inner.read({ path, params: new Map() }, context)
      const bytes = bytesOf(content)
      const facts = { version: `v${bytes.length}`, size: bytes.length }
      if (range === undefined) return content === undefined ? [] : [{ ...content, ...facts }]
      const end = Math.min(range.end ?? bytes.length, bytes.length)
      return [{ ...facts, bytes: bytes.subarray(range.start, end), range: { start: range.start, end } }]
    },
    templates: async () => [
      { template: '{+path}', name: 'file' },
      { template: 'rows/{id}', name: 'row', title: 'A row' },
    ],
    complete: async ({ argument }) => ({ values: [`${argument.value}1`], total: 1, hasMore: false }),
    watch: async (signal) =>
      (async function* () {
        if (!signal.aborted) yield { path: 'a.txt' }
        if (!signal.aborted) await once(signal, 'abort')
      })(),
  }
  return provider
}

function bytesOf(content: Content | undefined): Uint8Array {
  if (content !== undefined && 'text' in content) return Buffer.from(content.text)
  return content !== undefined && 'bytes' in content ? content.bytes : new Uint8Array()
}

async function* streamOf(...chunks: Uint8Array[]): AsyncGenerator<Uint8Array> {
  yield* chunks
}

async function* endless(): AsyncGenerator<Uint8Array> {
  for (;;) {
    await sleep(0)
    yield new Uint8Array(64 * 1024)
  }
}

const expectationOf = (source: typeof contents): Expectation => ({
  entries: Object.fromEntries(
    Object.entries(source).map(([path, content]) => [
      path,
      typeof content === 'string' ? { text: content, mimeType: 'text/plain; charset=utf-8' } : { bytes: content },
    ]),
  ),
  missing: ['rows/1'],
})

/** For each promise, the ways to break it. Each breaks that promise only. */
type Mutants<Id extends PromiseId> = Readonly<Record<Id, Readonly<Record<string, (inner: Provider) => Provider>>>>

/** Changes the listings of a provider. */
const listing =
  (list: (entries: readonly Entry[], query: ListQuery, context: Context) => Iterable<Entry> | AsyncIterable<Entry>) =>
  (inner: Provider): Provider => ({
    ...inner,
    async *list(query, context) {
      context.signal.throwIfAborted()
      const all: Entry[] = []
      for await (const entry of inner.list({}, context)) all.push(entry)
      for await (const entry of list(all, query, context)) {
        context.signal.throwIfAborted()
        yield entry
      }
    },
  })

const after = (path: string, key: string | undefined) =>
  key === undefined || Buffer.compare(Buffer.from(path), Buffer.from(key)) > 0
const select = (entries: readonly Entry[], { prefix = '', after: key }: ListQuery) =>
  entries.filter((entry) => entry.path.startsWith(prefix) && after(entry.path, key))

/** Returns a prefix in the spelling of the first path that begins with it in any letter case. */
const anyCase = (entries: readonly Entry[], prefix: string) =>
  entries.find(({ path }) => path.toLowerCase().startsWith(prefix.toLowerCase()))?.path.slice(0, prefix.length) ??
  prefix

/** Adds an entry to the listings of a provider, in path order. */
const adding = (extra: Entry) =>
  listing((entries, query) =>
    select(
      [...entries, extra].sort((a, b) => Buffer.compare(Buffer.from(a.path), Buffer.from(b.path))),
      query,
    ),
  )

/** Changes one entry in the listings and in `stat` of a provider. */
const saying =
  (facts: Record<string, unknown>) =>
  (inner: Provider): Provider => {
    const change = (entry: Entry): Entry => (entry.path === 'a.txt' ? { ...entry, ...facts } : entry)
    const { stat } = inner
    return {
      ...listing((entries, query) => select(entries, query).map(change))(inner),
      ...(stat === undefined ? {} : { stat: async (path, context) => change(await stat(path, context)) }),
    }
  }

/** Changes the reads of a provider. */
const reading =
  (change: (content: Content, path: string, ranged: boolean) => readonly Content[] | Promise<readonly Content[]>) =>
  (inner: Provider): Provider => ({
    ...inner,
    read: async (request, context) => {
      const [content] = await inner.read(request, context)
      if (content === undefined) throw new Error('the inner provider answered nothing')
      return change(content, request.path, request.range !== undefined)
    },
  })

/** Makes a provider answer for absent paths. */
const finding =
  (find: (path: string) => Promise<readonly Content[]>) =>
  (inner: Provider): Provider => ({
    ...inner,
    read: (request, context) =>
      inner.read(request, context).catch((error) => {
        context.signal.throwIfAborted()
        if (error instanceof ResourceError && error.kind === 'not-found') return find(request.path)
        throw error
      }),
  })

const never = () => new Promise<never>(() => {})
const held: unknown[] = []

/** Metadata, `stat` and `read` that break a promise. */
const brokenReads: Mutants<
  | 'metadata'
  | 'stat-same'
  | 'stat-missing'
  | 'read-content'
  | 'read-version'
  | 'read-size'
  | 'read-text'
  | 'read-range'
  | 'read-missing'
  | 'spelling'
> = {
  metadata: {
    'a size that is no number': saying({ size: Number.NaN }),
    'a size below 0': saying({ size: -1 }),
    'a size of half a byte': saying({ size: 1.5 }),
    'a time of change that is NaN': saying({ modified: Number.NaN }),
    'a time of change that no Date can hold': saying({ modified: 1e16 }),
    'a time of change that is a Date': saying({ modified: new Date() }),
    'a priority over 1': saying({ priority: 1.1 }),
    'a priority that is NaN': saying({ priority: Number.NaN }),
    'an unknown audience': saying({ audience: ['machine'] }),
    'an audience that is named twice': saying({ audience: ['user', 'user'] }),
    'a MIME type without a slash': saying({ mimeType: 'text' }),
    'a MIME type with a line end': saying({ mimeType: 'text/plain\n' }),
    'an empty title': saying({ title: '' }),
    'a description with a lone surrogate': saying({ description: '\udc00' }),
    'an icon from a file': saying({ icons: [{ src: 'file:///etc/passwd' }] }),
    'an empty version': (inner) => reading(({ version: _, ...content }) => [content])(saying({ version: '' })(inner)),
    'a content with an invalid MIME type': reading((content) => [{ ...content, mimeType: '*' }]),
    'a part at an invalid path': reading((content) => [content, { ...content, path: '/part' }]),
  },
  'stat-same': {
    'a stat that does not find what is listed': ({ stat, ...inner }) => ({
      ...inner,
      stat: async (path, context) => {
        if (path === 'a.txt') throw notFound()
        return stat?.(path, context) ?? never()
      },
    }),
    ...Object.fromEntries(
      Object.entries({ size: 1, modified: 0, version: 'other', mimeType: 'text/html', path: 'a-b' }).map(
        ([fact, value]) => [
          `a stat with another ${fact}`,
          ({ stat, ...inner }) => ({
            ...inner,
            stat: async (path, context) => {
              const entry = await stat?.(path, context)
              if (entry === undefined) throw notFound()
              return path === 'a.txt' ? { ...entry, [fact]: value } : entry
            },
          }),
        ],
      ),
    ),
  },
  'stat-missing': {
    'a stat that makes entries up': ({ stat, ...inner }) => ({
      ...inner,
      stat: (path, context) =>
        stat?.(path, context).catch((error) => {
          context.signal.throwIfAborted()
          if (error instanceof ResourceError) return { path }
          throw error
        }) ?? never(),
    }),
    'a stat that reports an absent path as unavailable': ({ stat, ...inner }) => ({
      ...inner,
      stat: async (path, context) => {
        for await (const entry of inner.list({}, context)) if (entry.path === path) return entry
        throw new ResourceError('unavailable', 'nothing there')
      },
    }),
    'a stat that ignores the slash at the end of a path': ({ stat, ...inner }) => ({
      ...inner,
      stat: async (path, context) => (await stat?.(path.replace(/\/$/, ''), context)) ?? never(),
    }),
    'a stat that finds directories as files': ({ stat, ...inner }) => ({
      ...inner,
      stat: async (path, context) =>
        path === 'a' || path === 'a/c' ? { path } : ((await stat?.(path, context)) ?? never()),
    }),
  },
  'read-content': {
    'a listed path that cannot be read': (inner) => ({
      ...inner,
      read: async (request, context) => {
        if (request.path === 'a-b') throw notFound()
        return inner.read(request, context)
      },
    }),
    'a listed path that is read as no content': reading((content, path) => (path === 'empty.txt' ? [] : [content])),
    'a listed path whose contents all have another path': reading((content, path) =>
      path === 'a.txt' ? [{ ...content, path: 'a-b' }] : [content],
    ),
  },
  'read-version': { 'another version': reading((content) => [{ ...content, version: 'other' }]) },
  'read-size': {
    'a size that is not that of the bytes': reading((content, path, ranged) =>
      path === 'bin/data' && !ranged ? [{ ...content, size: 99 }] : [content],
    ),
    'a wrong size where the listing has no size': (inner) => {
      const { stat: _, ...without } = inner
      return reading((content, path, ranged) =>
        path === 'bin/data' && !ranged ? [{ ...content, size: 99 }] : [content],
      )(listing((entries, query) => select(entries, query).map(({ size: __, ...entry }) => entry))(without))
    },
    'a size that counts a byte order mark, which the listing does not': reading((content) =>
      'text' in content && content.size !== undefined ? [{ ...content, size: content.size + 3 }] : [content],
    ),
    'a size that counts characters': reading((content) =>
      'text' in content ? [{ ...content, size: content.text.length + 1 }] : [content],
    ),
    'fewer bytes than are listed': reading((content, path) =>
      path === 'bin/data' ? [{ bytes: new Uint8Array(98) }] : [content],
    ),
    'a listed size that is too large by one': (inner) => saying({ size: 4 })(inner),
    'a stream shorter than its length': reading((content, path) =>
      path === 'bin/data' ? [{ stream: streamOf(new Uint8Array(50), new Uint8Array(50)), length: 101 }] : [content],
    ),
    'a stream without an end': reading((content, path) =>
      path === 'bin/data' ? [{ stream: endless(), length: 100 }] : [content],
    ),
  },
  'read-text': {
    'a text with a lone surrogate': (inner) =>
      reading((content, path) => (path === 'a.txt' ? [{ version: 'v3', text: '\ud800' }] : [content]))(inner),
  },
  'read-range': {
    'a part without its range': reading((content) => {
      const { range: _, ...whole } = content
      return [whole]
    }),
    'a part with other bytes': reading((content) =>
      content.range === undefined || !('bytes' in content)
        ? [content]
        : [{ ...content, bytes: content.bytes.map((byte) => byte + 1) }],
    ),
    'a part from another place': (inner) => ({
      ...inner,
      read: (request, context) =>
        inner.read(request.range === undefined ? request : { ...request, range: { start: 0, end: 1 } }, context),
    }),
    'an end that is included': (inner) => ({
      ...inner,
      read: ({ range, ...request }, context) =>
        inner.read(
          range === undefined ? request : { ...request, range: { start: range.start, end: (range.end ?? 1e9) + 1 } },
          context,
        ),
    }),
    'a range that is ignored in every second read': (inner) => {
      let count = 0
      return {
        ...inner,
        read: ({ range, ...request }, context) =>
          inner.read(range === undefined || count++ % 2 === 0 ? request : { ...request, range }, context),
      }
    },
    'an error for a range beyond the end': (inner) => ({
      ...inner,
      read: async (request, context) => {
        if ((request.range?.end ?? 0) > 1000) throw new ResourceError('invalid', 'out of range')
        return inner.read(request, context)
      },
    }),
  },
  'read-missing': {
    'an empty list for an absent path': finding(async () => []),
    'an empty text for an absent path': finding(async () => [{ text: '' }]),
    'an error of another kind for an absent path': finding(async () => {
      throw new ResourceError('invalid', 'no such thing')
    }),
    'a directory that can be read': finding(async (path) => {
      if (path === 'a') return [{ text: 'b.txt c/' }]
      throw notFound()
    }),
    'members of Object that are found as paths': finding(async (path) => {
      const found: unknown = ({} as Record<string, unknown>)[path]
      if (found === undefined) throw notFound()
      return [{ text: String(found) }]
    }),
    'an internal error for a long name': finding(async (path) => {
      throw path.length > 255 ? new ResourceError('internal', 'name too long') : notFound()
    }),
  },
  spelling: {
    'reads in any letter case': finding(async (path) => {
      const found = Object.keys(contents).find((name) => name.toLowerCase() === path.toLowerCase())
      if (found === undefined) throw notFound()
      return [{ text: 'found' }]
    }),
    'reads in any Unicode normalization': finding(async (path) => {
      if (Object.keys(contents).includes(path.normalize('NFC'))) return [{ text: 'found' }]
      throw notFound()
    }),
    'prefixes in any letter case': listing((entries, query) =>
      select(entries, {
        ...query,
        prefix: anyCase(entries, query.prefix ?? ''),
      }),
    ),
  },
}

/** Listings that break a promise. */
const brokenLists: Mutants<
  | 'list-ends'
  | 'list-paths'
  | 'list-files'
  | 'list-order'
  | 'list-unique'
  | 'list-stable'
  | 'list-resume'
  | 'list-seek'
  | 'list-prefix'
  | 'list-nothing'
  | 'list-stop'
> = {
  'list-ends': {
    'a listing that throws a ResourceError': listing(() => {
      throw new ResourceError('unavailable', 'down')
    }),
    'a listing that breaks off in the middle': listing(function* (entries, query) {
      yield* select(entries, query).slice(0, 3)
      throw new ResourceError('unavailable', 'down')
    }),
  },
  'list-paths': {
    'a path with ..': adding({ path: 'a/../b' }),
    'a leading slash': adding({ path: '/etc/passwd' }),
    'a lone surrogate': adding({ path: 'x\ud800' }),
    'a control character': adding({ path: 'x\n' }),
  },
  'list-files': { 'a directory among the entries': adding({ path: 'a/c/' }) },
  'list-order': {
    'unsorted entries': listing((entries, query) => select(entries, query).reverse()),
    'the order of UTF-16': listing((entries, query) =>
      select(
        [...entries].sort((a, b) => (a.path < b.path ? -1 : 1)),
        query,
      ),
    ),
    'directories compared without their slash': listing((entries, query) => {
      const key = (entry: Entry) => entry.path.replaceAll('/', '\0')
      return select(
        [...entries].sort((a, b) => (key(a) < key(b) ? -1 : 1)),
        query,
      )
    }),
    'the order of a locale': listing((entries, query) =>
      select(
        [...entries].sort((a, b) => a.path.localeCompare(b.path)),
        query,
      ),
    ),
  },
  'list-unique': {
    'an entry twice': listing((entries, query) =>
      select(entries, query).flatMap((entry, i) => (i === 2 ? [entry, entry] : [entry])),
    ),
  },
  'list-stable': {
    'an entry that comes and goes': (inner) => {
      let count = 0
      return listing((entries, query) =>
        select(entries, query).filter(({ path }) => path !== 'bin/data' || count++ % 2 === 0),
      )(inner)
    },
    'an entry that is missing in the first listing': (inner) => {
      let count = 0
      return listing((entries, query) => (count++ === 0 ? entries.slice(0, -1) : select(entries, query)))(inner)
    },
    'an entry that is missing in later listings': (inner) => {
      let count = 0
      return listing((entries, query) => select(count++ === 0 ? entries : entries.slice(0, -1), query))(inner)
    },
    'a version that changes with every listing': (inner) => {
      let count = 0
      const { stat: _, ...without } = inner
      return reading(({ version: __, ...content }) => [content])(
        listing((entries, query) => select(entries, query).map((entry) => ({ ...entry, version: `v${count++}` })))(
          without,
        ),
      )
    },
  },
  'list-resume': {
    'a resumed listing that repeats the last path': listing((entries, { prefix = '', after: key = '' }) =>
      entries.filter(({ path }) => path.startsWith(prefix) && (path === key || after(path, key))),
    ),
    'a resumed listing that skips an entry': listing((entries, query) => {
      const listed = entries.some(({ path }) => path === query.after) && (query.prefix ?? '') === ''
      return select(entries, query).slice(listed ? 1 : 0)
    }),
    'a resumed listing that ends with the directory': listing((entries, query) => {
      const of = (path: string) => path.slice(0, path.lastIndexOf('/') + 1)
      const from = entries.find(({ path }) => path === query.after)
      return select(entries, query).filter(({ path }) => from === undefined || of(path) === of(from.path))
    }),
    'a resumed listing that begins again at the end': listing((entries, query) => {
      const listed = entries.some(({ path }) => path === query.after) && (query.prefix ?? '') === ''
      return [...select(entries, query), ...(listed ? entries.slice(0, 1) : [])]
    }),
    'a listing that does not resume after a listed path': listing((entries, query) =>
      entries.some(({ path }) => path === query.after) ? entries : select(entries, query),
    ),
  },
  'list-seek': {
    'a listing that resumes only after an existing path': listing((entries, query) => {
      const index = entries.findIndex(({ path }) => path === query.after)
      return query.after !== undefined && query.after !== '' && index === -1 ? [] : select(entries, query)
    }),
    'an error of a listing that resumes after an absent path': listing((entries, query) => {
      if (query.after !== undefined && !entries.some(({ path }) => path === query.after)) throw notFound()
      return select(entries, query)
    }),
    'a listing that skips the files of the directory after which it resumes': listing((entries, query) => {
      const directory = query.after?.endsWith('/') === true ? query.after : undefined
      return select(entries, query).filter(({ path }) => directory === undefined || !path.startsWith(directory))
    }),
    'a resumed listing that compares paths in UTF-16': listing((entries, { prefix = '', after: key }) =>
      entries.filter(({ path }) => {
        const exists = entries.some((entry) => entry.path === key)
        return path.startsWith(prefix) && (key === undefined || (exists ? after(path, key) : path > key))
      }),
    ),
  },
  'list-prefix': {
    'an ignored prefix': listing((entries, { after: key }) => entries.filter(({ path }) => after(path, key))),
    'a prefix without its slash': listing((entries, { prefix = '', after: key }) =>
      entries.filter(({ path }) => path.startsWith(prefix.replace(/\/$/, '')) && after(path, key)),
    ),
    'a prefix that yields one level': listing((entries, query) => {
      const { prefix = '' } = query
      return select(entries, query).filter(({ path }) => prefix === '' || !path.slice(prefix.length).includes('/'))
    }),
    'a listing below a prefix that does not resume': listing((entries, { prefix = '', after: key }) =>
      entries.filter(({ path }) => path.startsWith(prefix) && (prefix !== '' || after(path, key))),
    ),
  },
  'list-nothing': {
    'an error for a prefix without entries': listing((entries, query) => {
      const found = select(entries, { prefix: query.prefix ?? '' })
      if (found.length === 0) throw notFound()
      return select(entries, query)
    }),
    'a file that is listed below its own path': listing((entries, query) => {
      const itself = entries.filter(({ path }) => `${path}/` === query.prefix)
      return [...itself, ...select(entries, query)]
    }),
  },
  'list-stop': {
    'a timer that continues when a listing is left': (inner) => ({
      ...inner,
      list(query, context) {
        const timer = setInterval(() => {}, 60_000)
        held.push(timer)
        const entries = inner.list(query, context)[Symbol.asyncIterator]()
        return {
          [Symbol.asyncIterator]: () => ({
            async next() {
              const next = await entries.next()
              if (next.done === true) clearInterval(timer)
              return next
            },
          }),
        }
      },
    }),
    'a listing that throws when it is left': (inner) => ({
      ...inner,
      list: (query, context) => {
        const entries = inner.list(query, context)[Symbol.asyncIterator]()
        const leave = async () => {
          throw new ResourceError('internal', 'could not be left')
        }
        return { [Symbol.asyncIterator]: () => ({ next: () => entries.next(), return: leave }) }
      },
    }),
  },
}

/** Other methods that break a promise. */
const brokenOthers: Mutants<
  'abort-before' | 'abort-during' | 'errors' | 'settles' | 'templates' | 'completion' | 'watch-ends' | 'expected'
> = {
  'abort-before': {
    'a read that ignores an aborted signal': (inner) => ({
      ...inner,
      read: (request, { principal }) => inner.read(request, { principal, signal: new AbortController().signal }),
    }),
    'a listing that begins after the abort': (inner) => ({
      ...inner,
      async *list(query, { principal, signal }) {
        let count = 0
        for await (const entry of inner.list(query, { principal, signal: new AbortController().signal })) {
          yield entry
          if (++count > 1) signal.throwIfAborted()
        }
      },
    }),
    'a stat that waits for ever after the abort': ({ stat, ...inner }) => ({
      ...inner,
      stat: (path, context) => (context.signal.aborted ? never() : (stat?.(path, context) ?? never())),
    }),
  },
  'abort-during': {
    'a listing that continues after the abort': (inner) => ({
      ...inner,
      async *list(query, context) {
        context.signal.throwIfAborted()
        yield* inner.list(query, { ...context, signal: new AbortController().signal })
      },
    }),
    'a listing that waits for ever after the abort': (inner) => ({
      ...inner,
      async *list(query, context) {
        context.signal.throwIfAborted()
        for await (const entry of inner.list(query, { ...context, signal: new AbortController().signal })) {
          yield entry
          if (context.signal.aborted) await never()
        }
      },
    }),
  },
  errors: {
    'a plain Error for an absent path': finding(async () => {
      throw new Error('ENOENT: no such file or directory')
    }),
    'a plain Error from a listing': listing(() => {
      throw new TypeError('undefined is not a function')
    }),
    'a string that is thrown': ({ stat, ...inner }) => ({
      ...inner,
      stat: async (path, context) => {
        context.signal.throwIfAborted()
        if (path === 'a.txt') throw 'nothing'
        return stat?.(path, context) ?? never()
      },
    }),
    'a plain Error from a completion': (inner) => ({
      ...inner,
      complete: async () => {
        throw new Error('no')
      },
    }),
  },
  settles: {
    'a read that never answers': (inner) => ({
      ...inner,
      read: (_, { signal }) => (signal.aborted ? Promise.reject(signal.reason) : never()),
    }),
    'a listing that stops without an end': listing(async function* (entries, query) {
      yield* select(entries, query).slice(0, 3)
      await never()
    }),
    'templates that never come': (inner) => ({ ...inner, templates: never }),
  },
  templates: {
    'a template that does not compile': (inner) => ({
      ...inner,
      templates: async () => [{ template: '{', name: 'broken' }],
    }),
    'a template without a name': (inner) => ({ ...inner, templates: async () => [{ template: '{+path}', name: '' }] }),
    'a template with a priority over 1': (inner) => ({
      ...inner,
      templates: async () => [{ template: '{+path}', name: 'file', priority: 2 }],
    }),
    'an error of the list of templates': (inner) => ({
      ...inner,
      templates: async () => {
        throw new ResourceError('internal', 'no templates')
      },
    }),
  },
  completion: {
    'a completion with 101 values': (inner) => ({
      ...inner,
      complete: async () => ({ values: Array.from({ length: 101 }, String) }),
    }),
    'a total below the number of values': (inner) => ({
      ...inner,
      complete: async () => ({ values: ['a', 'b'], total: 1 }),
    }),
    'a lone surrogate': (inner) => ({ ...inner, complete: async () => ({ values: ['\ud800'] }) }),
    'a value that is not known any more once it is typed': (inner) => ({
      ...inner,
      complete: async ({ argument }) => ({ values: argument.value === '' ? ['alpha', 'beta'] : [] }),
    }),
    'hasMore although all values are there': (inner) => ({
      ...inner,
      complete: async () => ({ values: ['a'], total: 1, hasMore: true }),
    }),
    'hasMore false although the total is larger': (inner) => ({
      ...inner,
      complete: async () => ({ values: ['a'], total: 2, hasMore: false }),
    }),
    'an error for a value with a percent sign': (inner) => ({
      ...inner,
      complete: async ({ argument }) => {
        if (argument.value.includes('%')) throw new ResourceError('invalid', 'bad pattern')
        return { values: [] }
      },
    }),
  },
  'watch-ends': {
    'a watch that waits for ever': (inner) => ({
      ...inner,
      watch: async () => ({ [Symbol.asyncIterator]: () => ({ next: never }) }),
    }),
    'a watch that continues after the abort': (inner) => ({
      ...inner,
      watch: async () =>
        (async function* () {
          for (;;) yield {}
        })(),
    }),
    'a change at an invalid path': (inner) => ({
      ...inner,
      watch: async () =>
        (async function* () {
          yield { path: '/absolute' }
        })(),
    }),
    'a watch that never becomes ready': (inner) => ({ ...inner, watch: never }),
    'a later change at an invalid path': (inner) => ({
      ...inner,
      watch: async () =>
        (async function* () {
          yield { path: 'a' }
          yield { path: 'a//b' }
        })(),
    }),
  },
  expected: {
    'a missing entry': (inner) => {
      const without = Object.fromEntries(Object.entries(contents).filter(([path]) => path !== 'a-b'))
      return { ...inner, ...rich(without) }
    },
    'an additional entry': (inner) => ({ ...inner, ...rich({ ...contents, '.git/config': 'secret' }) }),
    'another text': (inner) => ({ ...inner, ...rich({ ...contents, 'a.txt': 'dog' }) }),
    'an entry that is too large': reading((content, path) => {
      if (path === 'a.txt') throw new ResourceError('too-large', 'over the limit')
      return [content]
    }),
    'bytes instead of a text': reading((content, path, ranged) =>
      path === 'a.txt' && !ranged && 'text' in content ? [{ bytes: Buffer.from(content.text) }] : [content],
    ),
    'another MIME type': reading((content, path) =>
      path === 'a.txt' ? [{ ...content, mimeType: 'text/html' }] : [content],
    ),
  },
}

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

  test('passes a provider that removes the byte order mark of a text and answers streams', async () => {
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
    describe(`reports a provider that breaks the promise "${promises[id]}"`, () => {
      const source = id === 'abort-during' ? many : contents
      for (const [name, mutate] of Object.entries(mutants[id]))
        test(`by ${name}`, async () => {
          expect(await broken(mutate(rich(source)), expectationOf(source))).toEqual([id])
          for (const timer of held.splice(0)) clearInterval(timer as NodeJS.Timeout)
        })
      test('in at least one tested way', () => expect(Object.keys(mutants[id])).not.toEqual([]))
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

  test('finds a broken promise before its limit', async () => {
    for (const id of ['list-order', 'list-resume', 'list-prefix', 'read-missing'] as const)
      for (const [name, mutate] of Object.entries(mutants[id]))
        if (!name.endsWith('at the end'))
          expect(await broken(mutate(rich()), {}, { limit: 10, samples: 10 })).toEqual([id])
  })

  test('does not read contents that are larger than maxBytes', async () => {
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

  test('gives up on a provider that never answers, and reports an incomplete check', async () => {
    const report = await checkProvider({ ...rich(), read: never, stat: never }, {}, { timeoutMs: 50 })
    expect(report.complete).toBe(false)
  })

  test('reports the broken promise, its place, and the observed value', async () => {
    const [problem] = (await checkProvider(saying({ size: -1 })(rich()), {}, options)).problems
    expect(problem === undefined ? '' : formatProblem(problem)).toBe(
      'metadata: Metadata is valid: size, modified, version, priority, audience, MIME type, icons, titles. But at "a.txt": size is -1.',
    )
  })

  test('accepts templates of resources that are not listed', async () => {
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

  test('closes the provider and disposes of it once, after all tests', async () => {
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

  test('states in the name of a test why its promise is excepted', () => {
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
