import { ProtocolError, Server, type ServerContext } from '@modelcontextprotocol/server'
import { invalid, notFound } from '../core/errors.ts'
import type { Log } from '../core/log.ts'
import type { Subscription, View } from '../core/view.ts'
import { type ClientName, clientIn } from './clients.ts'
import { wireError } from './errors.ts'
import type { Pass } from './gate.ts'
import { isObject } from './messages.ts'
import { filledIn, optionalString, type Params, requiredString } from './params.ts'
import { withProgress } from './progress.ts'
import { completePrompt, promptMethods } from './prompts.ts'
import { assumed, isRevision, type Revision, revisions } from './revisions.ts'
import { type Toolbox, toolMethods } from './tools.ts'
import { completionToWire, readToWire, resourcesToWire, templatesToWire } from './wire.ts'

/** What a server says of itself. */
export interface Identity {
  readonly name: string
  readonly version: string
  readonly title?: string
  readonly instructions?: string
  /**
   * Methods that are served beside those of resources, by name, such as `prompts/get`; the capabilities are declared
   * already. One takes the place of the server's own, except that `completion/complete` is asked about prompts only. A
   * `ProtocolError` that one throws goes out as it is; anything else is judged like every other error.
   */
  readonly methods?: Readonly<Record<string, ExtraMethod>>
}

export type ExtraMethod = (params: Params, context: ServerContext) => Promise<Record<string, unknown>>

interface Call {
  readonly params: Params
  readonly revision: Revision
  readonly signal: AbortSignal
  readonly pass: Pass
  /** What the client calls itself, and what it is shown. */
  readonly client: ClientName | undefined
  readonly view: View
}

/** What the request of an id was let in with. */
export type PassOf = (id: unknown) => Pass | undefined

/** Where nothing is large enough to wait. */
const freePass: Pass = { room: async () => {}, turn: async () => {}, breath: async () => {}, until: () => {} }

type Method = (call: Call, context: ServerContext) => Promise<Record<string, unknown>>

/** What is bound beside a view. */
export interface Bound {
  /** What the one client of a pipe or session listens to, in the revisions that have such. */
  readonly subscription?: Subscription | undefined
  readonly toolbox?: Toolbox | undefined
  /** What a client is shown. By default the view that is bound, whoever it is. */
  readonly viewOf?: (client: ClientName | undefined) => View
  /** By default nothing waits for anything. */
  readonly passOf?: PassOf
}

/** The methods that can take long: with a progress token, they say that they are still at work. */
const lengthy = new Set(['resources/list', 'resources/read', 'resources/directory/read', 'prompts/get', 'tools/call'])

/** What a client can rely on: `subscribe` and `listChanged` where some source can tell. */
export function capabilitiesOf(view: View) {
  return {
    resources: view.live === true ? { subscribe: true, listChanged: true } : {},
    completions: {},
    // Where nothing is in them, some hosts refuse a server that does not know the two lists all the same.
    tools: {},
    prompts: view.prompts?.live === true ? { listChanged: true } : {},
  }
}

/**
 * Binds a view to an SDK server: the handlers of every method that is served, on every revision. It holds no state of
 * its own; one server can answer any number of requests at once.
 */
export function bind(view: View, identity: Identity, log: Log, bound: Bound = {}): Server {
  const { subscription, toolbox, viewOf = () => view, passOf = () => undefined } = bound
  const { name, version, title, instructions } = identity
  const server = new Server(
    { name, version, ...(title === undefined ? {} : { title }) },
    {
      capabilities: capabilitiesOf(view),
      supportedProtocolVersions: [...revisions],
      ...(instructions === undefined ? {} : { instructions }),
    },
  )
  for (const [method, call] of Object.entries({
    ...toolMethods(toolbox, log),
    ...methodsOf(view, identity),
    ...watchingOf(subscription),
  })) {
    const run: Method = lengthy.has(method) ? withProgress<Call, Record<string, unknown>>(call) : call
    server.setRequestHandler(method, { params: anything }, async (params: unknown, context: ServerContext) => {
      const negotiated = server.getNegotiatedProtocolVersion()
      const revision = isRevision(negotiated) ? negotiated : assumed
      const given = isObject(params) ? params : {}
      try {
        const { id, signal, envelope } = context.mcpReq
        // Others use the same server at the same time, once each request says who asks.
        const client = envelope === undefined ? server.getClientVersion() : clientIn(envelope)
        const pass = passOf(id) ?? freePass
        return await run({ params: given, revision, signal, pass, client, view: viewOf(client) }, context)
      } catch (error) {
        // The only way for an error to leave: nothing that was thrown goes on as it is.
        const uri = typeof given.uri === 'string' ? given.uri : undefined
        if (identity.methods !== undefined && error instanceof ProtocolError) throw error
        const { code, message, data } = wireError(error, revision, uri, log)
        throw new ProtocolError(code, message, data)
      }
    })
  }
  // Before that, a client of these revisions is to be told nothing. It may say so again and again.
  let initialized = false
  server.oninitialized = () => {
    if (initialized) return
    initialized = true
    for (const adding of [subscription?.addList(), subscription?.addPrompts?.()])
      adding?.catch((error) => log('warn', 'nobody watches', { error }))
  }
  return server
}

