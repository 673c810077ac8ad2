import type { Source } from './source.ts'
import * as table from './table.ts'

export type SourceName = keyof typeof table

export const sources: Readonly<Record<SourceName, Source>> = table

const outside = new Map<string, Source>()

/** Makes {@link sourceNamed} find a source that is not part of hikidashi. */
export function registerOutsideSource(url: string, source: Source): void {
  outside.set(url, source)
}

/** Returns a source by its name, or by the URL of its module if it is not part of hikidashi. Undefined if no such source is loaded. */
export function sourceNamed(name: unknown): Source | undefined {
  if (typeof name !== 'string') return undefined
  return Object.hasOwn(sources, name) ? sources[name as SourceName] : outside.get(name)
}
