import { createHash } from 'node:crypto'
import { foreignCursorError, invalid, isResourceError, notFound, ResourceError } from '../core/errors.ts'
import { flatMapInSlices } from '../core/kit/event-loop-yield.ts'
import { defined, isObject, nonEmptyText, objectOf } from '../core/kit/object.ts'
import { headersOfCall, paramHeadersOf } from '../core/tool-headers.ts'
import type { CallOptions, ChangeListener, Page, PromptView, Resource, ViewChange } from '../core/view.ts'
import type { RemoteChanges } from './changes.ts'
import type { ServerLink } from './connection.ts'
import { printableText } from './errors.ts'
import { isUnknownMethodError } from './failures.ts'
import { findOutputViolation } from './output-schema.ts'
import {
  createRequests,
  directChildren,
  isInventedRoot,
  type Requests,
  rootsOf,
  type VariableCompletionRequest,
} from './requests.ts'
import { outputFault, type RemoteTool, type RemoteTools, type RemoteView } from './target.ts'
import { blockOf, cursorOf, decodeBase64, descriptionOf, metaOf, requiredList, type WireObject } from './wire.ts'

const noCache = { ttlMs: 0, scope: 'private' } as const

/** Maximum number of resources from which a tree is derived. */
const maxGathered = 500_000
/** How long the gathered list is cached, in milliseconds. */
const gatheredMs = 2000

/** The first revision in which a completion request carries the values of the variables that are filled in already. */
const contextSince = '2025-06-18'
/** The first revision in which an empty cursor leads to another page. In earlier ones it means the end of the list. */
const emptyCursorSince = '2026-07-28'

export function createRemoteView(link: ServerLink, changes: RemoteChanges): RemoteView {
  const requests = createRequests(link.request, decodeBase64, flatMapInSlices)
  const paged = createPaged(link)
  const { hasResources, hasPrompts, hasTools, tells } = link.connection
  /** Whether the server supports reading directories. Undefined until it has read one, or has answered that it cannot. */
  let readsDirectories: boolean | undefined
  let isOurs = false

  const { gatherOnce, gatheredDirectory, heard } = createGathering(async (cursor, options) =>
    hasResources ? (await listPage(requests, paged, cursor, options)).page : { items: [], cache: noCache },
  )
  const complete = async (
    ref: WireObject,
    { arguments: values, ...asked }: VariableCompletionRequest,
    options: CallOptions | undefined,
  ) => {
    const hasContext = link.connection.revision >= contextSince
    try {
      return await requests.complete(ref, { ...asked, ...(hasContext ? defined({ arguments: values }) : {}) }, options)
    } catch (error) {
      if (isUnknownMethodError(error)) return { values: [] }
      throw error
    }
  }

  const prompts: PromptView = {
    ...(tells.prompts ? { live: true } : {}),
    list: (query, options) => paged(query?.cursor, (cursor) => requests.prompts(cursor, options)),
    get: ({ name, arguments: values }, options) => requests.prompt(name, values, options),
    complete: ({ name, ...asked }, options) => complete({ type: 'ref/prompt', name }, asked, options),
  }

  return {
    mounts: async (options) => {
      if (!hasResources) return []
      const { mounts } = await listPage(requests, paged, undefined, options)
      if (mounts === undefined) return rootsOf(await gatherOnce(options))
      // Only hikidashi servers name their mounts.
      readsDirectories = true
      return mounts
    },

    list: async (query, options) => {
      if (!hasResources) return { items: [], cache: noCache }
      const { mounts, page } = await listPage(requests, paged, query?.cursor, options)
      if (mounts !== undefined) {
        isOurs = true
        readsDirectories = true
      }
      return page
    },

    templates: async (query, options) => {
      if (!hasResources) return { items: [], cache: noCache }
      try {
        return await paged(query?.cursor, (cursor) => requests.templates(cursor, options))
      } catch (error) {
        if (isUnknownMethodError(error)) return { items: [], cache: noCache }
        throw error
      }
    },

    read: async (uri, options) => {
      if (!hasResources) throw notFound('the server has no resources')
      const result = await requests.read(uri, options)
      // Some servers answer with no content for a missing resource.
      if (result.contents.length === 0) throw notFound('the server answered with no content')
      return result
    },

    directory: async ({ uri, cursor }, options) => {
      if (readsDirectories === false || isInventedRoot(uri) || !hasResources) {
        // A directory derived from the listing has only one page.
        if (cursor !== undefined) throw foreignCursorError()
        const page = await gatheredDirectory(uri, options)
        if (page === undefined) throw notFound('no such directory')
        return page
      }
      try {
        const page = await paged(cursor, (raw) => requests.directory(uri, raw, options))
        readsDirectories = true
        return page
      } catch (error) {
        options?.signal?.throwIfAborted()
        if (isUnknownMethodError(error)) readsDirectories = false
        // Some servers that do not know the method use the wrong error code.
        if (readsDirectories === true || isResourceError(error, 'unavailable')) throw error
        const page = await gatheredDirectory(uri, options)
        if (page !== undefined) return page
        throw isUnknownMethodError(error) ? notFound('no such directory') : error
      }
    },

    complete: ({ uriTemplate, ...asked }, options) =>
      complete({ type: 'ref/resource', uri: uriTemplate }, asked, options),
    ...(hasPrompts ? { prompts } : {}),
    ...(hasTools ? { remoteTools: createRemoteTools(link, paged) } : {}),

    // Offer subscriptions only if the server declares notifications.
    ...(tells.updated || tells.listed || tells.prompts || tells.tools
      ? { live: true, subscribe: (tell: ChangeListener) => changes.open((change) => tell(heard(change))) }
      : {}),
    over: link.over,
    get readsDirectories() {
      return readsDirectories
    },
    get about() {
      return link.connection.about
    },
    get isOurs() {
      return isOurs
    },
    close: () => {
      changes.close()
      return link.close()
    },
  }
}

