import { randomBytes } from 'node:crypto'
import { type ConnectOptions, connect, type RemoteView, type ServerTarget } from '../../client/index.ts'
import { isResourceError, notFound } from '../../core/errors.ts'
import { foreignUriOf, hasUsualSpelling, isOfTemplate, pathOfForeign, withQueryParams } from '../../core/foreign.ts'
import { followAbortFor } from '../../core/kit/abort.ts'
import { defined, requireKeys } from '../../core/kit/object.ts'
import type { Log } from '../../core/log.ts'
import { comparePaths } from '../../core/path.ts'
import type {
  Completion,
  CompletionRequest,
  Content,
  Context,
  Entry,
  Params,
  Provider,
  Template,
} from '../../core/provider.ts'
import { foundMimeType, parseSearchAnswer } from '../../core/search-answer.ts'
import { compileTemplate } from '../../core/template.ts'
import { comparableUri, encodePath } from '../../core/uri.ts'
import { directoryMimeType, type ResourceContent, type ViewCompletionRequest } from '../../core/view.ts'
import { fetchTemplates, relayableMeta, rewriteSearchResults } from './entries.ts'
import { createRemoteWatch } from './following.ts'
import { createRelayedPrompts, fetchPrompts, type ListFetchOptions, promptDirectory } from './prompts.ts'
import { createServerConnection, toReadError, translateRemoteError } from './session.ts'
import {
  createSnapshotKeeper,
  currentOf,
  entriesIn,
  entryAt,
  mergeEntries,
  readServerChildren,
  type ServerSnapshot,
  takeSnapshot,
} from './snapshot.ts'
import { createRelayedTools, fetchTools, sideListOf, toolDirectory } from './tools.ts'

export interface RemoteOptions extends Omit<ConnectOptions, 'signal' | 'stderr'> {
  readonly target: ServerTarget
  /** How long a listing is cached if the server does not report changes, in milliseconds. Default 30,000. */
  readonly refreshMs?: number
  /** Maximum number of resources that the server may list. Default 200,000. */
  readonly maxResources?: number
  /** Whether prompts of the server are relayed. Default true. */
  readonly prompts?: boolean
  /** Whether tools of the server are relayed. Default false. */
  readonly tools?: boolean
  /** Address of the mount. When set, search results of the server are given with URIs of this process. */
  readonly address?: string
}

/** Time-out of the whole listing, in milliseconds. */
const listingTimeoutMs = 300_000
/** Maximum length of a completed value, in characters. */
const maxValue = 2048

/** Mark in the metadata of what this process relays. */
const mark = randomBytes(6).toString('base64url')

/**
 * Provider of another MCP server, of any revision: its resources at the paths of their URIs ({@link pathOfForeign}), its
 * templates, completions and changes, and its prompts and tools if they are relayed.
 *
 * The server is started or connected to at the first request. Its list is cached, and fetched again when the server notifies a
 * change, or after a while. A URI that the server does not list can be read, too, in its usual spelling or that of a template.
 */
