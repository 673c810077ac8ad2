import { fallbackTo, foreignCursorError, invalid } from '../../core/errors.ts'
import { defined, isObject } from '../../core/kit/object.ts'
import type { Log } from '../../core/log.ts'
import { metaKeys } from '../../core/meta.ts'
import {
  directoryMimeType,
  type Page,
  type PromptCompletionRequest,
  type ReadOptions,
  type Resource,
  type Subscription,
  type View,
} from '../../core/view.ts'
import {
  filledVariables,
  optionalString,
  type Params,
  ProtocolError,
  requiredString,
  stringsIn,
  wireErrorCodes,
} from '../messages/messages.ts'
import type { ServedMethods } from './channel.ts'
import type { ServerInfo } from './envelope.ts'
import { type EventOptions, eventCapabilities, eventMethodNames } from './event-options.ts'
import type { ExtraMethod, Method, MethodCall } from './method.ts'
import { appAt, type Toolbox, toolMethods, withApps } from './tools.ts'
import {
  cacheHintFields,
  completionToWire,
  pageFields,
  promptsToWire,
  promptToWire,
  readToWire,
  resourcesToWire,
  templatesToWire,
} from './wire.ts'

/** The description of a server, and its additional methods. */
export interface ServerDescription extends ServerInfo {
  readonly instructions?: string
  readonly events?: EventOptions
  /** Whether the draft of resource operations is served: `resources/stat`, and refusals of writes (2026-07-28). */
  readonly resourceOperations?: boolean
  /**
   * Methods besides those of resources, by name, such as `prompts/get`. They replace the server's own methods, except that
   * `completion/complete` is called for prompts only. A `ProtocolError` that one throws is sent unchanged; any other error becomes a fixed
   * answer.
   */
  readonly methods?: Readonly<Record<string, ExtraMethod>>
}

function eventMethods(options: EventOptions): Readonly<Record<string, Method>> {
  return Object.fromEntries(
    eventMethodNames.map((name): [string, Method] => [
      name,
      async (call) => (await import('./events.ts')).createEventMethods(options)[name](call),
    ]),
  )
}

/** Returns the capabilities for a view: `subscribe` and `listChanged` when some source can notify. */
function capabilitiesOf(view: View, { events = {}, resourceOperations }: ServerDescription) {
  const { extension, ...ofEvents } = view.history === undefined ? { extension: {} } : eventCapabilities(events)
  return {
    resources: view.live === true ? { subscribe: true, listChanged: true } : {},
    completions: {},
    // Some hosts refuse a server without these two lists, even if the lists are empty.
    tools: view.tools?.live === true ? { listChanged: true } : {},
    prompts: view.prompts?.live === true ? { listChanged: true } : {},
    ...ofEvents,
    extensions: {
      ...skillsCapability,
      ...(resourceOperations === true ? operationsCapability : {}),
      ...extension,
    },
  }
}

/**
 * Binds a view to the methods that a channel serves, in every revision.
 *
 * @param subscription The subscription of the one client of a pipe or session, in the revisions that have sessions.
 */
export function bindView(
  view: View,
  identity: ServerDescription,
  log: Log,
  subscription: Subscription | undefined,
  toolbox: Toolbox | undefined,
): ServedMethods {
  const { name, version, title, instructions, events = {} } = identity
  return {
    server: { name, version, ...defined({ title }) },
    capabilities: capabilitiesOf(view, identity),
    instructions,
    events,
    methods: new Map(
      Object.entries({
        ...toolMethods(toolbox, log),
        ...resourceMethods,
        'resources/read': withApps(readMethod, toolbox),
        ...promptMethods,
        ...skillMethods,
        ...(view.history === undefined ? {} : eventMethods(events)),
        ...(identity.resourceOperations === true ? operationsOver(toolbox) : {}),
        ...completionMethods(identity),
        ...extraMethods(identity.methods),
        ...watchingOf(subscription, toolbox),
      }),
    ),
    onInitialized: () => {
      for (const adding of [subscription?.addList(), subscription?.addPrompts?.(), subscription?.addTools?.()])
        adding?.catch((error) => log('warn', 'the changes of a list cannot be watched for a client', { error }))
    },
  }
}

