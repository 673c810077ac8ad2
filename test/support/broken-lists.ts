import { notFound, ResourceError } from '../../src/core/errors.ts'
import type { Entry } from '../../src/core/provider.ts'
import { adding, after, held, listing, type Mutants, reading, select } from './mutate-provider.ts'

/** Listings that break a promise. */
export const brokenLists: Mutants<
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
  'list-files': { 'a directory': adding({ path: 'a/c/' }) },
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
    'an entry that comes later': (inner) => {
      let count = 0
      return listing((entries, query) => (count++ === 0 ? entries.slice(0, -1) : select(entries, query)))(inner)
    },
    'an entry that goes later': (inner) => {
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
    'an inclusive after': listing((entries, { prefix = '', after: key = '' }) =>
      entries.filter(({ path }) => path.startsWith(prefix) && (path === key || after(path, key))),
    ),
    'an after that skips one': listing((entries, query) => {
      const listed = entries.some(({ path }) => path === query.after) && (query.prefix ?? '') === ''
      return select(entries, query).slice(listed ? 1 : 0)
    }),
    'an after that ends at the directory': listing((entries, query) => {
      const of = (path: string) => path.slice(0, path.lastIndexOf('/') + 1)
      const from = entries.find(({ path }) => path === query.after)
      return select(entries, query).filter(({ path }) => from === undefined || of(path) === of(from.path))
    }),
    'an after that begins again at the end': listing((entries, query) => {
      const listed = entries.some(({ path }) => path === query.after) && (query.prefix ?? '') === ''
      return [...select(entries, query), ...(listed ? entries.slice(0, 1) : [])]
    }),
    'an after that is ignored where it is listed': listing((entries, query) =>
      entries.some(({ path }) => path === query.after) ? entries : select(entries, query),
    ),
  },
  'list-seek': {
    'an after that has to exist': listing((entries, query) => {
      const index = entries.findIndex(({ path }) => path === query.after)
      return query.after !== undefined && query.after !== '' && index === -1 ? [] : select(entries, query)
    }),
    'an after that throws where it does not exist': listing((entries, query) => {
      if (query.after !== undefined && !entries.some(({ path }) => path === query.after)) throw notFound()
      return select(entries, query)
    }),
    'an after that takes a directory for what is in it': listing((entries, query) => {
      const directory = query.after?.endsWith('/') === true ? query.after : undefined
      return select(entries, query).filter(({ path }) => directory === undefined || !path.startsWith(directory))
    }),
    'an after that is compared in UTF-16': listing((entries, { prefix = '', after: key }) =>
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
    'an after that is ignored below a prefix': listing((entries, { prefix = '', after: key }) =>
      entries.filter(({ path }) => path.startsWith(prefix) && (prefix !== '' || after(path, key))),
    ),
  },
  'list-nothing': {
    'a prefix that throws where nothing is': listing((entries, query) => {
      const found = select(entries, { prefix: query.prefix ?? '' })
      if (found.length === 0) throw notFound()
      return select(entries, query)
    }),
    'a file that is its own prefix': listing((entries, query) => {
      const itself = entries.filter(({ path }) => `${path}/` === query.prefix)
      return [...itself, ...select(entries, query)]
    }),
  },
  'list-stop': {
    'a timer for each listing, ended with the listing': (inner) => ({
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
