import { isResourceError } from '../../core/errors.ts'
import { defined } from '../../core/kit/object.ts'
import { parseUri } from '../../core/uri.ts'
import type { ResourceState, View } from '../../core/view.ts'
import { codes, isObject, type Params, ProtocolError, requiredString } from '../messages/messages.ts'
import type { Call, Method } from './method.ts'
import { cached, resourceToWire } from './wire.ts'

/**
 * The draft of the Files working group: facts and version of a resource without its content, and operations that no resource here supports.
 * It exists on 2026-07-28 only.
 */

/** The capability, as it is declared among the extensions. */
export const operationsCapability = { 'io.modelcontextprotocol/resource-operations': { directoryRead: true } } as const

/** The provisional code of an operation that is not supported for a URI. */
const notSupportedCode = -32011

export const operationMethods: Readonly<Record<string, Method>> = {
  'resources/stat': modernOnly(async (call) => {
    const uri = uriIn(call.params)
    const { resource, version, cache } = await stateOf(call.view, uri, call)
    return { resource: resourceToWire(resource, call.revision), version, ...cached(cache, call.revision) }
  }),
  'resources/create': modernOnly(async ({ params }) => refuse(uriIn(params), params.contents)),
  'resources/update': modernOnly(async ({ params }) => {
    const uri = uriIn(params)
    requiredString(params, 'ifMatch')
    return refuse(uri, params.contents)
  }),
  'resources/delete': modernOnly(async ({ params }) => refuse(uriIn(params))),
}

function modernOnly(method: Method): Method {
  return async (call) => {
    if (call.revision !== '2026-07-28') throw new ProtocolError(codes.methodNotFound, 'Method not found')
    return method(call)
  }
}

function uriIn(params: Params): string {
  const uri = requiredString(params, 'uri')
  try {
    parseUri(uri)
    return uri
  } catch (error) {
    if (!isResourceError(error)) throw error
    throw new ProtocolError(codes.invalidParams, error.message, { reason: 'invalidUri', uri })
  }
}

/** Refuses to write. The answer is the same for every URI, so it tells nothing of what is there. */
function refuse(uri: string, contents?: unknown): never {
  if (contents !== undefined && (!isObject(contents) || contents.uri !== uri))
    throw new ProtocolError(codes.invalidParams, 'The URI of the contents is another one.', {
      reason: 'invalidUri',
      uri,
    })
  throw new ProtocolError(notSupportedCode, 'This resource is read-only.', { reason: 'notSupported', uri })
}

async function stateOf(view: View, uri: string, { signal }: Pick<Call, 'signal'>): Promise<ResourceState> {
  try {
    if (view.stat === undefined) return await readState(view, uri, signal)
    return await view.stat(uri, { signal }).catch((error: unknown) => {
      // A resource that a wrapper of the view adds is not in the catalog.
      if (!isResourceError(error, 'not-found')) throw error
      return readState(view, uri, signal)
    })
  } catch (error) {
    if (!isResourceError(error, 'not-found')) throw error
    throw new ProtocolError(codes.invalidParams, 'Resource not found', { reason: 'notFound', uri })
  }
}

async function readState(view: View, uri: string, signal: AbortSignal): Promise<ResourceState> {
  const { digestVersion } = await import('../../core/earlier.ts')
  const { contents, cache } = await view.read(uri, { signal, probe: true })
  const [content] = contents
  const { mimeType, size, title, name = uri } = content ?? {}
  const texts = contents.map((one) =>
    'text' in one ? one.text : 'bytes' in one ? Buffer.from(one.bytes).toString('base64') : one.version,
  )
  return {
    resource: { uri, name, ...defined({ mimeType, size, title }) },
    version: digestVersion(JSON.stringify(texts)),
    cache,
  }
}
