import { followAbort, sleep } from '../../core/kit/abort.ts'
import type { Change, Degradation } from '../../core/provider.ts'
import { createPoller, type Poller } from '../../wrap/polled.ts'
import { catalogPagesFrom, enumDocument, relationDocument, routineDocument, textVersion } from './documents.ts'
import type { CatalogItem, DatabaseSource, NamedItem, ObjectName, SourceContext } from './model.ts'
import { nameSegmentCount, objectDirectory } from './names.ts'

const settlingMs = 100

interface Sight {
  readonly fingerprint: string
  /** `undefined`: there are too many objects to compare. */
  readonly snapshot: DatabaseSnapshot | undefined
  readonly rows: ReadonlyMap<string, string>
}

/**
 * Watches a database: polls the fingerprint of the catalog and the stamps of the rows, at an interval and after every hint, and compares
 * the whole catalog if the fingerprint has changed.
 *
 * @param intervalMs Pause between two polls without a hint of a change, in milliseconds.
 * @param hasRows Whether rows of a table are served, by its key.
 */
export function createDatabaseWatch(source: DatabaseSource, intervalMs: number, hasRows: (key: string) => boolean) {
  let looking: Poller | undefined

  const lookAt = async (signal: AbortSignal, before: Sight | undefined): Promise<Sight> => {
    const context = { signal }
    // Read the fingerprint first: changes during the comparison are then seen at the next poll.
    const fingerprint = await source.fingerprint(context)
    const snapshot = before?.fingerprint === fingerprint ? before.snapshot : await takeSnapshot(source, context)
    const rows = (await source.rows?.stamps?.(context)) ?? new Map<string, string>()
    return { fingerprint, snapshot, rows }
  }

  const changesOf = function* (before: Sight, now: Sight): Generator<Change> {
    if (before.fingerprint !== now.fingerprint) {
      if (before.snapshot === undefined || now.snapshot === undefined) return yield {}
      yield* diffDatabaseSnapshots(before.snapshot, now.snapshot, source.schema)
    }
    for (const [key, stamp] of now.rows) {
      if (before.rows.get(key) === stamp || !hasRows(key)) continue
      yield { path: `${key}rows` }
      yield { path: `${key}rows/` }
    }
  }

  return {
    watch: (signal: AbortSignal): Promise<AsyncIterable<Change>> => {
      const hints = createHints(source, signal)
      looking = createPoller({
        intervalMs,
        maxIntervalMs: Math.min(intervalMs, retryDelayMs),
        wait: hints.wait,
        look: async (signal, before) => {
          await hints.renew()
          return lookAt(signal, before)
        },
        changesOf,
      })
      return looking.watch(signal)
    },
    catchUp: async (): Promise<boolean> => source.rows?.areStampsExact === true && (await looking?.catchUp()) === true,
    lookedAt: (): number | undefined => looking?.lookedAt,
    degraded: (): Degradation | undefined => (looking?.away ? 'unavailable' : undefined),
  }
}

/** Maximum delay before a database that did not answer is polled again, in milliseconds. */
const retryDelayMs = 2000

function createHints(source: DatabaseSource, signal: AbortSignal) {
  let hinted = false
  let armed = false
  let wake = () => {}
  const note = () => {
    hinted = true
    wake()
  }

  const follow = async (hints: AsyncIterable<void>): Promise<void> => {
    try {
      for await (const _ of hints) note()
    } catch {
      // A failure and a normal end have the same effect: there are no hints any more.
    }
    armed = false
    // Check for changes that were not notified in between.
    note()
  }

  return {
    /** Waits for a time, or until there is a hint, or the signal aborts. */
    wait: async (ms: number, until: AbortSignal): Promise<void> => {
      if (!hinted) {
        const waiting = followAbort(until)
        wake = waiting.abort
        await sleep(ms, waiting.signal)
        waiting.release()
        wake = () => {}
      }
      if (hinted) await sleep(settlingMs, until)
      hinted = false
    },
    renew: async (): Promise<void> => {
      if (armed || source.hints === undefined) return
      const hints = await source.hints(signal)
      if (hints === undefined) return
      armed = true
      void follow(hints)
    },
  }
}

interface DatabaseSnapshot {
  readonly listed: ReadonlyMap<string, string>
  readonly versions: ReadonlyMap<string, string>
}

/** Maximum number of objects of which changes are found one by one. */
const maxObjects = 2000
const [pageLength, chunk] = [2000, 200]

async function takeSnapshot(source: DatabaseSource, context: SourceContext): Promise<DatabaseSnapshot | undefined> {
  const items: CatalogItem[] = []
  for await (const page of catalogPagesFrom(source, { from: '', prefix: '', limit: pageLength }, context))
    if (items.push(...page) > maxObjects) return undefined
  const versions = new Map<string, string>()
  const look = async <T extends ObjectName>(
    leaf: string,
    isThere: (item: NamedItem) => boolean,
    load: ((names: readonly ObjectName[], context: SourceContext) => Promise<readonly T[]>) | undefined,
    documentOf: (found: T) => unknown,
  ) => {
    const names = items.filter((item): item is NamedItem => 'name' in item && isThere(item))
    for (let at = 0; load !== undefined && at < names.length; at += chunk)
      for (const value of await load(names.slice(at, at + chunk), context))
        versions.set(`${objectDirectory(value, source.schema)}${leaf}`, textVersion(JSON.stringify(documentOf(value))))
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
  if (extensions !== undefined) versions.set('extensions', textVersion(JSON.stringify(extensions)))
  return { listed: new Map(items.map((item) => [item.key, JSON.stringify(item)])), versions }
}

function* diffDatabaseSnapshots(
  before: DatabaseSnapshot,
  now: DatabaseSnapshot,
  only: string | undefined,
): Generator<Change> {
  const changedNames = new Set<string>()
  // Entries of the object may have appeared or disappeared, and its facts in the listing may have changed.
  for (const key of changesIn(before.listed, now.listed)) {
    changedNames.add(key)
    yield { path: key, listed: true }
  }
  for (const path of changesIn(before.versions, now.versions)) {
    changedNames.add(path)
    yield { path }
    if (path.endsWith('/schema')) {
      yield { path: `${path}.sql` }
      yield { path: path.replace(/schema$/, 'rows') }
      yield { path: path.replace(/schema$/, 'rows/') }
    }
  }
  if (changedNames.size === 0) return
  yield { path: 'overview' }
  if (nameSegmentCount(only) === 1) return
  const schemas = new Set([...changedNames].filter((path) => path.includes('/')).map((path) => path.split('/')[0]))
  for (const schema of schemas) yield { path: `${schema}/overview` }
}

function* changesIn(before: ReadonlyMap<string, string>, now: ReadonlyMap<string, string>): Generator<string> {
  for (const [path, text] of now) if (before.get(path) !== text) yield path
  for (const path of before.keys()) if (!now.has(path)) yield path
}