/** Returns the two methods that only the revisions with sessions have. */
function watchingOf(
  subscription: Subscription | undefined,
  toolbox: Toolbox | undefined,
): Readonly<Record<string, Method>> {
  if (subscription === undefined) return {}
  return {
    'resources/subscribe': async (call) => {
      const { params, signal, view } = call
      const uri = requiredString(params, 'uri')
      const honoured = await subscription.add([uri], { signal })
      // Either the source reports no changes, or the resource cannot be read. This read throws in the second case; in the first one the
      // subscription succeeds, although nothing is sent.
      if (honoured.length === 0 && (await appAt(uri, toolbox, call)) === undefined)
        await view.read(uri, { signal }).catch(fallbackTo(undefined, 'too-large'))
      return {}
    },
    'resources/unsubscribe': async ({ params }) => {
      subscription.remove(requiredString(params, 'uri'))
      return {}
    },
  }
}

const readMethod: Method = async ({ params, revision, view, signal, pass, linkFor, sending }) => {
  const uri = requiredString(params, 'uri')
  const { room, turn } = pass
  const large: ReadOptions['large'] =
    sending &&
    (async (size, readPart) => {
      const { openLarge } = await import('./large.ts')
      return openLarge(uri, size, readPart, sending())
    })
  try {
    let result = await view.read(uri, { signal, room, large })
    if (linkFor !== undefined && result.contents[0]?.meta?.[metaKeys.truncated] === true) {
      const { addLinkToResult } = await import('./large.ts')
      result = addLinkToResult(result, uri, linkFor)
    }
    return await readToWire(result, revision, turn, sending !== undefined)
  } catch (error) {
    if (linkFor === undefined) throw error
    const { addLinkToError } = await import('./large.ts')
    throw await addLinkToError(error, uri, linkFor, (part) => view.read(part, { signal, room, probe: true }))
  }
}

const pageIn = (params: Params) => defined({ cursor: optionalString(params, 'cursor') })

const directoryMethod: Method = async ({ params, revision, signal, view }) => {
  const uri = requiredString(params, 'uri')
  const page = await view.directory({ uri, ...pageIn(params) }, { signal })
  return resourcesToWire(withPlainDirectories(page), revision)
}

const resourceMethods: Readonly<Record<string, Method>> = {
  'resources/list': async ({ params, revision, signal, view }) => {
    const query = pageIn(params)
    const page = await view.list(query, { signal })
    const mounts = query.cursor === undefined ? await view.mounts({ signal }) : undefined
    const result = resourcesToWire(page, revision, mounts)
    if (revision !== '2024-10-07') return result
    return { ...result, ...templatesToWire(await view.templates({}, { signal }), revision) }
  },
  'resources/templates/list': async ({ params, revision, signal, view }) =>
    templatesToWire(await view.templates(pageIn(params), { signal }), revision),
  'resources/directory/read': directoryMethod,
}

function completionMethods(identity: ServerDescription): Readonly<Record<string, Method>> {
  return {
    'completion/complete': async (call) => {
      const { params, signal, view } = call
      const { ref, argument, context } = params
      if (!isObject(ref) || !isObject(argument))
        throw invalid('The params must have the objects ref and argument.', 'params')
      const ofPrompts = identity.methods?.['completion/complete']
      if (ref.type === 'ref/prompt' && ofPrompts !== undefined) return ofPrompts(params, call)
      const isPrompt = ref.type === 'ref/prompt'
      if (!isPrompt && ref.type !== 'ref/resource')
        throw invalid('The type of ref is neither ref/resource nor ref/prompt.', 'params')
      const request = {
        argument: { name: requiredString(argument, 'name'), value: requiredString(argument, 'value') },
        arguments: filledVariables(context),
      }
      if (isPrompt) return completePrompt(view, { name: requiredString(ref, 'name'), ...request }, signal)
      return completionToWire(await view.complete({ uriTemplate: requiredString(ref, 'uri'), ...request }, { signal }))
    },
  }
}

