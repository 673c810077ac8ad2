import { contentLength } from '../../core/entry.ts'
import { isResourceError } from '../../core/errors.ts'
import { defined } from '../../core/kit/object.ts'
import { metaKeys } from '../../core/meta.ts'
import type { Principal } from '../../core/provider.ts'
import type { PostEndpoint, Tool } from '../../core/tool.ts'
import type { CallOptions, Page, ReadResult, Subscription, View } from '../../core/view.ts'

export interface AuditRecord {
  readonly time: string
  /** Id of the principal. Undefined when the request was refused before authentication. */
  readonly principal?: string
  /** The name of the token of the principal, if it has one. */
  readonly label?: string
  /** Network address of a request that was refused before authentication. */
  readonly address?: string
  readonly transport: 'http' | 'stdio'
  /** Revision of the protocol, after it was negotiated. */
  readonly revision?: string
  /** The operation. `refused`: the request was refused before its operation was known. */
  readonly verb:
    | 'mounts'
    | 'list'
    | 'templates'
    | 'read'
    | 'directory'
    | 'stat'
    | 'changed'
    | 'complete'
    | 'prompts'
    | 'prompt'
    | 'skills'
    | 'skill'
    | 'subscribe'
    | 'events'
    | 'webhook'
    | 'call'
    | 'post'
    | 'refused'
  /** Id of the subscription of a webhook. The `uri` of such a record is the origin of the endpoint. */
  readonly subscription?: string
  /** Subject of the request, if it has exactly one: a URI, a URI template, the name of a tool or a prompt, the path of a post. */
  readonly uri?: string
  /**
   * `ok`; the kind of the error; `cancelled`; `denied`: a rule denies the request, or none allows it; `unheard`: the URI cannot be listened
   * to; `failed`: a tool of another server reports a failure. Of a refusal over HTTP by authentication: `no-token`, `malformed-token`,
   * `bad-token`, `unjudged-token`, `scope`, `host`, `no-link` (a link to a content that is forged or has expired). By a limit: `rate`,
   * `share`, `busy`, `sessions`, `connections`, `bad-tokens`, `too-large`. `left-out`: there were too many refusals, and `items` of them
   * have no record.
   */
  readonly outcome: string
  readonly status?: number
  /** Size of the read content, in bytes. */
  readonly bytes?: number
  /** Version of the read content, if the source has one. */
  readonly version?: string
  /** Full id of the commit from which the content was read. */
  readonly commit?: string
  /** Number of listed or completed items. */
  readonly items?: number
  /** Duration, in milliseconds. */
  readonly ms: number
}

export type Audit = (record: AuditRecord) => void

interface AuditedFacts {
  readonly principal: Principal
  readonly transport: 'http' | 'stdio'
  readonly revision: () => string | undefined
}

type Answered = Partial<Pick<AuditRecord, 'outcome' | 'bytes' | 'version' | 'commit' | 'items'>>

function createRecorder(audit: Audit, { principal, transport, revision }: AuditedFacts) {
  const record = (verb: AuditRecord['verb'], uri: string | undefined, start: number, answered: Answered): void => {
    const agreed = revision()
    audit({
      time: new Date().toISOString(),
      principal: principal.id,
      ...defined({ label: principal.label }),
      transport,
      ...defined({ revision: agreed }),
      verb,
      ...defined({ uri }),
      outcome: 'ok',
      ...answered,
      ms: Math.round((performance.now() - start) * 10) / 10,
    })
  }

  const recorded = async <T>(
    verb: AuditRecord['verb'],
    uri: string | undefined,
    options: CallOptions | undefined,
    work: Promise<T>,
    facts: (answer: T) => Answered,
  ): Promise<T> => {
    const start = performance.now()
    try {
      const answer = await work
      record(verb, uri, start, facts(answer))
      return answer
    } catch (error) {
      record(verb, uri, start, { outcome: options?.signal?.aborted ? 'cancelled' : outcomeOf(error) })
      throw error
    }
  }
  return { record, recorded }
}

