import { AsyncLocalStorage } from 'node:async_hooks'

/** The trace context of a caller, as the headers of W3C Trace Context have it. */
export interface TraceContext {
  readonly traceparent: string
  readonly tracestate?: string
}

/** The kind of a span: a request that this process serves, one that it sends, or a step in between. */
export type SpanKind = 'server' | 'client' | 'internal'

interface SpanOptions {
  readonly kind: SpanKind
  readonly attributes?: Readonly<Record<string, string | number>>
  /** Trace context of the caller. The span becomes part of the caller's trace. */
  readonly parent?: TraceContext | undefined
  /** Name of the histogram that gets the duration in seconds, with the attributes. */
  readonly duration?: string
}

interface TraceSpan {
  set(attributes: Readonly<Record<string, string | number>>): void
  /** Marks the work as failed, although it does not throw. `type` is one word of a closed list. */
  fail(type: string): void
}

/** Records spans and durations. Implemented over OpenTelemetry, when this process has its SDK. */
export interface Telemetry {
  run<T>(name: string, options: SpanOptions, work: (span: TraceSpan) => Promise<T>): Promise<T>
  current(): TraceContext | undefined
}

const noSpan: TraceSpan = { set: () => {}, fail: () => {} }
const contexts = new AsyncLocalStorage<TraceContext>()
/** The telemetry of this process, if there is one. */
export let telemetry: Telemetry | undefined

export function setTelemetry(next: Telemetry | undefined): void {
  telemetry = next
}

/**
 * Runs work in a span. Without telemetry it only runs the work, in which {@link traceContext} returns the trace context of the
 * caller unchanged.
 */
export function runInSpan<T>(name: string, options: SpanOptions, work: (span: TraceSpan) => Promise<T>): Promise<T> {
  if (telemetry !== undefined) return telemetry.run(name, options, work)
  return options.parent === undefined ? work(noSpan) : contexts.run(options.parent, () => work(noSpan))
}

export async function runSourceInSpan<T>(
  verb: 'read' | 'call' | 'prompt',
  address: string,
  work: () => Promise<T>,
): Promise<T> {
  if (telemetry === undefined) return work()
  const attributes = { 'hikidashi.mount': address }
  return telemetry.run(`source.${verb}`, { kind: 'internal', attributes }, work)
}

/** Returns the trace context for a request that goes out now: an empty object when there is none. */
export function traceContext(): Partial<TraceContext> {
  return (telemetry === undefined ? contexts.getStore() : telemetry.current()) ?? {}
}

/** Maximum length of `tracestate`, in characters (W3C Trace Context, 3.3.1.5). A longer one is left out. */
const maxTraceState = 512

/** Returns the trace context in headers, or in `_meta`. Undefined when there is none, or `traceparent` is malformed. */
export function traceContextIn(values: Readonly<Record<string, unknown>>): TraceContext | undefined {
  const { traceparent, tracestate } = values
  if (typeof traceparent !== 'string') return undefined
  // Version ff is invalid, and so are ids of zeros (W3C Trace Context, 3.2.2).
  const isValid = /^(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/.test(traceparent)
  if (!isValid) return undefined
  const isState = typeof tracestate === 'string' && tracestate.length <= maxTraceState && /^[ -~]+$/.test(tracestate)
  return isState ? { traceparent, tracestate } : { traceparent }
}
