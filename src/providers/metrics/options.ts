import type { ServiceNetwork } from '../../core/address-guard.ts'
import { invalid } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'
import type { Measurements } from '../../core/measurements.ts'
import type { Store } from '../../store/store.ts'
import type { Credentials } from './request.ts'

interface CommonOptions {
  /**
   * Interval of the samples, in milliseconds: the finest automatic step, and the interval of polls for new samples. For the process itself:
   * the interval of measurements. Default 15,000.
   */
  readonly interval?: number
  /** Maximum number of series shown of an answer. Default 100. */
  readonly maxSeries?: number
  /** Maximum number of points shown of a series. Default 240. */
  readonly maxPoints?: number
  readonly log?: Log
}

export interface PrometheusMount extends CommonOptions, ServiceNetwork {
  readonly source?: 'prometheus'
  /** Address of the HTTP API, without `/api/v1`: `http://127.0.0.1:9090`, `https://example.org/prometheus`. */
  readonly url: string
  readonly credentials?: Credentials | undefined
  /** Allow list of globs over the names of metrics, as paths have them: every other metric is absent, for queries too. Default: all metrics. */
  readonly allow?: readonly string[]
  /** Time-out of an answer, in milliseconds. Default 20,000. */
  readonly timeoutMs?: number
  /** Maximum size of an answer, in bytes. Default 64 MiB. */
  readonly maxBytes?: number
}

export interface SelfMount extends CommonOptions {
  readonly source: 'self'
  /** The measurements to serve. Default: those of this process. */
  readonly measurements?: Measurements
  /** Retention time of measurements, in milliseconds. Default a day. */
  readonly keep?: number
  /** Store that keeps them beyond the process, under a name. Default: none. */
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

/** @throws ResourceError `invalid` (reason `limit`) unless the value is a whole number within the bounds. */
export function bounded(name: string, value: number, least: number, most: number): number {
  if (Number.isSafeInteger(value) && value >= least && value <= most) return value
  throw invalid(`${name} must be a whole number from ${least} to ${most}.`, 'limit')
}