/** Returns the page for a cursor of this client. `get` requests a page with the server's own cursor. */
type Paged = <P extends { readonly nextCursor?: string }>(
  cursor: string | undefined,
  get: (cursor: string | undefined) => Promise<P>,
) => Promise<P>

/** A list ends at a cursor that repeats, with a warning; in old revisions it also ends, without a warning, at an empty cursor. */
function createPaged(link: ServerLink): Paged {
  return async (cursor, get) => {
    const position = parseCursor(cursor)
    const { nextCursor: raw, ...page } = await get(position.cursor)
    const isLast = raw === '' && link.connection.revision < emptyCursorSince
    const { repeats, ...next } = nextCursor(position, isLast ? undefined : raw)
    if (repeats)
      link.log('warn', 'a list of the server is cut off, because its cursor repeats', { pages: position.pages + 1 })
    return { ...page, ...next } as Awaited<ReturnType<typeof get>>
  }
}

async function listPage(
  { resources }: Requests,
  paged: Paged,
  cursor: string | undefined,
  options: CallOptions | undefined,
) {
  let mounts: readonly Resource[] | undefined
  const page = await paged(cursor, async (raw) => {
    const result = await resources(raw, options)
    mounts = result.mounts
    return result.page
  })
  return { page, mounts }
}

function createGathering(
  list: (cursor: string | undefined, options: CallOptions | undefined) => Promise<Page<Resource>>,
) {
  let gathered: { readonly resources: readonly Resource[]; readonly until: number } | undefined
  /** Number of changes of the list so far. A list that was requested before a change is not cached. */
  let changeCount = 0
  const noteChange = (change: ViewChange): ViewChange => {
    if (change.listed) [gathered, changeCount] = [undefined, changeCount + 1]
    return change
  }

  const gather = async (options: CallOptions | undefined): Promise<readonly Resource[]> => {
    const resources: Resource[] = []
    for (let cursor: string | undefined; ; ) {
      const page = await list(cursor, options)
      for (const resource of page.items) resources.push(resource)
      if (resources.length > maxGathered)
        throw new ResourceError(
          'too-large',
          `The server has no directories, and lists more than ${maxGathered} resources, too many to build a tree.`,
          {
            limit: maxGathered,
          },
        )
      cursor = page.nextCursor
      if (cursor === undefined) return resources
    }
  }

  const gatherOnce = async (options: CallOptions | undefined): Promise<readonly Resource[]> => {
    if (gathered !== undefined && performance.now() <= gathered.until) return gathered.resources
    const changeCountBefore = changeCount
    const resources = await gather(options)
    if (changeCountBefore === changeCount) gathered = { resources, until: performance.now() + gatheredMs }
    return resources
  }

  const gatheredDirectory = async (
    uri: string,
    options: CallOptions | undefined,
  ): Promise<Page<Resource> | undefined> => {
    const resources = await gatherOnce(options)
    const children = directChildren(resources, uri)
    if (children !== undefined) return { items: children, cache: noCache }
    if (resources.some((resource) => resource.uri === uri))
      throw invalid('This resource is not a directory.', 'not-a-directory')
    return undefined
  }

  return { gatherOnce, gatheredDirectory, heard: noteChange }
}

/**
 * Position of a walk through the pages of a server. A cursor of this client consists of the server's cursor and of the data that detects a
 * cycle: the number of pages so far, and the hash of an earlier cursor.
 */
interface WalkPosition {
  readonly cursor?: string
  readonly pages: number
  readonly mark: string
}

/** Maximum number of pages of a listing. A longer listing is taken for an endless one. */
const maxPages = 100_000