export function remote(options: RemoteOptions): Provider {
  requireKeys('remote({ target })', options, { target: 'an object' })
  const { target, timeoutMs = 30_000, refreshMs = 30_000, maxResources = 200_000, log = () => {} } = options
  const { maxBytes, memoryBytes } = options
  const limits: ConnectOptions = { timeoutMs, log, ...defined({ maxBytes, memoryBytes }) }
  const session = createServerConnection((signal) => connect(target, { ...limits, signal }), log)
  const closing = new AbortController()
  // Shorter than the time-out of the server: if the two processes wait for each other, the server gets its answer in time.
  const waitTimeoutMs = Math.ceil((timeoutMs * 2) / 3)

  const takeAll = () => {
    const { signal, release } = followAbortFor(closing.signal, listingTimeoutMs)
    const take = (view: RemoteView) => takeSnapshot(view, { mark, log, signal }, maxResources, listingTimeoutMs)
    return session.ask(take, signal).finally(release)
  }
  const listing = createSnapshotKeeper(takeAll, refreshMs, waitTimeoutMs)
  const facts: ListFetchOptions = { mark, address: options.address, log, signal: closing.signal }
  const keep = <T>(fetch: (view: RemoteView, facts: ListFetchOptions) => Promise<T>) =>
    createSnapshotKeeper(() => session.ask((view) => fetch(view, facts), closing.signal), refreshMs, waitTimeoutMs)
  const templates = keep(fetchTemplates)
  const prompts = options.prompts === false ? undefined : keep(fetchPrompts)
  const tools = options.tools === true ? keep(fetchTools) : undefined
  /** Whether an unlisted path has the usual spelling, or that of a template of the server. */
  const isSpelled = async (path: string, signal: AbortSignal): Promise<boolean> => {
    if (hasUsualSpelling(path)) return true
    const declared = await templates.current(signal).catch(() => [])
    return declared.some(({ template: { template } }) => isOfTemplate(path, template))
  }

  const remoteWatch = createRemoteWatch({
    open: session.open,
    listing,
    sideLists: [
      ...(prompts === undefined ? [] : [sideListOf('prompts', promptDirectory, prompts, ({ prompt }) => prompt)]),
      ...(tools === undefined ? [] : [sideListOf('tools', toolDirectory, tools, ({ tool }) => tool)]),
    ],
    isSpelled: (path) => isSpelled(path, closing.signal),
    refreshIntervalMs: refreshMs,
    isLate: async (signal) => {
      await templates.current(signal).catch(() => {})
      return [listing.takeMissed(), templates.takeMissed()].includes(true)
    },
    onListed: () => void templates.renew(closing.signal).catch(() => {}),
    log,
  })

  const snapshot = ({ signal, answerBy }: Context): Promise<ServerSnapshot> => currentOf(listing, signal, answerBy)

  /** Returns the server's URI of a path. An unlisted URI must have its one valid spelling, because access rules know it by one path only. */
  const uriOf = async (path: string, context: Context): Promise<string> => {
    const listedUri = hasUsualSpelling(path) ? undefined : entryAt(await snapshot(context), path)?.uri
    const uri = listedUri ?? ((await isSpelled(path, context.signal)) ? foreignUriOf(path) : undefined)
    if (uri === undefined || path.endsWith('/')) throw notFound('no URI of the server is at this path')
    return uri
  }

  return {
    list: async function* (query, context) {
      const serverSnapshot = await snapshot(context)
      const { prefix = '', after, shallow = false } = query
      const more = shallow ? await unlistedIn(session, prefix, { mark, log, signal: context.signal }) : []
      const behind = after === undefined ? more : more.filter(({ path }) => comparePaths(path, after) > 0)
      for (const entry of mergeEntries(entriesIn(serverSnapshot, query), behind)) {
        context.signal.throwIfAborted()
        yield entry
      }
    },
    stat: async (path, context) => {
      const entry = entryAt(await snapshot(context), path)
      if (entry === undefined) throw notFound('the server does not list this resource')
      return entry.entry
    },
    read: async ({ path, params: requestParams }, context) => {
      // Access rules apply to each hit of a search. Markdown does not separate the hits, so JSON is requested, and formatted here.
      const asMarkdown =
        context.allows !== undefined &&
        requestParams.get('as') === 'markdown' &&
        isSearch(path, requestParams, await currentOf(templates, context.signal))
      const params = asMarkdown ? new Map([...requestParams].filter(([name]) => name !== 'as')) : requestParams
      const uri = withQueryParams(await uriOf(path, context), params)
      const { contents } = await session
        .ask((view) => view.read(uri, context), context.signal)
        .catch((error: unknown) => {
          context.signal.throwIfAborted()
          throw toReadError(error, params.size > 0)
        })
      const relayedContents = contents.map((content) => relayContent(content, uri, path))
      // Servers answer the read of a directory with its contents, by their own rules. Our rules are applied to its listing
      // instead.
      if (params.size === 0 && isDirectory(relayedContents, path) && isOnlyDirectory(await snapshot(context), path))
        throw notFound('it is a directory of the server, which can only be listed')
      const results = relayedContents.map((content) => rewriteSearchResults(content, options.address, context.allows))
      return asMarkdown ? Promise.all(results.map(markdownOf)) : results
    },
    start: () => void listing.current(closing.signal).catch(() => {}),
    templates: async ({ signal, answerBy }) =>
      (await currentOf(templates, signal, answerBy)).map(({ template }) => template),
    complete: (request, { signal, allows }) =>
      completeThere(
        request,
        (template) => templates.current(signal).then((all) => all.find((one) => one.template.template === template)),
        // Words that a search proposes may come from hidden documents.
        ({ template }) => allows === undefined || template.mimeType !== foundMimeType,
        (request) => session.ask((view) => view.complete(request, { signal }), signal),
        signal,
      ),
    ...(prompts === undefined ? {} : { prompts: createRelayedPrompts(prompts, session, mark) }),
    ...(tools === undefined ? {} : { tools: createRelayedTools(tools, session, { mark, log }) }),
    watch: remoteWatch.watch,
    follow: remoteWatch.follow,
    unfollow: remoteWatch.unfollow,
    degraded: remoteWatch.degraded,
    close: async () => {
      closing.abort()
      await session.close()
    },
  }
}

