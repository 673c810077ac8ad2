import type { Attributes, Histogram, SpanKind as OtelKind } from '@opentelemetry/api'
import { isResourceError } from '../core/errors.ts'
import { defined } from '../core/kit/object.ts'
import type { Log } from '../core/log.ts'
import type { Principal } from '../core/provider.ts'
import type { Scrubber } from '../core/scrub.ts'
import type { Tool, ToolApp } from '../core/tool.ts'
import { type SpanKind, setTelemetry, type Telemetry, type TraceContext, traceContextIn } from '../core/trace.ts'
import type { Subscription, View } from '../core/view.ts'
import type { RefusedRequest } from './admission/limits.ts'
import { type Notification, ProtocolError } from './messages/messages.ts'
import { createAnswerScrubber } from './protocol/answer-scrubber.ts'
import { bindView, type ServerDescription } from './protocol/bind.ts'
import { type Channel, openChannel } from './protocol/channel.ts'
import type { ClientName, OpeningCatalog } from './protocol/envelope.ts'
import { createOutbox, type Outbox } from './protocol/listen.ts'
import { type ClientProfile, createClientOffers } from './protocol/method.ts'
import { ownToolNames } from './protocol/tools.ts'
import { type Audit, auditedTool, auditedView } from './telemetry/audit.ts'

/** Options of every transport: a view for each principal. */
export interface ServeOptions extends ServerDescription {
  readonly view: (principal: Principal) => View
  readonly log: Log
  readonly principal?: Principal
  readonly scrubber?: Scrubber
  /** Receives the audit records of requests. */
  readonly audit?: Audit
  /** Returns the current tools of a principal. Default none. */
  readonly tools?: (principal: Principal) => readonly Tool[]
  /** Returns the profile of a client, by its declared name. Default: the same for all clients, without reading tools. */
  readonly profileOf?: (client: ClientName | undefined) => ClientProfile
  readonly guide?: (principal: Principal) => string
  readonly readingTools?: (view: View) => readonly Tool[]
  readonly explorerApp?: ToolApp
  /** Time-out of a request, in milliseconds. Then it is cancelled, and its client gets an error. Default 120,000. */
  readonly timeoutMs?: number
  /** The mounts that are still opening: requests that need them wait. Undefined: the mounts are open. */
  readonly opening?: OpeningCatalog
}

export interface ServedOptions extends ServeOptions {
  readonly transport?: 'http' | 'stdio'
  readonly replica?: string
  readonly onRefused?: (refusal: RefusedRequest) => void
}

/** The principal of a caller who is not authenticated. It has no roles. */
export const localPrincipal: Principal = { id: 'local', roles: [] }

export interface NotificationSink {
  readonly write: (notification: Notification) => Promise<void>
  readonly onLost: () => void
}

export async function openViewChannel(
  options: ServedOptions,
  principal: Principal,
  era: 'modern' | 'legacy',
  announcements?: NotificationSink,
): Promise<Channel> {
  const { log, timeoutMs = 120_000, audit, transport = 'stdio' } = options
  await loadTelemetry(options.version, log)
  const scrubAnswer = createAnswerScrubber(options.scrubber)
  let channel: Channel | undefined
  const revision = () => channel?.revision
  const callerView = options.view(principal)
  const facts = { principal, transport, revision }
  const view = audit === undefined ? callerView : auditedView(callerView, audit, facts)
  const { tools: toolsOf, profileOf } = options
  const clientOffers =
    profileOf === undefined
      ? undefined
      : createClientOffers({
          profileOf,
          principal,
          whole: view,
          wrap: (narrow) => (audit === undefined ? narrow : auditedView(narrow, audit, facts)),
          ...defined({ readingTools: options.readingTools, explorerApp: options.explorerApp }),
        })
  const tools = async (client: ClientName | undefined, signal: AbortSignal, soon = false) => {
    const own = [...(toolsOf?.(principal) ?? []), ...(clientOffers?.tools(client) ?? [])]
    const reserved = new Set([...ownToolNames, ...own.map(({ name }) => name)])
    const { tools: others = [], ...rest } = (await view.tools?.list(reserved, { signal, soon })) ?? {}
    const all = [...own, ...others]
    return { tools: audit === undefined ? all : all.map((tool) => auditedTool(tool, audit, facts)), ...rest }
  }
  const hasTools = toolsOf !== undefined || clientOffers !== undefined || view.tools !== undefined
  const toolbox = hasTools ? { principal, tools } : undefined
  const outbox =
    era === 'legacy' && announcements !== undefined
      ? createOutbox(announcements.write, announcements.onLost)
      : undefined
  outbox?.open()
  const subscription = outbox === undefined ? undefined : subscribe(view, outbox, log)
  // A client that cannot get notifications must not see the capability declared.
  const promised = outbox !== undefined && subscription === undefined ? silent(view) : view
  const onClose = () => {
    subscription?.close()
    outbox?.close()
  }
  const retell = () => {
    const prompts = promised.prompts?.live === true
    const tools = promised.tools?.live === true
    outbox?.push({ uris: subscription?.uris ?? [], listed: subscription !== undefined, prompts, tools })
  }
  const instructions = options.instructions ?? options.guide?.(principal)
  const identity = { ...options, ...defined({ instructions }) }
  channel = openChannel(bindView(promised, identity, log, subscription, toolbox), {
    ...{ era, log, scrubAnswer, timeoutMs, onClose, retell },
    view,
    opening: options.opening,
    ...(clientOffers === undefined ? {} : { viewOf: clientOffers.view, noteOf: clientOffers.note }),
  })
  return channel
}

