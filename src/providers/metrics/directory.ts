import { comparePaths } from '../../core/path.ts'
import type { Entry } from '../../core/provider.ts'
import { nameOf, segmentOf } from './names.ts'
import { type Metric, type PageName, pageNames, type Source } from './source.ts'

/** What there is, as it was a moment ago. */
export interface Directory {
  /** In path order. */
  readonly entries: readonly Entry[]
  readonly metrics: ReadonlyMap<string, Metric>
  readonly at: number
}

/** Where the series of metrics are. */
export const seriesFolder = 'series/'
/** How a metric is called by a path. `undefined`: the path is of something else. */
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

/** What is listed is asked for again once it is so old, in milliseconds, */
const maxAge = 10_000
/** and where something is not in it, once it is so old. */
const maxAgeMissing = 1000

export interface Directories {
  /** What there is. */
  now(signal: AbortSignal): Promise<Directory>
  /** A metric, looked for again where it is not known yet. */
  find(name: string, signal: AbortSignal): Promise<Metric | undefined>
  /** Asks anew. */
  renew(signal: AbortSignal): Promise<Directory>
}

/** Keeps what a source lists for a few seconds: a directory is walked through in many steps. */
export function createDirectories(source: Source): Directories {
  let known: Directory | undefined
  let asking: Promise<Directory> | undefined

  const load = async (): Promise<Directory> => {
    // It is for everybody who waits: nobody who leaves ends it. The source has its own limit of time.
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

/** What a promise comes to, unless the signal aborts before. */
function until<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const give = () => reject(signal.reason)
    if (signal.aborted) return give()
    signal.addEventListener('abort', give)
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', give))
  })
}