function isSearch(path: string, params: Params, templates: readonly { readonly template: Template }[]): boolean {
  const text = withQueryParams(encodePath(path), params)
  const searches = templates.filter(({ template }) => template.mimeType === foundMimeType)
  return searches.some(({ template: { template } }) => compileTemplate(template).match(text) !== undefined)
}

async function completeThere(
  { template, argument, arguments: argumentValues }: CompletionRequest,
  find: (template: string) => Promise<{ readonly template: Template; readonly uriTemplate: string } | undefined>,
  isOpen: (found: { readonly template: Template }) => boolean,
  ask: (request: ViewCompletionRequest) => Promise<Completion>,
  signal: AbortSignal,
): Promise<Completion | undefined> {
  try {
    const listedTemplate = await find(template)
    if (listedTemplate === undefined) return undefined
    if (!isOpen(listedTemplate)) return { values: [] }
    const { textFrom, valueFor } = compileTemplate(template)
    const filled = new Map(Array.from(argumentValues, ([name, text]) => [name, valueFor(name, text)]))
    const { values, ...rest } = await ask({ uriTemplate: listedTemplate.uriTemplate, argument, arguments: filled })
    const short = values.filter((value) => value.length <= maxValue)
    return { ...rest, values: short.map((value) => textFrom(argument.name, value)) }
  } catch (error) {
    signal.throwIfAborted()
    // A server that completes nothing may still list the values.
    if (isResourceError(error, 'invalid')) return undefined
    throw translateRemoteError(error)
  }
}

/** Returns the entries of a directory as the server reads it, also those that it does not list; none if it fails to read the directory. */
async function unlistedIn(
  session: ReturnType<typeof createServerConnection>,
  prefix: string,
  { mark, log, signal }: { readonly mark: string; readonly log: Log; readonly signal: AbortSignal },
): Promise<readonly Entry[]> {
  try {
    return await session.ask((view) => readServerChildren(view, prefix, { mark, signal }), signal)
  } catch (error) {
    signal.throwIfAborted()
    log('debug', 'the server does not read a directory', { error })
    return []
  }
}

function relayContent({ uri, name: _, meta, ...content }: ResourceContent, requestUri: string, path: string): Content {
  const at = isRequestedUri(uri, requestUri) ? path : pathOfForeign(uri)
  const metadata = meta === undefined ? undefined : relayableMeta(meta)
  return {
    ...content,
    ...(at === path ? {} : { path: at }),
    ...(metadata === undefined || Object.keys(metadata).length === 0 ? {} : { meta: metadata }),
  }
}

/** Whether contents are those of a directory: its children, or a listing of it. */
function isDirectory(contents: readonly Content[], path: string): boolean {
  return contents.every(({ path: at = path, mimeType }) =>
    at === path ? mimeType === directoryMimeType : at.startsWith(`${path}/`),
  )
}

function isOnlyDirectory(snapshot: ServerSnapshot, path: string): boolean {
  const [first] = entriesIn(snapshot, { prefix: `${path}/` })
  return first !== undefined && entryAt(snapshot, path) === undefined
}

/** Whether the URI of a content is the one that was asked for, apart from its spelling and from the query of the request. */
function isRequestedUri(uri: string, requestUri: string): boolean {
  return (
    uri === requestUri ||
    comparableUri(uri) === comparableUri(requestUri) ||
    comparableUri(uri) === comparableUri(requestUri).replace(/\?.*$/s, '')
  )
}

async function markdownOf(content: Content): Promise<Content> {
  const { formatAnswerMarkdown } = await import('../search/answer.ts')
  const answer = 'text' in content ? parseSearchAnswer(content.text) : undefined
  return answer === undefined ? content : { ...content, mimeType: 'text/markdown', text: formatAnswerMarkdown(answer) }
}
