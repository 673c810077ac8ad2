import type { Change, ChangedKind } from '../core/provider.ts'

/** Maximum number of changes of one source in one row. Beyond it, the row says that everything of the source may have changed. */
const maxChanges = 10_000

/** The changes of sources, as the value of a row: JSON of `{ source: [change, …] }`. */
export function rowValueOf(changes: ReadonlyMap<string, readonly Change[]>): Uint8Array {
  const entries = Array.from(changes, ([source, some]) => [source, some.length > maxChanges ? [{}] : some] as const)
  return Buffer.from(JSON.stringify(Object.fromEntries(entries)))
}

/** Parses the value of a row. A newer version may write members that this one does not know: they are left out. */
export function* changesIn(value: Uint8Array): Generator<readonly [source: string, changes: readonly Change[]]> {
  const parsed = parse(value)
  if (typeof parsed !== 'object' || parsed === null) return
  for (const [source, changes] of Object.entries(parsed))
    if (Array.isArray(changes)) yield [source, changes.map(changeOf)]
}

/** A change that cannot be understood counts as one of everything. */
function changeOf(value: unknown): Change {
  if (typeof value !== 'object' || value === null) return {}
  const { path, listed, of, aliases } = value as Readonly<Record<string, unknown>>
  if (path !== undefined && typeof path !== 'string') return {}
  if (of !== undefined && !isKind(of)) return {}
  return {
    ...(path === undefined ? {} : { path }),
    ...(listed === true ? { listed } : {}),
    ...(of === undefined ? {} : { of }),
    ...(Array.isArray(aliases) ? { aliases: aliases.map(String) } : {}),
  }
}

function isKind(value: unknown): value is ChangedKind {
  return value === 'prompts' || value === 'tools'
}

function parse(value: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(value).toString())
  } catch {
    return undefined
  }
}
