import type { Change } from '../../core/provider.ts'
import { enumDocument, relationDocument, routineDocument, versionOf } from './documents.ts'
import type { ObjectName } from './model.ts'
import { keyOf } from './names.ts'
import { behind } from './overview.ts'
import { depthOf } from './places.ts'
import type { Listed, Source, SourceContext } from './source.ts'

/** Everything that is told of a database, as it was at one time: the facts that are listed, and the versions of contents, by path. */
export interface Snapshot {
  readonly listed: ReadonlyMap<string, string>
  readonly versions: ReadonlyMap<string, string>
}

/** With more objects than this, it is not looked at which of them changed. */
const maxObjects = 2000
const [pageLength, chunk] = [2000, 200]

/** Looks at everything, `undefined` where that is too much. */
export async function takeSnapshot(source: Source, context: SourceContext): Promise<Snapshot | undefined> {
  const items: Listed[] = []
  for (let from = ''; ; ) {
    const page = await source.page({ from, prefix: '', limit: pageLength }, context)
    items.push(...page)
    if (items.length > maxObjects) return undefined
    const last = page.at(-1)
    if (last === undefined || page.length < pageLength) break
    from = behind(last.key)
  }
  const versions = new Map<string, string>()
  const look = async <T extends ObjectName>(
    leaf: string,
    isThere: (item: Named) => boolean,
    load: ((names: readonly ObjectName[], context: SourceContext) => Promise<readonly T[]>) | undefined,
    documentOf: (found: T) => unknown,
  ) => {
    const names = items.filter((item): item is Named => 'name' in item && isThere(item))
    for (let at = 0; load !== undefined && at < names.length; at += chunk)
      for (const found of await load(names.slice(at, at + chunk), context))
        versions.set(`${keyOf(found, source.schema)}${leaf}`, versionOf(JSON.stringify(documentOf(found))))
  }
  // The row estimate is shown by a read, but it changes too often to be reported as a change.
  await look(
    'schema',
    (item) => item.relation !== undefined,
    source.relations,
    ({ rowEstimate: _, ...found }) => [relationDocument(found), found.rows ?? null],
  )
  await look('enum', (item) => item.isEnum === true, source.enums, enumDocument)
  await look('function', (item) => item.isRoutine === true, source.routines, routineDocument)
  const extensions = await source.extensions?.(context)
  if (extensions !== undefined) versions.set('extensions', versionOf(JSON.stringify(extensions)))
  return { listed: new Map(items.map((item) => [item.key, JSON.stringify(item)])), versions }
}

type Named = Extract<Listed, { name: string }>

/** Yields the changes between two snapshots. */
export function* differences(before: Snapshot, now: Snapshot, only: string | undefined): Generator<Change> {
  const changed = new Set<string>()
  // Entries of the object may have appeared or disappeared, and its facts in the listing may have changed.
  for (const key of changesIn(before.listed, now.listed)) {
    changed.add(key)
    yield { path: key, listed: true }
  }
  for (const path of changesIn(before.versions, now.versions)) {
    changed.add(path)
    yield { path }
    if (path.endsWith('/schema')) {
      yield { path: `${path}.sql` }
      yield { path: path.replace(/schema$/, 'rows') }
      yield { path: path.replace(/schema$/, 'rows/') }
    }
  }
  if (changed.size === 0) return
  yield { path: 'overview' }
  if (depthOf(only) === 1) return
  const schemas = new Set([...changed].filter((path) => path.includes('/')).map((path) => path.split('/')[0]))
  for (const schema of schemas) yield { path: `${schema}/overview` }
}

function* changesIn(before: ReadonlyMap<string, string>, now: ReadonlyMap<string, string>): Generator<string> {
  for (const [path, text] of now) if (before.get(path) !== text) yield path
  for (const path of before.keys()) if (!now.has(path)) yield path
}
