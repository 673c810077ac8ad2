import { invalid, isResourceError } from '../../core/errors.ts'
import { createLruCache } from '../../core/kit/lru.ts'
import { defined, objectSchema } from '../../core/kit/object.ts'
import { createArgumentReader, type JsonObject } from '../../core/tool.ts'
import type { CallOptions, ChangeReader, NoticedChange, ReadResult, View } from '../../core/view.ts'
import { termsIn } from '../../text/analyser.ts'
import { checkSeriesUri, createCrossingReader } from './event-crossings.ts'
import type { EventReader, Occurrence } from './event-reader.ts'

export interface EventType {
  readonly name: string
  readonly description: string
  readonly inputSchema: JsonObject
  readonly payloadSchema: JsonObject
  /** @throws ResourceError `invalid` for arguments that do not match the schema. */
  open(view: View, given: JsonObject, options: CallOptions): Promise<EventReader>
}

const filterSchema = {
  uri: {
    type: 'string',
    description:
      'The URI of a resource, of a directory for everything in it, or the beginning of the addresses of mounts. By default everything.',
  },
  glob: { type: 'string', description: 'A glob of the paths in each mount, such as "**/*.md". By default every path.' },
} as const

const changeSchema = {
  uri: {
    type: 'string',
    description:
      'The URI of the changed resource, or, with a final slash, of a directory in which anything may have changed.',
  },
  listed: {
    type: 'boolean',
    description: 'Whether the resource may have been added or removed, or its listed facts may have changed.',
  },
} as const

async function readerOf(view: View, filter: Parameters<NonNullable<View['history']>['open']>[0], options: CallOptions) {
  if (view.history === undefined) throw invalid('No mount of this server reports changes.', 'refused')
  return view.history.open(filter, options)
}

const resourceChanged: EventType = {
  name: 'resource.changed',
  description:
    'A resource was added, changed or removed. Changes of one resource in quick succession are one event, with the time of the latest.',
  inputSchema: objectSchema([], filterSchema),
  payloadSchema: objectSchema(['uri', 'listed'], changeSchema),
  open: async (view, args, options) => {
    const { text } = createArgumentReader(args, resourceChanged.inputSchema)
    const reader = await readerOf(view, defined({ uri: text('uri'), glob: text('glob') }), options)
    return eventsOf(reader, async ({ uri, listed }) => ({ uri, listed }))
  },
}

const resultStored: EventType = {
  name: 'result.stored',
  description: 'A record was stored, or replaced, in a mount that stores results.',
  inputSchema: objectSchema([], { uri: filterSchema.uri }),
  payloadSchema: objectSchema(['uri'], { uri: { type: 'string', description: 'The URI of the stored record.' } }),
  open: async (view, args, options) => {
    const { text } = createArgumentReader(args, resultStored.inputSchema)
    const reader = await readerOf(view, defined({ uri: text('uri'), records: true }), options)
    return eventsOf(reader, async ({ uri, listed }, { signal }) => {
      if (!listed || uri.endsWith('/')) return undefined
      // A change may also be a removal.
      return (await readIfThere(view, uri, signal)) === undefined ? undefined : { uri }
    })
  },
}

const searchMatched: EventType = {
  name: 'search.matched',
  description:
    'A resource was added or changed, and its text has every word of a query. Texts that are too large for one answer are left out.',
  inputSchema: objectSchema(['query'], {
    query: { type: 'string', description: 'Words, in any form and order, all of which the text must have.' },
    ...filterSchema,
  }),
  payloadSchema: objectSchema(['uri', 'listed'], changeSchema),
  open: async (view, args, options) => {
    const { text, required } = createArgumentReader(args, searchMatched.inputSchema)
    const queryTerms = termsIn(required('query', maxQuery))
    if (queryTerms.length === 0) throw invalid('"query" has no word to search for.', 'argument')
    const reader = await readerOf(view, defined({ uri: text('uri'), glob: text('glob') }), options)
    return eventsOf(reader, async (change, { signal }) => {
      const { uri, listed } = change
      // Anything in a directory may have changed.
      if (uri.endsWith('/')) return 'unknown'
      const terms = await termsAt(view, change, signal)
      return queryTerms.every((term) => terms.has(term)) ? { uri, listed } : undefined
    })
  },
}

