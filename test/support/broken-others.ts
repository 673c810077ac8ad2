import { ResourceError } from '../../src/core/errors.ts'
import { finding, listing, type Mutants, never, reading, select } from './mutate-provider.ts'
import { contents, rich } from './rich-provider.ts'

/** Other methods that break a promise. */
export const brokenOthers: Mutants<
  'abort-before' | 'abort-during' | 'errors' | 'settles' | 'templates' | 'completion' | 'watch-ends' | 'expected'
> = {
  'abort-before': {
    'a read that takes no notice': (inner) => ({
      ...inner,
      read: (request, { principal }) => inner.read(request, { principal, signal: new AbortController().signal }),
    }),
    'a listing that begins all the same': (inner) => ({
      ...inner,
      async *list(query, { principal, signal }) {
        let count = 0
        for await (const entry of inner.list(query, { principal, signal: new AbortController().signal })) {
          yield entry
          if (++count > 1) signal.throwIfAborted()
        }
      },
    }),
    'a stat that waits for ever': ({ stat, ...inner }) => ({
      ...inner,
      stat: (path, context) => (context.signal.aborted ? never() : (stat?.(path, context) ?? never())),
    }),
  },
  'abort-during': {
    'a listing that goes on': (inner) => ({
      ...inner,
      async *list(query, context) {
        context.signal.throwIfAborted()
        yield* inner.list(query, { ...context, signal: new AbortController().signal })
      },
    }),
    'a listing that waits for ever': (inner) => ({
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
    'a plain Error where nothing is': finding(async () => {
      throw new Error('ENOENT: no such file or directory')
    }),
    'a plain Error from a listing': listing(() => {
      throw new TypeError('undefined is not a function')
    }),
    'a string': ({ stat, ...inner }) => ({
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
    'one that does not compile': (inner) => ({ ...inner, templates: async () => [{ template: '{', name: 'broken' }] }),
    'one without a name': (inner) => ({ ...inner, templates: async () => [{ template: '{+path}', name: '' }] }),
    'one with a priority over 1': (inner) => ({
      ...inner,
      templates: async () => [{ template: '{+path}', name: 'file', priority: 2 }],
    }),
    'an error': (inner) => ({
      ...inner,
      templates: async () => {
        throw new ResourceError('internal', 'no templates')
      },
    }),
  },
  completion: {
    '101 values': (inner) => ({ ...inner, complete: async () => ({ values: Array.from({ length: 101 }, String) }) }),
    'a total below the values': (inner) => ({ ...inner, complete: async () => ({ values: ['a', 'b'], total: 1 }) }),
    'a lone surrogate': (inner) => ({ ...inner, complete: async () => ({ values: ['\ud800'] }) }),
    'a value that is not known any more once it is typed': (inner) => ({
      ...inner,
      complete: async ({ argument }) => ({ values: argument.value === '' ? ['alpha', 'beta'] : [] }),
    }),
    'more than there is': (inner) => ({
      ...inner,
      complete: async () => ({ values: ['a'], total: 1, hasMore: true }),
    }),
    'a hasMore that is wrong': (inner) => ({
      ...inner,
      complete: async () => ({ values: ['a'], total: 2, hasMore: false }),
    }),
    'an error for a value it does not like': (inner) => ({
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
    'a watch that goes on': (inner) => ({
      ...inner,
      watch: async () =>
        (async function* () {
          for (;;) yield {}
        })(),
    }),
    'an invalid path': (inner) => ({
      ...inner,
      watch: async () =>
        (async function* () {
          yield { path: '/absolute' }
        })(),
    }),
    'a watch that is never armed': (inner) => ({ ...inner, watch: never }),
    'an invalid path, later': (inner) => ({
      ...inner,
      watch: async () =>
        (async function* () {
          yield { path: 'a' }
          yield { path: 'a//b' }
        })(),
    }),
  },
  expected: {
    'an entry too few': (inner) => {
      const without = Object.fromEntries(Object.entries(contents).filter(([path]) => path !== 'a-b'))
      return { ...inner, ...rich(without) }
    },
    'an entry too many': (inner) => ({ ...inner, ...rich({ ...contents, '.git/config': 'secret' }) }),
    'another text': (inner) => ({ ...inner, ...rich({ ...contents, 'a.txt': 'dog' }) }),
    'an entry that is too large': reading((content, path) => {
      if (path === 'a.txt') throw new ResourceError('too-large', 'over the limit')
      return [content]
    }),
    'bytes for text': reading((content, path, ranged) =>
      path === 'a.txt' && !ranged && 'text' in content ? [{ bytes: Buffer.from(content.text) }] : [content],
    ),
    'another MIME type': reading((content, path) =>
      path === 'a.txt' ? [{ ...content, mimeType: 'text/html' }] : [content],
    ),
  },
}
