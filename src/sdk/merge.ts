import { ProtocolError } from '../server/protocol/errors.ts'
import type { SdkContext, SdkHandler, SdkRequest, SdkResult } from './sdk-server.ts'

export interface Merging {
  /** The handlers that the server had. */
  readonly before: ReadonlyMap<string, SdkHandler>
  /** The handler of the view for a method. */
  readonly ask: (method: string) => SdkHandler
  readonly live: boolean
  readonly tools: boolean
}

/** The handlers of a server and those of a view, as one. */
export function mergeHandlers({ before, ask, live, tools }: Merging): ReadonlyMap<string, SdkHandler> {
  const own = (method: string) => before.get(method)
  const merged: [string, SdkHandler][] = [
    ['resources/list', lists(own('resources/list'), ask('resources/list'), 'resources')],
    [
      'resources/templates/list',
      lists(own('resources/templates/list'), ask('resources/templates/list'), 'resourceTemplates'),
    ],
    ['resources/read', firstOf(ask('resources/read'), own('resources/read'))],
    ['resources/directory/read', firstOf(ask('resources/directory/read'), own('resources/directory/read'))],
    ['completion/complete', completes(ask('completion/complete'), own('completion/complete'))],
  ]
  if (live)
    for (const method of ['resources/subscribe', 'resources/unsubscribe'])
      merged.push([method, firstOf(ask(method), own(method))])
  if (tools)
    merged.push(
      ['tools/list', lists(own('tools/list'), ask('tools/list'), 'tools', true)],
      ['tools/call', calls(own('tools/call'), ask('tools/call'), own('tools/list'))],
    )
  return new Map(merged)
}

/** Prefixes of cursors: of the server itself, or of the view. */
const marks = { own: 'own:', view: 'view:' } as const

/**
 * The pages of the server, and behind the last one those of the view.
 *
 * @param hides Whether what the server has itself hides what is of the same name in the view.
 */
function lists(own: SdkHandler | undefined, ofView: SdkHandler, key: string, hides = false): SdkHandler {
  const pageOf = async (handler: SdkHandler, request: SdkRequest, context: SdkContext, cursor: string | undefined) => {
    const { cursor: _, ...params } = request.params ?? {}
    return handler({ ...request, params: cursor === undefined ? params : { ...params, cursor } }, context)
  }
  const marked = ({ nextCursor, ...page }: SdkResult, mark: string): SdkResult =>
    typeof nextCursor === 'string' ? { ...page, nextCursor: `${mark}${nextCursor}` } : page

  return async (request, context) => {
    const cursor = request.params?.cursor
    if (typeof cursor === 'string' && cursor.startsWith(marks.view))
      return marked(await pageOf(ofView, request, context, cursor.slice(marks.view.length)), marks.view)
    if (cursor !== undefined && !(typeof cursor === 'string' && cursor.startsWith(marks.own)))
      throw new ProtocolError(-32602, 'The cursor is not one of this list.')
    if (own === undefined) return marked(await pageOf(ofView, request, context, undefined), marks.view)
    const ownCursor = cursor === undefined ? undefined : cursor.slice(marks.own.length)
    const page = await pageOf(own, request, context, ownCursor)
    if (typeof page.nextCursor === 'string') return marked(page, marks.own)
    const more = marked(await pageOf(ofView, request, context, undefined), marks.view)
    const items = itemsOf(page, key)
    const names = new Set(hides ? items.map(nameOf) : [])
    const rest = itemsOf(more, key).filter((item) => !names.has(nameOf(item)))
    return { ...page, ...more, [key]: [...items, ...rest] }
  }
}

const itemsOf = (page: SdkResult, key: string): readonly unknown[] => (Array.isArray(page[key]) ? page[key] : [])
const nameOf = (item: unknown): unknown =>
  typeof item === 'object' && item !== null ? Reflect.get(item, 'name') : undefined

/** Whether an error says that a view does not know what was asked for. */
function isUnknown(error: unknown): error is ProtocolError {
  return error instanceof ProtocolError && (error.code === -32602 || error.code === -32002)
}

/** Asks the view first, then the server. If neither has it, the answer is that of the server. */
function firstOf(ofView: SdkHandler, own: SdkHandler | undefined): SdkHandler {
  return async (request, context) => {
    try {
      return await ofView(request, context)
    } catch (error) {
      if (own === undefined || !isUnknown(error)) throw error
      return own(request, context)
    }
  }
}

/** Completion of a prompt is the server's. */
function completes(ofView: SdkHandler, own: SdkHandler | undefined): SdkHandler {
  const either = firstOf(ofView, own)
  return (request, context) => {
    const ref = request.params?.ref
    const isPrompt = typeof ref === 'object' && ref !== null && Reflect.get(ref, 'type') === 'ref/prompt'
    return isPrompt && own !== undefined ? own(request, context) : either(request, context)
  }
}

/** A tool of the server hides one of the same name in the view. */
function calls(own: SdkHandler | undefined, ofView: SdkHandler, list: SdkHandler | undefined): SdkHandler {
  return async (request, context) => {
    if (own === undefined) return ofView(request, context)
    const ofServer = list === undefined ? {} : await list({ method: 'tools/list', params: {} }, context)
    const isOwn = itemsOf(ofServer, 'tools').some((tool) => nameOf(tool) === request.params?.name)
    if (isOwn) return own(request, context)
    try {
      return await ofView(request, context)
    } catch (error) {
      if (!isUnknown(error) || error.data?.reason !== 'unknown-tool') throw error
      return own(request, context)
    }
  }
}
