import type { Attributes, Histogram, SpanKind as OtelKind } from '@opentelemetry/api'
import { isResourceError } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'
import { type SpanKind, setTelemetry, type Telemetry, type TraceContext, traceContextIn } from '../../core/trace.ts'
import { ProtocolError } from '../protocol/errors.ts'

/** Key of the global object in which `@opentelemetry/api` 1.x keeps what an SDK has registered. */
const apiKey = Symbol.for('opentelemetry.js.api.1')

let loading: Promise<void> | undefined

/**
 * Turns telemetry on when an SDK of OpenTelemetry is registered in this process. Otherwise nothing is loaded, and the next call
 * looks again.
 */
export function loadTelemetry(version: string, log: Log): Promise<void> | undefined {
  if (loading !== undefined) return loading
  const registered = (globalThis as { readonly [apiKey]?: Readonly<Record<string, unknown>> })[apiKey]
  if (registered?.trace === undefined && registered?.metrics === undefined) return undefined
  loading = import('@opentelemetry/api').then(
    (api) => setTelemetry(createTelemetry(api, version)),
    (error: unknown) =>
      log(
        'warn',
        'an SDK of OpenTelemetry is registered, but @opentelemetry/api is not installed beside this package',
        {
          error,
        },
      ),
  )
  return loading
}

type Api = typeof import('@opentelemetry/api')

const name = 'hikidashi'
/** Boundaries of durations, in seconds, as the conventions for MCP recommend them. */
const boundaries = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300]

export function createTelemetry(
  { context, metrics, propagation, SpanKind, SpanStatusCode, trace }: Api,
  version: string,
): Telemetry {
  const tracer = trace.getTracer(name, version)
  const meter = metrics.getMeter(name, version)
  const kinds: Readonly<Record<SpanKind, OtelKind>> = {
    server: SpanKind.SERVER,
    client: SpanKind.CLIENT,
    internal: SpanKind.INTERNAL,
  }
  const histograms = new Map<string, Histogram>()
  const histogramOf = (metric: string): Histogram => {
    const advice = { explicitBucketBoundaries: boundaries }
    const known = histograms.get(metric) ?? meter.createHistogram(metric, { unit: 's', advice })
    histograms.set(metric, known)
    return known
  }
  /** Whether an instrumentation of HTTP has begun a span in the trace already. It is then the parent. */
  const isActive = ({ traceparent }: TraceContext) =>
    trace.getSpanContext(context.active())?.traceId === traceparent.split('-')[1]

  return {
    run: (spanName, { kind, attributes = {}, parent, duration }, work) => {
      const within =
        parent === undefined || isActive(parent) ? context.active() : propagation.extract(context.active(), parent)
      const begun = performance.now()
      const all: Attributes = { ...attributes }
      return tracer.startActiveSpan(spanName, { kind: kinds[kind], attributes }, within, async (span) => {
        const fail = (type: string) => {
          all['error.type'] = type
          span.setAttribute('error.type', type)
          // Neither the message nor the stack: both may hold text of a source.
          span.setStatus({ code: SpanStatusCode.ERROR })
        }
        try {
          return await work({ set: (more) => void span.setAttributes(more), fail })
        } catch (error) {
          fail(typeOf(error))
          throw error
        } finally {
          span.end()
          if (duration !== undefined) histogramOf(duration).record((performance.now() - begun) / 1000, all)
        }
      })
    },
    current: () => {
      const carrier: Record<string, string> = {}
      propagation.inject(context.active(), carrier)
      return traceContextIn(carrier)
    },
  }
}

function typeOf(error: unknown): string {
  if (isResourceError(error)) return error.kind
  return error instanceof ProtocolError ? String(error.code) : 'internal'
}
