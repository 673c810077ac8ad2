import { comparePaths } from '../../core/path.ts'
import type { Entry } from '../../core/provider.ts'
import { nameOf, segmentOf } from './names.ts'
import { type Metric, type PageName, pageNames, type Source } from './source.ts'

/** Recent list of the metrics and pages. */
export interface Directory {
  /** In path order. */
  readonly entries: readonly Entry[]
  readonly metrics: ReadonlyMap<string, Metric>
  readonly at: number
}

/** Path of the folder of the series. */
export const seriesFolder = 'series/'
/** Returns the name of the metric at a path. Undefined: the path is not a metric's. */
export function metricAt(path: string): string | undefined {
  return path.startsWith(seriesFolder) ? nameOf(path.slice(seriesFolder.length)) : undefined
}

export const jsonType = 'application/json'

const pages: Readonly<Record<PageName, Entry>> = {
  alerts: {
    path: 'alerts',
    title: 'Alerts',
    description: 'The alerts that are pending or firing just now.',
    mimeType: jsonType,
  },
  rules: {
    path: 'rules',
    title: 'Rules',
    description: 'The alerting and recording rules, by group, and whether they can be evaluated.',
    mimeType: jsonType,
  },
  targets: {
    path: 'targets',
    title: 'Targets',
    description: 'What is scraped, and whether it answers.',
    mimeType: jsonType,
  },
}

/** Maximum age of the list, in milliseconds. */
const maxAge = 10_000
/** Maximum age of the list when a metric is missing from it, in milliseconds. */
const maxAgeMissing = 1000

export interface Directories {
  /** Returns the recent list. */
  now(signal: AbortSignal): Promise<Directory>
  /** Finds a metric; loads the list again when the metric is unknown. */
  find(name: string, signal: AbortSignal): Promise<Metric | undefined>
  /** Loads the list again. */
  renew(signal: AbortSignal): Promise<Directory>
}

/** Caches the list of a source for a few seconds, because a client walks through a directory in many steps. */
export function createDirectories(source: Source): Directories {
  let known: Directory | undefined
  let asking: Promise<Directory> | undefined

  const load = async (): Promise<Directory> => {
    // Single-flight for all waiting callers, so no caller's abort ends it. The source has its own time-out.
    const metrics = await source.metrics(new AbortController().signal)
    known = directoryOf(metrics, source.page !== undefined)
    return known
  }
  const renew = async (signal: AbortSignal): Promise<Directory> => {
    asking ??= load().finally(() => {
      asking = undefined
    })
    return until(asking, signal)
  }
  const now = async (signal: AbortSignal): Promise<Directory> => {
    signal.throwIfAborted()
    return known !== undefined && ageOf(known) < maxAge ? known : renew(signal)
  }
  return {
    now,
    renew,
    find: async (name, signal) => {
      const found = (await now(signal)).metrics.get(name)
      if (found !== undefined || (known !== undefined && ageOf(known) < maxAgeMissing)) return found
      return (await renew(signal)).metrics.get(name)
    },
  }
}

const ageOf = ({ at }: Directory) => performance.now() - at

function directoryOf(metrics: readonly Metric[], hasPages: boolean): Directory {
  const entries = metrics.flatMap((metric): Entry[] => {
    const segment = segmentOf(metric.name)
    return segment === undefined ? [] : [entryOf(metric, seriesFolder + segment)]
  })
  if (hasPages) entries.push(...pageNames.map((name) => pages[name]))
  entries.sort((a, b) => comparePaths(a.path, b.path))
  return { entries, metrics: new Map(metrics.map((metric) => [metric.name, metric])), at: performance.now() }
}

function entryOf({ name, type, help, unit }: Metric, path: string): Entry {
  const facts = [...(type === 'unknown' ? [] : [type]), ...(unit === undefined ? [] : [`in ${unit}`])].join(' ')
  const description = [help, facts === '' ? '' : `(${facts})`]
    .filter((part) => part !== undefined && part !== '')
    .join(' ')
  return {
    path,
    ...(path === seriesFolder + name ? {} : { title: name.replace(/[\p{Cc}\u2028\u2029]/gu, '\ufffd') }),
    ...(description === '' ? {} : { description }),
    mimeType: jsonType,
  }
}

/** Waits for a promise, and rejects when the signal aborts first. */
function until<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const give = () => reject(signal.reason)
    if (signal.aborted) return give()
    signal.addEventListener('abort', give)
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', give))
  })
}
