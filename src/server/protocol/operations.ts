import { isResourceError } from '../../core/errors.ts'
import { defined } from '../../core/kit/object.ts'
import { metaKeys } from '../../core/meta.ts'
import { steadyVersion } from '../../core/stat.ts'
import type { JsonObject } from '../../core/tool.ts'
import { parseUri } from '../../core/uri.ts'
import type { ResourceState, View } from '../../core/view.ts'
import { isObject, type Params, ProtocolError, requiredString, wireErrorCodes } from '../messages/messages.ts'
import type { MethodResult } from './envelope.ts'
import type { Method, MethodCall } from './method.ts'
import { cacheHintFields, resourceToWire } from './wire.ts'

const notSupportedCode = -32011

/** The methods of the draft: `resources/stat`, and those that change resources, which are always refused. */
export const operationMethods = {
  'resources/stat': modernOnly(async (call) => {
    const uri = uriIn(call.params)
    const { resource, version, cache } = await stateOf(call.view, uri, call)
    return { resource: resourceToWire(resource, call.revision), version, ...cacheHintFields(cache, call.revision) }
  }),
  'resources/create': modernOnly(async ({ params }) => refuse(uriIn(params), params.contents)),
  'resources/update': modernOnly(async ({ params }) => {
    const uri = uriIn(params)
    requiredString(params, 'ifMatch')
    return refuse(uri, params.contents)
  }),
  'resources/delete': modernOnly(async ({ params }) => refuse(uriIn(params))),
}

/** The key of the version in `_meta` of entries and contents, as the draft has it. */
const versionKey = 'io.modelcontextprotocol/resource-version'

/** Adds to each entry of a directory its version, if no other state of the entry can have the same version. */
export async function withEntryVersions(method: Method, call: MethodCall): Promise<MethodResult> {
  const result = await method(call)
  if (call.revision !== '2026-07-28' || !Array.isArray(result.resources)) return result
  const resources = result.resources.map((resource: unknown) => {
    const { _meta: meta, annotations } = resource as { _meta?: JsonObject; annotations?: JsonObject }
    const modified = Date.parse(String(annotations?.lastModified))
    const version = meta?.[metaKeys.version]
    const steady =
      typeof version === 'string'
        ? steadyVersion({ version, ...(Number.isNaN(modified) ? {} : { modified }) })
        : undefined
    return steady === undefined ? resource : { ...(resource as JsonObject), _meta: { ...meta, [versionKey]: steady } }
  })
  return { ...result, resources }
}

/** Adds the version to the content of a resource, if `resources/stat` answers the same. */
export async function withContentVersions(method: Method, call: MethodCall): Promise<MethodResult> {
  const result = await method(call)
  const { contents } = result
  if (call.revision !== '2026-07-28' || !Array.isArray(contents) || contents.length !== 1) return result
  const [content] = contents as readonly (JsonObject & { readonly _meta?: JsonObject })[]
  const version = content?._meta?.[metaKeys.version]
  const state = await call.view.stat?.(String(call.params.uri), { signal: call.signal }).catch(() => undefined)
  if (state === undefined || state.version !== version) return result
  return { ...result, contents: [{ ...content, _meta: { ...content?._meta, [versionKey]: version } }] }
}

function modernOnly(method: Method): Method {
  return async (call) => {
    if (call.revision !== '2026-07-28') throw new ProtocolError(wireErrorCodes.methodNotFound, 'Method not found')
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
    throw new ProtocolError(wireErrorCodes.invalidParams, error.message, { reason: 'invalidUri', uri })
  }
}

/** Refuses a write. The answer is the same for every URI, so it does not reveal whether a resource exists. */
function refuse(uri: string, contents?: unknown): never {
  if (contents !== undefined && (!isObject(contents) || contents.uri !== uri))
    throw new ProtocolError(
      wireErrorCodes.invalidParams,
      'The URI of the contents differs from the URI of the request.',
      {
        reason: 'invalidUri',
        uri,
      },
    )
  throw new ProtocolError(notSupportedCode, 'This resource is read-only.', { reason: 'notSupported', uri })
}

async function stateOf(view: View, uri: string, { signal }: Pick<MethodCall, 'signal'>): Promise<ResourceState> {
  try {
    if (view.stat === undefined) return await readState(view, uri, signal)
    return await view.stat(uri, { signal }).catch((error: unknown) => {
      // A resource that a wrapper of the view adds is not in the catalog, but can be read.
      if (!isResourceError(error, 'not-found')) throw error
      return readState(view, uri, signal)
    })
  } catch (error) {
    if (!isResourceError(error, 'not-found')) throw error
    throw new ProtocolError(wireErrorCodes.invalidParams, 'Resource not found', { reason: 'notFound', uri })
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
