import type { Template } from '../../core/provider.ts'
import { jsonType } from './directory.ts'

export const seriesTemplate = 'series/{metric}{?match,start,end,step,as}'
export const queryTemplate = 'query{?query,start,end,step,as}'

const times =
  'Times are -1h, -7d, now, 2026-11-21T10:00:00Z or Unix seconds; step is 30s, 5m or 1h, and fits by itself. ' +
  'as=csv is a table, as=chart a picture (SVG).'

/** URI templates besides the listed resources. */
export const templates: readonly Template[] = [
  {
    template: seriesTemplate,
    name: 'Series of a metric',
    title: 'How a metric went over time',
    description:
      `The series of a metric with a summary of each: smallest, largest and last value, trend, gaps. The last hour unless told. ${times} ` +
      'match={job="node",instance=~"web.*"} is only those whose labels match.',
    mimeType: jsonType,
  },
  {
    template: queryTemplate,
    name: 'Query',
    title: 'What a query in PromQL comes to',
    description: `With start: at each step since then. Without: just now, or at end. ${times}`,
    mimeType: jsonType,
  },
]
