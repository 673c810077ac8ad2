import { createHash } from 'node:crypto'
import type { Change } from '../../core/provider.ts'
import { createLooking, type Looking } from '../looking.ts'
import { type Directories, seriesFolder } from './directory.ts'
import { pageNames, type Source } from './source.ts'

/** State of a source at one poll, for comparison. */
interface Seen {
  readonly stamp: string
  readonly paths: ReadonlySet<string>
  readonly pages: ReadonlyMap<string, string>
}

/**
 * Watches by polling: notifies of all series (and query results) when there are new samples, of alerts, rules and targets when their pages
 * differ, and of metrics that appear or disappear.
 */
export function createWatch(source: Source, directories: Directories, intervalMs: number): Looking {
  const look = async (signal: AbortSignal): Promise<Seen> => {
    const [stamp, { entries }, pages] = await Promise.all([
      source.stamp(signal),
      directories.renew(signal),
      Promise.all(pageNames.map(async (name) => [name, digest(await source.page?.(name, signal))] as const)),
    ])
    return { stamp, paths: new Set(entries.map(({ path }) => path)), pages: new Map(pages) }
  }
  return createLooking({ interval: intervalMs, look, changesOf: differences })
}

function digest(page: unknown): string {
  return page === undefined ? '' : createHash('sha256').update(JSON.stringify(page)).digest('base64')
}

function* differences(before: Seen, now: Seen): Generator<Change> {
  for (const path of now.paths) if (!before.paths.has(path)) yield { path, listed: true }
  for (const path of before.paths) if (!now.paths.has(path)) yield { path, listed: true }
  for (const [path, content] of now.pages) if (before.pages.get(path) !== content) yield { path }
  if (now.stamp === before.stamp) return
  yield { path: seriesFolder }
  yield { path: 'query' }
}
