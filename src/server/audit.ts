import { isResourceError } from '../core/errors.ts'
import type { Principal } from '../core/provider.ts'
import type { CallOptions, Page, ReadResult, ResourceContent, Subscription, View } from '../core/view.ts'

/** What one request came to. Never what it answered, nor by which token. */
export interface AuditRecord {
  /** When it ended, in ISO 8601. */
  readonly time: string
  /** The id of the principal. */
  readonly principal: string
  readonly transport: 'http' | 'stdio'
  /** The revision of the protocol, once it is agreed on. */
  readonly revision?: string
  readonly verb: 'mounts' | 'list' | 'templates' | 'read' | 'directory' | 'complete' | 'subscribe' | 'refused'
  /** What it was about, where it was about one thing: a URI, or a URI template. */
  readonly uri?: string
  /**
   * `ok`; what went wrong; `denied`: a rule, or that no rule allows it, which the client cannot tell from `not-found`;
   * `unheard`: there is nothing to be heard of; `rate`, `share` or `busy`: it was turned away by a limit.
   */
  readonly outcome: string
  /** Of what was read, in bytes. */
  readonly bytes?: number
  /** How many there were of whatever was listed or completed. */
  readonly items?: number
  /** How long it took, in milliseconds. */
  readonly ms: number
}

/** Where records go. It does not throw, and nobody waits for it. */
export type Audit = (record: AuditRecord) => void

export interface AuditedFacts {
  readonly principal: Principal
  readonly transport: 'http' | 'stdio'
  readonly revision: () => string | undefined
}

type Answered = Partial<Pick<AuditRecord, 'outcome' | 'bytes' | 'items'>>

/** A view that records everything that is asked of it. */
export function audited(view: View, audit: Audit, { principal, transport, revision }: AuditedFacts): View {
  const record = (verb: AuditRecord['verb'], uri: string | undefined, begun: number, answered: Answered): void => {
    const agreed = revision()
    audit({
      time: new Date().toISOString(),
      principal: principal.id,
      transport,
      ...(agreed === undefined ? {} : { revision: agreed }),
      verb,
      ...(uri === undefined ? {} : { uri }),
      outcome: 'ok',
      ...answered,
      ms: Math.round((performance.now() - begun) * 10) / 10,
    })
  }

  const recorded = async <T>(
    verb: AuditRecord['verb'],
    uri: string | undefined,
    options: CallOptions | undefined,
    work: Promise<T>,
    facts: (answer: T) => Answered,
  ): Promise<T> => {
    const begun = performance.now()
    try {
      const answer = await work
      record(verb, uri, begun, facts(answer))
      return answer
    } catch (error) {
      record(verb, uri, begun, { outcome: options?.signal?.aborted ? 'cancelled' : outcomeOf(error) })
      throw error
    }
  }

  const itemsOf = ({ items }: Page<unknown>): Answered => ({ items: items.length })
  const { subscribe } = view
  return {
    ...view,
    mounts: (options) =>
      recorded('mounts', undefined, options, view.mounts(options), (found) => ({ items: found.length })),
    list: (query, options) => recorded('list', undefined, options, view.list(query, options), itemsOf),
    templates: (query, options) => recorded('templates', undefined, options, view.templates(query, options), itemsOf),
    read: (uri, options) => recorded('read', uri, options, view.read(uri, options), bytesOf),
    directory: (query, options) => recorded('directory', query.uri, options, view.directory(query, options), itemsOf),
    complete: (request, options) =>
      recorded('complete', request.uriTemplate, options, view.complete(request, options), ({ values }) => ({
        items: values.length,
      })),
    ...(subscribe === undefined ? {} : { subscribe: (listener) => auditedSubscription(subscribe(listener), record) }),
  }
}

function auditedSubscription(
  subscription: Subscription,
  record: (verb: 'subscribe', uri: string, begun: number, answered: Answered) => void,
): Subscription {
  return {
    get uris() {
      return subscription.uris
    },
    add: async (uris, options) => {
      const begun = performance.now()
      try {
        const honoured = await subscription.add(uris, options)
        const heard = new Set(honoured)
        for (const uri of uris) record('subscribe', uri, begun, { outcome: heard.has(uri) ? 'ok' : 'unheard' })
        return honoured
      } catch (error) {
        for (const uri of uris.slice(0, 1)) record('subscribe', uri, begun, { outcome: outcomeOf(error) })
        throw error
      }
    },
    addList: subscription.addList,
    remove: subscription.remove,
    close: subscription.close,
  }
}

function outcomeOf(error: unknown): string {
  if (!isResourceError(error)) return 'internal'
  return error.kind === 'not-found' && error.detail.reason === 'denied' ? 'denied' : error.kind
}

function bytesOf({ contents }: ReadResult): Answered {
  return { bytes: contents.reduce((sum, content) => sum + byteLength(content), 0) }
}

function byteLength(content: ResourceContent): number {
  if ('text' in content) return Buffer.byteLength(content.text)
  return 'bytes' in content ? content.bytes.length : content.length
}
