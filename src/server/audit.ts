import { isResourceError } from '../core/errors.ts'
import type { Principal } from '../core/provider.ts'
import type { Posting, Tool } from '../core/tool.ts'
import type { CallOptions, Page, ReadResult, ResourceContent, Subscription, View } from '../core/view.ts'

/** What one request came to. Never what it answered, nor by which token. */
export interface AuditRecord {
  /** When it ended, in ISO 8601. */
  readonly time: string
  /** The id of the principal. Not there where a request was turned away before anybody knew who asks. */
  readonly principal?: string
  /** The network address that such a request came from. */
  readonly address?: string
  readonly transport: 'http' | 'stdio'
  /** The revision of the protocol, once it is agreed on. */
  readonly revision?: string
  /** What was asked for. `refused`: it was turned away before that was known. */
  readonly verb:
    | 'mounts'
    | 'list'
    | 'templates'
    | 'read'
    | 'directory'
    | 'complete'
    | 'prompts'
    | 'prompt'
    | 'subscribe'
    | 'call'
    | 'post'
    | 'refused'
  /** What it was about, where it was about one thing: a URI, a URI template, the name of a tool or a prompt, the path of a post. */
  readonly uri?: string
  /**
   * `ok`; what went wrong; `denied`: a rule, or that no rule allows it, which the client cannot tell from `not-found`;
   * `unheard`: there is nothing to be heard of.
   *
   * What was turned away over HTTP has a status, too. By who asked: `no-token`, `malformed-token`, `bad-token`, `unjudged-token`,
   * `scope`, `host`. By a limit: `rate`, `share`, `busy`, `sessions`, `connections`, `bad-tokens`, `too-large`.
   * `left-out`: so many more (`items`) were not recorded, since there were too many.
   */
  readonly outcome: string
  /** The HTTP status that it was turned away with. */
  readonly status?: number
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

/** Takes records of what is done for one principal. */
function createRecorder(audit: Audit, { principal, transport, revision }: AuditedFacts) {
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
  return { record, recorded }
}

/** A tool that records each call of it. */
export function auditedTool(tool: Tool, audit: Audit, facts: AuditedFacts): Tool {
  const { recorded } = createRecorder(audit, facts)
  return {
    ...tool,
    call: (given, context) => recorded('call', tool.name, context, tool.call(given, context), () => ({})),
  }
}

/** A place that records each post. */
export function auditedPosting(posting: Posting, path: string, audit: Audit, facts: AuditedFacts): Posting {
  const { recorded } = createRecorder(audit, facts)
  return { post: (value, context) => recorded('post', path, context, posting.post(value, context), () => ({})) }
}

/** A view that records everything that is asked of it. */
export function audited(view: View, audit: Audit, facts: AuditedFacts): View {
  const { record, recorded } = createRecorder(audit, facts)
  const itemsOf = ({ items }: Page<unknown>): Answered => ({ items: items.length })
  const { subscribe, prompts } = view
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
    ...(prompts === undefined
      ? {}
      : {
          prompts: {
            ...prompts,
            list: (query, options) => recorded('prompts', undefined, options, prompts.list(query, options), itemsOf),
            get: (request, options) =>
              recorded('prompt', request.name, options, prompts.get(request, options), ({ messages }) => ({
                items: messages.length,
              })),
            complete: (request, options) =>
              recorded('complete', request.name, options, prompts.complete(request, options), ({ values }) => ({
                items: values.length,
              })),
          },
        }),
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
    ...(subscription.addPrompts === undefined ? {} : { addPrompts: subscription.addPrompts }),
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
