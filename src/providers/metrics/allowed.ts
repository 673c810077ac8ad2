import { invalid, notFound } from '../../core/errors.ts'
import { compileGlobs } from '../../core/glob.ts'
import { defined } from '../../core/kit/defined.ts'
import { segmentOf } from './names.ts'
import { parseQuery } from './promql.ts'
import type { Source } from './source.ts'

/**
 * Wraps a source with an allow list of metrics. Every other metric is absent: it is not listed, and its series, labels and values are not
 * found. A query is parsed first, and is sent only if every selector in it names exactly one allowed metric; the text sent is the query as it
 * was parsed ({@link parseQuery}).
 *
 * The pages (alerts, rules, targets) are left out, because they show expressions and values of any metric.
 *
 * @param allow Globs over the names of metrics as paths have them: a name with a slash is escaped ({@link segmentOf}), so that no part of a
 * name counts as the whole name.
 * @throws ResourceError `invalid` (reason `allow`) for a glob with a slash, and (reason `glob`) for a malformed one.
 */
export function allowed(source: Source, allow: readonly string[]): Source {
  if (allow.some((glob) => glob.includes('/')))
    throw invalid('A glob of "allow" is about the name of a metric in a path, which has no slash.', 'allow')
  const matches = compileGlobs(allow)
  const isAllowed = (metric: string): boolean => {
    const segment = segmentOf(metric)
    return segment !== undefined && matches(segment)
  }
  const { interval, stamp, close } = source
  return {
    interval,
    stamp,
    metrics: async (signal) => (await source.metrics(signal)).filter(({ name }) => isAllowed(name)),
    select: async (selector, span, signal) => {
      if (!isAllowed(selector.metric)) throw notFound('no such metric')
      return source.select(selector, span, signal)
    },
    query: async (text, when, signal) => {
      const { metrics, text: checked } = parseQuery(text)
      if (!metrics.every(isAllowed)) throw invalid('The query names a metric that this mount does not serve.', 'query')
      return source.query(checked, when, signal)
    },
    labels: async (metric, signal) => (isAllowed(metric) ? source.labels(metric, signal) : []),
    values: async (metric, label, signal) => {
      if (!isAllowed(metric)) return []
      const found = await source.values(metric, label, signal)
      // Versions of Prometheus before 2.24 return the values of all metrics.
      return label === '__name__' ? found.filter(isAllowed) : found
    },
    ...defined({ close }),
  }
}
