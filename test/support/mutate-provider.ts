import { ResourceError } from '../../src/core/errors.ts'
import type { Content, Context, Entry, ListQuery, Provider } from '../../src/core/provider.ts'
import type { PromiseId } from '../../src/testing/index.ts'

/** For each promise, the ways to break it. Each has to break that one, and no other. */
export type Mutants<Id extends PromiseId> = Readonly<
  Record<Id, Readonly<Record<string, (inner: Provider) => Provider>>>
>

/** A provider whose listings are made otherwise. */
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

/** A prefix as the first path has it that begins with it in any case. */
export const anyCase = (entries: readonly Entry[], prefix: string) =>
  entries.find(({ path }) => path.toLowerCase().startsWith(prefix.toLowerCase()))?.path.slice(0, prefix.length) ??
  prefix

/** A provider that lists one more entry, in its place. */
export const adding = (extra: Entry) =>
  listing((entries, query) =>
    select(
      [...entries, extra].sort((a, b) => Buffer.compare(Buffer.from(a.path), Buffer.from(b.path))),
      query,
    ),
  )

/** A provider that lists one entry otherwise, and says the same in `stat`. */
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

/** A provider whose reads are changed on their way. */
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

/** A provider that answers where there is nothing. */
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
