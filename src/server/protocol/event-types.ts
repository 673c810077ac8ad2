import { invalid } from '../../core/errors.ts'
import { defined, objectSchema } from '../../core/kit/object.ts'
import { argumentsIn, type JsonObject } from '../../core/tool.ts'
import type { CallOptions, ChangePage, ChangeReader, NoticedChange, PageOfChanges, View } from '../../core/view.ts'

/** One occurrence of an event. */
export interface Occurrence {
  /** Stable id. Events of one change have the same id, whichever way they are delivered. */
  readonly id: string
  /** Time in milliseconds since 1970. */
  readonly time: number
  readonly data: JsonObject
  /** Returns the position after it. */
  position(): string
}

export interface EventPage extends Omit<ChangePage, 'changes'> {
  readonly occurrences: readonly Occurrence[]
}

/** The events of one type with some arguments, for one principal. */
export interface EventReader extends Pick<ChangeReader, 'now' | 'follow'> {
  since(position: string, page: PageOfChanges, options?: CallOptions): Promise<EventPage>
}

/** A type of events, as `events/list` describes it. */
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
      'A resource, a directory with everything in it, or the beginning of the addresses of mounts. By default everything.',
  },
  glob: { type: 'string', description: 'A glob of the paths in each mount, such as "**/*.md". By default every path.' },
} as const

const changeSchema = {
  uri: {
    type: 'string',
    description: 'The changed resource, or, with a final slash, a directory in which anything may have changed.',
  },
  listed: {
    type: 'boolean',
    description: 'Whether it may have been added or removed, or its listed facts may have changed.',
  },
} as const

async function readerOf(view: View, filter: Parameters<NonNullable<View['history']>['open']>[0], options: CallOptions) {
  if (view.history === undefined) throw invalid('Nothing here reports its changes.', 'refused')
  return view.history.open(filter, options)
}

const changed: EventType = {
  name: 'resource.changed',
  description:
    'A resource was added, changed or removed. Changes of one resource in quick succession are one event, which has the latest.',
  inputSchema: objectSchema([], filterSchema),
  payloadSchema: objectSchema(['uri', 'listed'], changeSchema),
  open: async (view, given, options) => {
    const { text } = argumentsIn(given, changed.inputSchema)
    const reader = await readerOf(view, defined({ uri: text('uri'), glob: text('glob') }), options)
    return eventsOf(reader, async ({ uri, listed }) => ({ uri, listed }))
  },
}

/** Makes events of the changes of a reader. `dataOf` returns the data of the event; undefined when the change causes none. */
function eventsOf(
  reader: ChangeReader,
  dataOf: (change: NoticedChange, options: CallOptions) => Promise<JsonObject | undefined>,
): EventReader {
  return {
    now: reader.now,
    follow: reader.follow,
    since: async (position, page, options = {}) => {
      const { changes, ...rest } = await reader.since(position, page, options)
      const occurrences: Occurrence[] = []
      for (const change of changes) {
        const data = await dataOf(change, options)
        if (data !== undefined) occurrences.push({ id: change.id, time: change.time, data, position: change.position })
      }
      return { ...rest, occurrences }
    },
  }
}

/** All types of events. */
export const eventTypes: readonly EventType[] = [changed]
