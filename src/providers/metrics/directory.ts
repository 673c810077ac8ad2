import { singleFlight, untilAborted } from '../../core/kit/abort.ts'
import { comparePaths, segmentFault } from '../../core/path.ts'
import type { Entry } from '../../core/provider.ts'
import { type Metric, type MetricSource, type PageName, pageNames } from './source.ts'

interface Directory {
  readonly entries: readonly Entry[]
  readonly metrics: ReadonlyMap<string, Metric>
  readonly at: number
}

export const seriesFolder = 'series/'
export function metricNameAt(path: string): string | undefined {
  return path.startsWith(seriesFolder) ? decodeMetricName(path.slice(seriesFolder.length)) : undefined
}

export const jsonType = 'application/json'

const pages: Readonly<Record<PageName, Entry>> = {
  alerts: {
    path: 'alerts',
    title: 'Alerts',
    description: 'The alerts that are pending or firing now.',
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
    description: 'The scraped targets, and whether they answer.',
    mimeType: jsonType,
  },
}

const maxAgeMs = 10_000
/** Maximum age of the cached list of metrics when a metric is missing from it, in milliseconds. */
const maxAgeMissingMs = 1000

export type DirectoryCache = ReturnType<typeof createDirectoryCache>

/** Caches the list of a source for a few seconds, because a client walks through a directory in many steps. */
export function createDirectoryCache(source: MetricSource) {
  let directory: Directory | undefined
  const loading = singleFlight(async () => {
    // The load is shared, so the abort of one caller does not cancel it. The source has its own time-out.
    const metrics = await source.metrics(new AbortController().signal)
    directory = directoryOf(metrics, source.page !== undefined)
    return directory
  })
  const renew = (signal: AbortSignal): Promise<Directory> => untilAborted(loading.run(), signal)
  const now = async (signal: AbortSignal): Promise<Directory> => {
    signal.throwIfAborted()
    return directory !== undefined && ageOf(directory) < maxAgeMs ? directory : renew(signal)
  }
  return {
    now,
    renew,
    /** Finds a metric. If it is unknown, and the list is older than {@link maxAgeMissingMs}, the list is loaded again. */
    find: async (name: string, signal: AbortSignal): Promise<Metric | undefined> => {
      const metric = (await now(signal)).metrics.get(name)
      if (metric !== undefined || (directory !== undefined && ageOf(directory) < maxAgeMissingMs)) return metric
      return (await renew(signal)).metrics.get(name)
    },
  }
}

const ageOf = ({ at }: Directory) => performance.now() - at

function directoryOf(metrics: readonly Metric[], hasPages: boolean): Directory {
  const entries = metrics.flatMap((metric): Entry[] => {
    const segment = metricSegment(metric.name)
    return segment === undefined ? [] : [metricEntry(metric, seriesFolder + segment)]
  })
  if (hasPages) entries.push(...pageNames.map((name) => pages[name]))
  entries.sort((a, b) => comparePaths(a.path, b.path))
  return { entries, metrics: new Map(metrics.map((metric) => [metric.name, metric])), at: performance.now() }
}

function metricEntry({ name, type, help, unit }: Metric, path: string): Entry {
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

/** Maximum length of the name of a metric in a path, in characters. */
const maxLength = 1024

const escapedPrefix = 'U__'

/**
 * Returns the path segment for the name of a metric: the name itself, if it is a valid segment and does not begin with `U__`. Otherwise it
 * is escaped by the "value encoding" of Prometheus: `U__`, then letters, digits and colons as they are, `__` for an underscore, and `_2f_`
 * for any other character, by its code point. Undefined: no path can hold the name.
 */
export function metricSegment(name: string): string | undefined {
  if (name === '' || name.length > maxLength || !name.isWellFormed()) return undefined
  if (!name.startsWith(escapedPrefix) && segmentFault(name) === undefined) return name
  const escaped = Array.from(name, (character) => {
    if (/[A-Za-z0-9:]/.test(character)) return character
    return character === '_' ? '__' : `_${(character.codePointAt(0) ?? 0).toString(16)}_`
  })
  return escapedPrefix + escaped.join('')
}

/** Returns the name of a metric for its path segment. Undefined: no name has this segment. */
export function decodeMetricName(segment: string): string | undefined {
  if (!segment.startsWith(escapedPrefix)) return metricSegment(segment) === segment ? segment : undefined
  const name = segment
    .slice(escapedPrefix.length)
    .replace(/__|_([0-9a-f]{1,6})_/g, (_, hex?: string) => (hex === undefined ? '_' : character(hex)))
  return metricSegment(name) === segment ? name : undefined
}

function character(hex: string): string {
  const code = Number.parseInt(hex, 16)
  return code <= 0x10ffff ? String.fromCodePoint(code) : ''
}
