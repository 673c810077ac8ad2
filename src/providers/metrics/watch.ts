import { createHash } from 'node:crypto'
import { isResourceError } from '../../core/errors.ts'
import type { Change } from '../../core/provider.ts'
import { sleep } from '../../core/sleep.ts'
import { type Directories, seriesFolder } from './directory.ts'
import { pageNames, type Source } from './source.ts'

/** What was seen of a source at one time, as far as it tells whether something changed. */
interface Seen {
  readonly stamp: string
  readonly paths: ReadonlySet<string>
  readonly pages: ReadonlyMap<string, string>
}

export interface Watch {
  watch(signal: AbortSignal): Promise<AsyncIterable<Change>>
  /** Whether the source did not answer when it was last looked at. */
  readonly away: boolean
}

/** The longest wait while the source does not answer, in looks. */
const longest = 8

/**
 * Tells of changes by looking once in an interval: of all series (and what queries come to) when there are new samples, of
 * alerts, rules and targets when what is told of them is another, and of metrics that come or go.
 */
export function createWatch(source: Source, directories: Directories, intervalMs: number): Watch {
  let away = false

  const look = async (signal: AbortSignal): Promise<Seen> => {
    const [stamp, { entries }, pages] = await Promise.all([
      source.stamp(signal),
      directories.renew(signal),
      Promise.all(pageNames.map(async (name) => [name, digest(await source.page?.(name, signal))] as const)),
    ])
    return { stamp, paths: new Set(entries.map(({ path }) => path)), pages: new Map(pages) }
  }

  const changesFrom = async function* (first: Seen, signal: AbortSignal): AsyncGenerator<Change> {
    let known = first
    let waits = 1
    while (!signal.aborted) {
      // Many replicas that began at once do not ask at once.
      await sleep(intervalMs * waits * (0.9 + Math.random() * 0.2), signal)
      if (signal.aborted) return
      try {
        const now = await look(signal)
        yield* differences(known, now)
        known = now
        waits = 1
        away = false
      } catch (error) {
        if (signal.aborted) return
        if (!isResourceError(error)) throw error
        away = true
        waits = Math.min(waits * 2, longest)
      }
    }
  }

  return {
    watch: async (signal) => {
      const first = await look(signal)
      away = false
      return changesFrom(first, signal)
    },
    get away() {
      return away
    },
  }
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