function silent(view: View): View {
  const { prompts, tools } = view
  return {
    ...view,
    live: false,
    ...(prompts === undefined ? {} : { prompts: { ...prompts, live: false } }),
    ...(tools === undefined ? {} : { tools: { ...tools, live: false } }),
  }
}

/** Opens the subscription of one client. Undefined when nothing can notify, or the maximum number of subscriptions is reached. */
function subscribe(view: View, outbox: Outbox, log: Log): Subscription | undefined {
  const subscription = openSubscription(view, outbox, log)
  if (subscription === undefined) return undefined
  return {
    get uris() {
      return subscription.uris
    },
    add: subscription.add,
    addList: subscription.addList,
    ...defined({ addPrompts: subscription.addPrompts, addTools: subscription.addTools }),
    remove: (uri) => {
      const before = subscription.uris
      subscription.remove(uri)
      const remainingUris = new Set(subscription.uris)
      for (const spelled of before) if (!remainingUris.has(spelled)) outbox.drop(spelled)
    },
    close: subscription.close,
  }
}

function openSubscription(view: View, outbox: Outbox, log: Log): Subscription | undefined {
  try {
    return view.subscribe?.((change) => outbox.push(change))
  } catch (error) {
    if (!isResourceError(error, 'invalid')) throw error
    log('debug', 'a client gets no notifications: too many subscriptions are open', { error })
    return undefined
  }
}

/** Key of the global object in which `@opentelemetry/api` 1.x keeps what an SDK has registered. */
const apiKey = Symbol.for('opentelemetry.js.api.1')

let loading: Promise<void> | undefined

/** Turns telemetry on when an SDK of OpenTelemetry is registered in this process. */
function loadTelemetry(version: string, log: Log): Promise<void> | undefined {
  if (loading !== undefined) return loading
  const registered = (globalThis as { readonly [apiKey]?: Readonly<Record<string, unknown>> })[apiKey]
  if (registered?.trace === undefined && registered?.metrics === undefined) return undefined
  loading = import('@opentelemetry/api').then(
    (api) => setTelemetry(createTelemetry(api, version)),
    (error: unknown) =>
      log(
        'warn',
        'an SDK of OpenTelemetry is registered, but @opentelemetry/api cannot be loaded beside this package',
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

function createTelemetry(
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
    const histogram = histograms.get(metric) ?? meter.createHistogram(metric, { unit: 's', advice })
    histograms.set(metric, histogram)
    return histogram
  }
  /** Whether an instrumentation of HTTP has begun a span in the trace already. That span is then the parent. */
  const isActive = ({ traceparent }: TraceContext) =>
    trace.getSpanContext(context.active())?.traceId === traceparent.split('-')[1]

  return {
    run: (spanName, { kind, attributes = {}, parent, duration }, work) => {
      const within =
        parent === undefined || isActive(parent) ? context.active() : propagation.extract(context.active(), parent)
      const start = performance.now()
      const all: Attributes = { ...attributes }
      return tracer.startActiveSpan(spanName, { kind: kinds[kind], attributes }, within, async (span) => {
        const fail = (type: string) => {
          all['error.type'] = type
          span.setAttribute('error.type', type)
          // Record neither the message nor the stack: both may contain text of a source.
          span.setStatus({ code: SpanStatusCode.ERROR })
        }
        try {
          return await work({ set: (more) => void span.setAttributes(more), fail })
        } catch (error) {
          fail(errorType(error))
          throw error
        } finally {
          span.end()
          if (duration !== undefined) histogramOf(duration).record((performance.now() - start) / 1000, all)
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

function errorType(error: unknown): string {
  if (isResourceError(error)) return error.kind
  return error instanceof ProtocolError ? String(error.code) : 'internal'
}
