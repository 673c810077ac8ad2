import type { JsonObject } from '../../core/tool.ts'
import type { CallOptions, ChangePage, ChangePageQuery, ChangeReader } from '../../core/view.ts'

export interface Occurrence {
  /** Stable id. Events of one change have the same id, whichever way they are delivered. */
  readonly id: string
  /** Time in milliseconds since 1970. */
  readonly time: number
  readonly data: JsonObject
  /** Returns the position after this event. */
  position(): string
}

export interface EventPage extends Omit<ChangePage, 'changes'> {
  readonly occurrences: readonly Occurrence[]
}

/** The events of one type with some arguments, for one principal. */
export interface EventReader extends Pick<ChangeReader, 'now' | 'follow'> {
  since(position: string, page: ChangePageQuery, options?: CallOptions): Promise<EventPage>
}
