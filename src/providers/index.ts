import type { Source } from './source.ts'
import * as table from './table.ts'

/** The name of a source of the table, as a configuration has it. */
export type SourceName = keyof typeof table

/** The sources of the table, by name. */
export const sources: Readonly<Record<SourceName, Source>> = table

/** Returns a source by its name; undefined for a name that no source has. */
export function sourceNamed(name: unknown): Source | undefined {
  return typeof name === 'string' && Object.hasOwn(sources, name) ? sources[name as SourceName] : undefined
}