/** The two methods of the revisions with sessions; the SDK knows that 2026-07-28 does not have them. */
function watchingOf(subscription: Subscription | undefined): Readonly<Record<string, Method>> {
  if (subscription === undefined) return {}
  return {
    'resources/subscribe': async ({ params, signal }) => {
      const honoured = await subscription.add([requiredString(params, 'uri')], { signal })
      if (honoured.length === 0) throw notFound('nothing to be heard of')
      return {}
    },
    'resources/unsubscribe': async ({ params }) => {
      subscription.remove(requiredString(params, 'uri'))
      return {}
    },
  }
}

function methodsOf(view: View, identity: Identity): Readonly<Record<string, Method>> {
  return {
    'resources/list': async ({ params, revision, signal, view }) => {
      const cursor = optionalString(params, 'cursor')
      const page = await view.list(cursor === undefined ? {} : { cursor }, { signal })
      const mounts = cursor === undefined ? await view.mounts({ signal }) : undefined
      const result = resourcesToWire(page, revision, mounts)
      if (revision !== '2024-10-07') return result
      return { ...result, ...templatesToWire(await view.templates({}, { signal }), revision) }
    },
    'resources/templates/list': async ({ params, revision, signal, view }) => {
      const cursor = optionalString(params, 'cursor')
      return templatesToWire(await view.templates(cursor === undefined ? {} : { cursor }, { signal }), revision)
    },
    'resources/read': async ({ params, revision, signal, view, pass: { room, turn } }) =>
      readToWire(await view.read(requiredString(params, 'uri'), { signal, room }), revision, turn),
    'resources/directory/read': async ({ params, revision, signal, view }) => {
      const uri = requiredString(params, 'uri')
      const cursor = optionalString(params, 'cursor')
      const page = await view.directory(cursor === undefined ? { uri } : { uri, cursor }, { signal })
      return resourcesToWire(page, revision)
    },
    'completion/complete': async ({ params, signal, view }, server) => {
      const { ref, argument, context } = params
      if (!isObject(ref) || !isObject(argument)) throw invalid('The params need ref and argument.', 'params')
      const ofPrompts = identity.methods?.['completion/complete']
      if (ref.type === 'ref/prompt' && ofPrompts !== undefined) return ofPrompts(params, server)
      const isPrompt = ref.type === 'ref/prompt'
      if (!isPrompt && ref.type !== 'ref/resource')
        throw invalid('The type of ref is neither ref/resource nor ref/prompt.', 'params')
      const request = {
        argument: { name: requiredString(argument, 'name'), value: requiredString(argument, 'value') },
        arguments: filledIn(context),
      }
      if (isPrompt) return completePrompt(view, { name: requiredString(ref, 'name'), ...request }, signal)
      return completionToWire(await view.complete({ uriTemplate: requiredString(ref, 'uri'), ...request }, { signal }))
    },
    'server/discover': async () => ({
      supportedVersions: [...revisions],
      capabilities: capabilitiesOf(view),
      ...(identity.instructions === undefined ? {} : { instructions: identity.instructions }),
    }),
    ...promptMethods,
    ...extraMethods(identity.methods),
  }
}

function extraMethods(methods: Identity['methods'] = {}): Readonly<Record<string, Method>> {
  const entries = Object.entries(methods).filter(([name]) => name !== 'completion/complete')
  return Object.fromEntries(entries.map(([name, method]) => [name, ({ params }, context) => method(params, context)]))
}

/** The SDK's place for a schema of params: they are judged here, with messages that repeat nothing of the request. */
const anything = {
  '~standard': { version: 1 as const, vendor: 'hikidashi', validate: (value: unknown) => ({ value }) },
}
