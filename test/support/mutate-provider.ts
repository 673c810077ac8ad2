import { ResourceError } from '../../src/core/errors.ts'
import type { Content, Context, Entry, ListQuery, Provider } from '../../src/core/provider.ts'
import type { PromiseId } from '../../src/testing/index.ts'

/** For each promise, the ways to break it. Each breaks that promise only. */
export type Mutants<Id extends PromiseId> = Readonly<
  Record<Id, Readonly<Record<string, (inner: Provider) => Provider>>>
>

/** Changes the listings of a provider. */
export const listing =
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

export const after = (path: string, key: string | undefined) =>
  key === undefined || Buffer.compare(Buffer.from(path), Buffer.from(key)) > 0
export const select = (entries: readonly Entry[], { prefix = '', after: key }: ListQuery) =>
  entries.filter((entry) => entry.path.startsWith(prefix) && after(entry.path, key))

/** Returns a prefix in the spelling of the first path that begins with it in any letter case. */
export const anyCase = (entries: readonly Entry[], prefix: string) =>
  entries.find(({ path }) => path.toLowerCase().startsWith(prefix.toLowerCase()))?.path.slice(0, prefix.length) ??
  prefix

/** Adds an entry to the listings of a provider, in path order. */
export const adding = (extra: Entry) =>
  listing((entries, query) =>
    select(
      [...entries, extra].sort((a, b) => Buffer.compare(Buffer.from(a.path), Buffer.from(b.path))),
      query,
    ),
  )

/** Changes one entry in the listings and in `stat` of a provider. */
export const saying =
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
export const reading =
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
export const finding =
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

export const never = () => new Promise<never>(() => {})
export const held: unknown[] = []
