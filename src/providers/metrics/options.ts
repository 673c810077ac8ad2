import type { ServiceNetwork } from '../../core/address-guard.ts'
import { invalid } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'
import type { Measurements } from '../../core/measurements.ts'
import type { Store } from '../../store/store.ts'
import type { Credentials } from './request.ts'

interface CommonOptions {
  /**
   * How far apart samples are, in milliseconds: the finest step that is chosen, and how often it is looked for new ones. Of
   * the process itself: how often it is measured. Default 15,000.
   */
  readonly interval?: number
  /** How many series of an answer are shown. Default 100. */
  readonly maxSeries?: number
  /** How many points of a series are shown. Default 240. */
  readonly maxPoints?: number
  readonly log?: Log
}

export interface PrometheusMount extends CommonOptions, ServiceNetwork {
  readonly source?: 'prometheus'
  /** Where its HTTP API is, without `/api/v1`: `http://127.0.0.1:9090`, `https://example.org/prometheus`. */
  readonly url: string
  readonly credentials?: Credentials | undefined
  /** Globs over the names of metrics, as paths have them: every other metric is absent, for queries too. By default all are there. */
  readonly allow?: readonly string[]
  /** How long an answer may take, in milliseconds. Default 20,000. */
  readonly timeoutMs?: number
  /** The longest answer, in bytes. Default 64 MiB. */
  readonly maxBytes?: number
}

export interface SelfMount extends CommonOptions {
  readonly source: 'self'
  /** What is measured. By default this process alone. */
  readonly measurements?: Measurements
  /** How long measurements are kept, in milliseconds. Default a day. */
  readonly keep?: number
  /** Where they are kept beyond the process, under a name. By default nowhere. */
  readonly store?: Store
  readonly name?: string
}

export type MetricsOptions = PrometheusMount | SelfMount

export const defaults = {
  interval: 15_000,
  maxSeries: 100,
  maxPoints: 240,
  timeoutMs: 20_000,
  maxBytes: 64 * 1024 * 1024,
  keep: 24 * 3_600_000,
} as const

/** @throws ResourceError `invalid` (reason `limit`) for a number that is none, too small or too large. */
export function bounded(name: string, value: number, least: number, most: number): number {
  if (Number.isSafeInteger(value) && value >= least && value <= most) return value
  throw invalid(`${name} must be a whole number from ${least} to ${most}.`, 'limit')
}
