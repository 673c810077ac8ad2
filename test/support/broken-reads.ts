import { notFound, ResourceError } from '../../src/core/errors.ts'
import { anyCase, finding, listing, type Mutants, never, reading, saying, select } from './mutate-provider.ts'
import { contents, endless, streamOf } from './rich-provider.ts'

/** Metadata, `stat` and `read` that break a promise. */
export const brokenReads: Mutants<
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
    'half a byte': saying({ size: 1.5 }),
    'a modified that is NaN': saying({ modified: Number.NaN }),
    'a modified that no Date can hold': saying({ modified: 1e16 }),
    'a modified that is a Date': saying({ modified: new Date() }),
    'a priority over 1': saying({ priority: 1.1 }),
    'a priority that is NaN': saying({ priority: Number.NaN }),
    'an audience of machines': saying({ audience: ['machine'] }),
    'an audience twice': saying({ audience: ['user', 'user'] }),
    'a MIME type without a slash': saying({ mimeType: 'text' }),
    'a MIME type with a line end': saying({ mimeType: 'text/plain\n' }),
    'an empty title': saying({ title: '' }),
    'a description with a lone surrogate': saying({ description: '\udc00' }),
    'an icon from a file': saying({ icons: [{ src: 'file:///etc/passwd' }] }),
    'an empty version': (inner) => reading(({ version: _, ...content }) => [content])(saying({ version: '' })(inner)),
    'a content of no valid type': reading((content) => [{ ...content, mimeType: '*' }]),
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
    'a stat of which nothing is unavailable': ({ stat, ...inner }) => ({
      ...inner,
      stat: async (path, context) => {
        for await (const entry of inner.list({}, context)) if (entry.path === path) return entry
        throw new ResourceError('unavailable', 'nothing there')
      },
    }),
    'a stat that takes the slash off': ({ stat, ...inner }) => ({
      ...inner,
      stat: async (path, context) => (await stat?.(path.replace(/\/$/, ''), context)) ?? never(),
    }),
    'a stat that knows directories as files': ({ stat, ...inner }) => ({
      ...inner,
      stat: async (path, context) =>
        path === 'a' || path === 'a/c' ? { path } : ((await stat?.(path, context)) ?? never()),
    }),
  },
  'read-content': {
    'a listed path that is not there': (inner) => ({
      ...inner,
      read: async (request, context) => {
        if (request.path === 'a-b') throw notFound()
        return inner.read(request, context)
      },
    }),
    'a listed path that answers nothing': reading((content, path) => (path === 'empty.txt' ? [] : [content])),
    'a listed path that answers with others only': reading((content, path) =>
      path === 'a.txt' ? [{ ...content, path: 'a-b' }] : [content],
    ),
  },
  'read-version': { 'another version': reading((content) => [{ ...content, version: 'other' }]) },
  'read-size': {
    'a size that is not that of the bytes': reading((content, path, ranged) =>
      path === 'bin/data' && !ranged ? [{ ...content, size: 99 }] : [content],
    ),
    'a size where none is listed': (inner) => {
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
    'a listed size of one more': (inner) => saying({ size: 4 })(inner),
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
    'a part that does not say so': reading((content) => {
      const { range: _, ...whole } = content
      return [whole]
    }),
    'a part that is another': reading((content) =>
      content.range === undefined || !('bytes' in content)
        ? [content]
        : [{ ...content, bytes: content.bytes.map((byte) => byte + 1) }],
    ),
    'a part of somewhere else': (inner) => ({
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
    'a range that is honoured now and then': (inner) => {
      let count = 0
      return {
        ...inner,
        read: ({ range, ...request }, context) =>
          inner.read(range === undefined || count++ % 2 === 0 ? request : { ...request, range }, context),
      }
    },
    'an end past the end that throws': (inner) => ({
      ...inner,
      read: async (request, context) => {
        if ((request.range?.end ?? 0) > 1000) throw new ResourceError('invalid', 'out of range')
        return inner.read(request, context)
      },
    }),
  },
  'read-missing': {
    'an empty list where nothing is': finding(async () => []),
    'an empty text where nothing is': finding(async () => [{ text: '' }]),
    'another kind where nothing is': finding(async () => {
      throw new ResourceError('invalid', 'no such thing')
    }),
    'a directory that can be read': finding(async (path) => {
      if (path === 'a') return [{ text: 'b.txt c/' }]
      throw notFound()
    }),
    'a lookup in an object': finding(async (path) => {
      const found: unknown = ({} as Record<string, unknown>)[path]
      if (found === undefined) throw notFound()
      return [{ text: String(found) }]
    }),
    'a long name that is too much': finding(async (path) => {
      throw path.length > 255 ? new ResourceError('internal', 'name too long') : notFound()
    }),
  },
  spelling: {
    'reads in any case': finding(async (path) => {
      const found = Object.keys(contents).find((name) => name.toLowerCase() === path.toLowerCase())
      if (found === undefined) throw notFound()
      return [{ text: 'found' }]
    }),
    'reads in any normalization': finding(async (path) => {
      if (Object.keys(contents).includes(path.normalize('NFC'))) return [{ text: 'found' }]
      throw notFound()
    }),
    'prefixes in any case': listing((entries, query) =>
      select(entries, {
        ...query,
        prefix: anyCase(entries, query.prefix ?? ''),
      }),
    ),
  },
}