const crossed: EventType = {
  name: 'metric.crossed',
  description:
    'A series of a metric, or of a query, crossed a threshold: its value is beyond the threshold, and was not at the sample before.',
  inputSchema: objectSchema(['uri'], {
    uri: {
      type: 'string',
      description:
        'The URI of series, or of a query, of a mount of metrics, without a time: …/series/up?match={job="node"}, …/query?query=sum(up).',
    },
    above: { type: 'number', description: 'The threshold, if values above it count. Give either above or below.' },
    below: { type: 'number', description: 'The threshold, if values below it count.' },
  }),
  payloadSchema: objectSchema(['uri', 'labels', 'value'], {
    uri: { type: 'string', description: 'The subscribed URI.' },
    labels: { type: 'object', description: 'The labels of the series.' },
    value: { type: ['number', 'string'], description: 'The value of the sample: a number, "+Inf" or "-Inf".' },
  }),
  open: async (view, args, options) => {
    const { required, number } = createArgumentReader(args, crossed.inputSchema)
    const [uri, above, below] = [required('uri'), number('above'), number('below')]
    if ((above === undefined) === (below === undefined))
      throw invalid('Either "above" or "below" is required: the threshold, as a number.', 'argument')
    checkSeriesUri(uri)
    const isBeyond = (value: number) => (above === undefined ? value < Number(below) : value > above)
    return createCrossingReader(view, await readerOf(view, { uri }, options), { uri, isBeyond })
  },
}

/** Maximum length of a query, in characters. */
const maxQuery = 1000

/** The terms of texts that were read lately, by view and id of the change. */
const termsOfViews = new WeakMap<View, ReturnType<typeof createLruCache<ReadonlySet<string>>>>()
const maxTerms = 200_000

/** Reads a resource. Undefined if it is gone, or too large for one answer. */
function readIfThere(view: View, uri: string, signal: AbortSignal | undefined): Promise<ReadResult | undefined> {
  return view.read(uri, defined({ signal })).catch((error: unknown) => {
    if (isResourceError(error, 'not-found') || isResourceError(error, 'too-large')) return undefined
    throw error
  })
}

/** Returns the terms of the text of a changed resource, as its caller may read it. None if it is gone, or too large. */
async function termsAt(view: View, { id, uri }: NoticedChange, signal?: AbortSignal): Promise<ReadonlySet<string>> {
  const termCache = termsOfViews.get(view) ?? createLruCache<ReadonlySet<string>>(maxTerms, ({ size }) => size + 1)
  termsOfViews.set(view, termCache)
  const cachedTerms = termCache.get(id)
  if (cachedTerms !== undefined) return cachedTerms
  const readResult = await readIfThere(view, uri, signal)
  const texts = (readResult?.contents ?? []).flatMap((content) => ('text' in content ? [content.text] : []))
  const terms = new Set(texts.flatMap((one) => termsIn(one)))
  termCache.set(id, terms)
  return terms
}

/**
 * Makes events of the changes of a reader. `dataOf` returns the data of the event; undefined when the change causes none; `unknown` when
 * it may cause some, which is a gap.
 */
function eventsOf(
  reader: ChangeReader,
  dataOf: (change: NoticedChange, options: CallOptions) => Promise<JsonObject | 'unknown' | undefined>,
): EventReader {
  return {
    now: reader.now,
    follow: reader.follow,
    since: async (position, page, options = {}) => {
      const { changes, ...rest } = await reader.since(position, page, options)
      const occurrences: Occurrence[] = []
      let gap = rest.gap
      for (const change of changes) {
        const data = await dataOf(change, options)
        if (data === 'unknown') gap = true
        else if (data !== undefined)
          occurrences.push({ id: change.id, time: change.time, data, position: change.position })
      }
      return { ...rest, gap, occurrences }
    },
  }
}

export const eventTypes: readonly EventType[] = [resourceChanged, searchMatched, resultStored, crossed]