/** Wraps a tool so that each call, and each read of its app, is recorded. */
export function auditedTool(tool: Tool, audit: Audit, facts: AuditedFacts): Tool {
  const { recorded } = createRecorder(audit, facts)
  const { app } = tool
  return {
    ...tool,
    ...(app && {
      app: {
        uri: app.uri,
        html: () => recorded('read', app.uri, undefined, app.html(), (html) => ({ bytes: Buffer.byteLength(html) })),
      },
    }),
    call: (args, context, report) =>
      recorded('call', tool.name, context, tool.call(args, context, report), ({ failed }) =>
        failed === true ? { outcome: 'failed' } : {},
      ),
  }
}

/** Wraps an endpoint so that each post is recorded. */
export function auditedPostEndpoint(
  posting: PostEndpoint,
  path: string,
  audit: Audit,
  facts: AuditedFacts,
): PostEndpoint {
  const { recorded } = createRecorder(audit, facts)
  return { post: (value, context) => recorded('post', path, context, posting.post(value, context), () => ({})) }
}

/** Wraps a view so that its operations are recorded, except reads with `probe` and subscriptions to lists. */
export function auditedView(view: View, audit: Audit, facts: AuditedFacts): View {
  const { record, recorded } = createRecorder(audit, facts)
  const itemsOf = ({ items }: Page<unknown>): Answered => ({ items: items.length })
  const { subscribe, prompts, skills, stat, changed, history } = view
  return {
    ...view,
    mounts: (options) =>
      recorded('mounts', undefined, options, view.mounts(options), (resources) => ({ items: resources.length })),
    list: (query, options) => recorded('list', undefined, options, view.list(query, options), itemsOf),
    templates: (query, options) => recorded('templates', undefined, options, view.templates(query, options), itemsOf),
    read: (uri, options) => {
      const reading = view.read(uri, options)
      return options?.probe === true ? reading : recorded('read', uri, options, reading, readFacts)
    },
    ...(stat && {
      stat: (uri, options) => recorded('stat', uri, options, stat(uri, options), () => ({})),
    }),
    ...(changed && {
      changed: (query, options) => recorded('changed', undefined, options, changed(query, options), () => ({})),
    }),
    directory: (query, options) => recorded('directory', query.uri, options, view.directory(query, options), itemsOf),
    complete: (request, options) =>
      recorded('complete', request.uriTemplate, options, view.complete(request, options), ({ values }) => ({
        items: values.length,
      })),
    ...(prompts && {
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
    ...(skills && {
      skills: {
        list: (query, options) => recorded('skills', undefined, options, skills.list(query, options), itemsOf),
        get: (uri, options) => recorded('skill', uri, options, skills.get(uri, options), () => ({})),
      },
    }),
    ...(history && {
      history: {
        open: (filter, options) => recorded('events', filter.uri, options, history.open(filter, options), () => ({})),
      },
    }),
    ...(subscribe && { subscribe: (listener) => auditedSubscription(subscribe(listener), record) }),
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
      const start = performance.now()
      try {
        const honoured = await subscription.add(uris, options)
        const honouredUris = new Set(honoured)
        for (const uri of uris) record('subscribe', uri, start, { outcome: honouredUris.has(uri) ? 'ok' : 'unheard' })
        return honoured
      } catch (error) {
        for (const uri of uris.slice(0, 1)) record('subscribe', uri, start, { outcome: outcomeOf(error) })
        throw error
      }
    },
    addList: subscription.addList,
    ...defined({ addPrompts: subscription.addPrompts, addTools: subscription.addTools }),
    remove: subscription.remove,
    close: subscription.close,
  }
}

function outcomeOf(error: unknown): string {
  if (!isResourceError(error)) return 'internal'
  return error.kind === 'not-found' && error.detail.fault === 'denied' ? 'denied' : error.kind
}

/** Maximum length of a version in a record, in characters. */
export const maxVersionLength = 200

function readFacts({ contents }: ReadResult): Answered {
  const { version, meta = {} } = contents[0] ?? {}
  const commit = meta[metaKeys.commit]
  return {
    bytes: contents.reduce((sum, content) => sum + contentLength(content), 0),
    ...(version === undefined ? {} : { version: version.slice(0, maxVersionLength) }),
    ...(typeof commit === 'string' && /^[0-9a-f]{40,64}$/.test(commit) ? { commit } : {}),
  }
}
