import type { Source } from './source.ts'
import * as table from './table.ts'

export type SourceName = keyof typeof table

export const sources: Readonly<Record<SourceName, Source>> = table

/** The sources from outside that were loaded, by the URLs of their modules. Node keeps the modules in the same way. */
const outside = new Map<string, Source>()

/** Keeps a source from outside, so that mounts with the URL of its module as `provider` are found. */
export function registerOutsideSource(url: string, source: Source): void {
  outside.set(url, source)
}

/** Returns a source by its name, or by the URL of its module if it is from outside. Undefined for a name that no source has. */
export function sourceNamed(name: unknown): Source | undefined {
  if (typeof name !== 'string') return undefined
  return Object.hasOwn(sources, name) ? sources[name as SourceName] : outside.get(name)
}