/** The draft of the Files working group, as it is declared. */
const operationsCapability = { 'io.modelcontextprotocol/resource-operations': { directoryRead: true } } as const

const operations = ['resources/stat', 'resources/create', 'resources/update', 'resources/delete'] as const

/** The methods of the draft, and those of resources with the versions that it adds. They are loaded at the first call. */
function operationsOver(toolbox: Toolbox | undefined): Readonly<Record<string, Method>> {
  const load = () => import('./operations.ts')
  const readResource = withApps(readMethod, toolbox)
  return {
    ...Object.fromEntries(
      operations.map((name) => [name, async (call: MethodCall) => (await load()).operationMethods[name](call)]),
    ),
    'resources/read': async (call) => (await load()).withContentVersions(readResource, call),
    'resources/directory/read': async (call) => (await load()).withEntryVersions(directoryMethod, call),
  }
}

function extraMethods(methods: ServerDescription['methods'] = {}): Readonly<Record<string, Method>> {
  const entries = Object.entries(methods).filter(([name]) => name !== 'completion/complete')
  return Object.fromEntries(entries.map(([name, method]) => [name, async (call) => method(call.params, call)]))
}

/** The Skills extension (SEP-2640), as it is declared: with it come the two methods, and `resources/directory/read`. */
const skillsCapability = { 'io.modelcontextprotocol/skills': { directoryRead: true } } as const

const skillMethods: Readonly<Record<string, Method>> = {
  'skills/list': async ({ params, revision, signal, view: { skills } }) => {
    const query = pageIn(params)
    if (skills === undefined) {
      if (query.cursor !== undefined) throw foreignCursorError()
      return { skills: [], ...cacheHintFields({ ttlMs: 0, scope: 'private' }, revision) }
    }
    const page = await skills.list(query, { signal })
    return { skills: page.items, ...pageFields(page, revision) }
  },
  'skills/get': async ({ params, revision, signal, view: { skills } }) => {
    const uri = requiredString(params, 'uri')
    const skill = await skills?.get(uri, { signal }).catch(fallbackTo(undefined, 'not-found'))
    // The extension requires this code in every revision.
    if (skill === undefined) throw new ProtocolError(wireErrorCodes.invalidParams, 'No skill is served at this URI')
    return { skill: skill.skill, ...cacheHintFields(skill.cache, revision) }
  },
}

/** A page of a directory as the extension spells it: the URIs of directories have no final `/`. */
function withPlainDirectories(page: Page<Resource>): Page<Resource> {
  const isDirectory = ({ uri, mimeType }: Resource) => mimeType === directoryMimeType && uri.endsWith('/')
  return { ...page, items: page.items.map((one) => (isDirectory(one) ? { ...one, uri: one.uri.slice(0, -1) } : one)) }
}

const maxArgument = 65_536

const promptMethods: Readonly<Record<string, Method>> = {
  'prompts/list': async ({ params, revision, signal, view: { prompts } }) => {
    const query = pageIn(params)
    if (prompts !== undefined) return promptsToWire(await prompts.list(query, { signal }), revision)
    if (query.cursor !== undefined) throw foreignCursorError()
    return { prompts: [] }
  },
  'prompts/get': async ({ params, revision, signal, view: { prompts } }) => {
    const name = requiredString(params, 'name')
    const args = stringsIn(params.arguments ?? {}, 'arguments', maxArgument)
    if (prompts === undefined) throw unknownPrompt()
    return promptToWire(await prompts.get({ name, arguments: args }, { signal }), revision)
  },
}

async function completePrompt({ prompts }: View, request: PromptCompletionRequest, signal: AbortSignal) {
  if (prompts === undefined) throw unknownPrompt()
  return completionToWire(await prompts.complete(request, { signal }))
}

function unknownPrompt() {
  return invalid('There is no such prompt.', 'unknown-name')
}