const start: WalkPosition = { pages: 0, mark: '' }

/**
 * Parses a cursor of this client to the position of a walk. Without a cursor, the walk begins.
 *
 * @throws ResourceError `invalid` for a cursor that this client did not make.
 */
export function parseCursor(cursor: string | undefined): WalkPosition {
  if (cursor === undefined) return start
  const parts = /^(\d{1,6})\.([\w-]{12})\.(.*)$/s.exec(cursor)
  const [, pages, mark, raw] = parts ?? []
  if (pages === undefined || mark === undefined || raw === undefined) throw foreignCursorError()
  return { cursor: raw, pages: Number(pages), mark }
}

/**
 * Returns the cursor of the page after the one at `position`; nothing when the server named none. Cycles are found by Brent's algorithm:
 * each cursor is compared with the one of the last page whose number is a power of two.
 *
 * @returns `repeats` for a cursor that repeats: the listing ends there.
 * @throws ResourceError `internal` for a listing without an end.
 */
export function nextCursor(
  position: WalkPosition,
  raw: string | undefined,
): { readonly nextCursor?: string; readonly repeats?: true } {
  if (raw === undefined) return {}
  const pages = position.pages + 1
  const mark = createHash('sha256').update(raw).digest('base64url').slice(0, 12)
  if (mark === position.mark || raw === position.cursor) return { repeats: true }
  if (pages > maxPages)
    throw new ResourceError(
      'internal',
      `The list of the server does not end: reading it was stopped after ${maxPages} pages.`,
    )
  const isPowerOfTwo = (pages & (pages - 1)) === 0
  return { nextCursor: `${pages}.${isPowerOfTwo ? mark : position.mark}.${raw}` }
}

function createRemoteTools(link: ServerLink, paged: Paged): RemoteTools {
  /** A client over HTTP must leave out a tool whose declaration of headers is invalid (MCP 2026-07-28, basic/transports). */
  const withHeaders = (tool: RemoteTool): readonly RemoteTool[] => {
    if (!link.connection.hasHeaders) return [tool]
    const paramHeaders = paramHeadersOf(tool.inputSchema)
    if (!('fault' in paramHeaders)) return [paramHeaders.length === 0 ? tool : { ...tool, paramHeaders }]
    const facts = { tool: tool.name.slice(0, 200), reason: paramHeaders.fault }
    link.log('warn', 'a tool of the server is left out: its definition is invalid', facts)
    return []
  }
  return {
    list: ({ cursor }, options) =>
      paged(cursor, async (raw) => {
        const answer = await link.request('tools/list', defined({ cursor: raw }), options)
        const items = await flatMapInSlices(requiredList(answer, 'tools'), (item) => toolsOf(item).flatMap(withHeaders))
        return { items, ...defined({ nextCursor: cursorOf(answer) }) }
      }),
    call: async ({ name, paramHeaders = [], outputSchema }, args, options) => {
      const headers = headersOfCall(paramHeaders, args)
      const answer = await link.request('tools/call', { name, arguments: args }, { ...options, headers })
      const { content, structuredContent, isError } = answer
      const blocks = Array.isArray(content) ? content.flatMap((item) => blockOf(objectOf(item)) ?? []) : []
      const structured = isObject(structuredContent) ? structuredContent : undefined
      const fault =
        structuredContent === undefined || structuredContent === null || outputSchema === undefined || isError === true
          ? undefined
          : await findOutputViolation(outputSchema, structuredContent)
      if (fault !== undefined)
        throw new ResourceError(
          'internal',
          `The structured result does not match its output schema: ${printableText(fault)}`,
          {
            fault: outputFault,
          },
        )
      return { content: blocks, ...defined({ structured }), failed: isError === true }
    },
  }
}

function toolsOf(item: unknown): readonly RemoteTool[] {
  const wire = objectOf(item)
  const name = nonEmptyText(wire.name)
  if (name === undefined) return []
  const { title, description, icons } = descriptionOf(wire)
  const hints = objectOf(wire.annotations)
  const flag = (key: string) => (typeof hints[key] === 'boolean' ? hints[key] : undefined)
  const annotations = defined({
    readOnly: flag('readOnlyHint'),
    destructive: flag('destructiveHint'),
    idempotent: flag('idempotentHint'),
    openWorld: flag('openWorldHint'),
  })
  return [
    {
      name,
      ...defined({ title: title ?? nonEmptyText(hints.title), description, icons, meta: metaOf(wire) }),
      inputSchema: objectOf(wire.inputSchema),
      ...(isObject(wire.outputSchema) ? { outputSchema: wire.outputSchema } : {}),
      ...(Object.keys(annotations).length === 0 ? {} : { annotations }),
    },
  ]
}
