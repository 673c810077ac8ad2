import { isObject } from '../core/kit/object.ts'
import type { WireObject } from './wire.ts'

/** JSON-RPC error code with which this client answers its own request when it cannot read the answer of the server. */
export const unreadableCode = -32_098

type RequestId = string | number

/**
 * Returns JSON-RPC messages of a server in the form that the SDK accepts. An optional member that is null is left out, and so are members
 * that JSON-RPC does not know. An answer that cannot be read becomes an error for the request: the SDK would drop it, and the request would
 * wait for its time-out.
 *
 * @param requestId Id of the request that the HTTP answer belongs to. An answer without an id gets it.
 */
export function normalizeMessage(value: unknown, requestId?: RequestId): unknown {
  if (Array.isArray(value)) return value.map((one) => normalizeMessage(one, requestId))
  if (!isObject(value)) return requestId === undefined ? value : errorResponse(requestId, 'it is not an object')
  const { method, params } = value
  const id = isId(value.id) ? value.id : undefined
  if (typeof method === 'string') {
    const facts = isObject(params) ? { params: withoutNulls(params) } : {}
    return { jsonrpc: '2.0', ...(id === undefined ? {} : { id }), method, ...facts }
  }
  const answered = id ?? requestId
  // The SDK refuses a value that is not a JSON-RPC message.
  if (answered === undefined || !('jsonrpc' in value || 'id' in value)) return value
  const fault = answerFault(value)
  if (fault !== undefined) return errorResponse(answered, fault)
  const { error, result } = value
  if (isObject(error)) {
    const { code, message, data } = error
    return { jsonrpc: '2.0', id: answered, error: { code, message, ...(data === null ? {} : { data }) } }
  }
  return { jsonrpc: '2.0', id: answered, result: resultIn(result as WireObject) }
}

/** Returns why an answer cannot be read, such as `error is not an object`; undefined when it can. */
function answerFault({ jsonrpc, result, error }: WireObject): string | undefined {
  if (jsonrpc !== '2.0') return 'jsonrpc is not "2.0"'
  if (error !== undefined && error !== null) {
    if (!isObject(error)) return 'error is not an object'
    if (!Number.isSafeInteger(error.code)) return 'error.code is not a whole number'
    return typeof error.message === 'string' ? undefined : 'error.message is not a string'
  }
  if (!isObject(result)) return 'result is not an object'
  const { _meta } = result
  if (_meta !== undefined && _meta !== null && !isObject(_meta)) return 'result._meta is not an object'
  return isHandshake(result) ? handshakeFault(result) : undefined
}

/** Whether a result is that of `initialize` or `server/discover`, which the SDK checks by a schema of its own. */
function isHandshake(result: WireObject): boolean {
  return 'protocolVersion' in result || 'supportedVersions' in result
}

function handshakeFault({ protocolVersion, supportedVersions, serverInfo, capabilities, instructions }: WireObject) {
  if (supportedVersions === undefined && typeof protocolVersion !== 'string')
    return 'result.protocolVersion is not a string'
  if (supportedVersions !== undefined && !Array.isArray(supportedVersions))
    return 'result.supportedVersions is not an array'
  if (capabilities !== undefined && capabilities !== null && !isObject(capabilities))
    return 'result.capabilities is not an object'
  if (instructions !== undefined && instructions !== null && typeof instructions !== 'string')
    return 'result.instructions is not a string'
  // Since 2026-07-28 the name of the server is optional.
  if (supportedVersions !== undefined && (serverInfo === undefined || serverInfo === null)) return undefined
  if (!isObject(serverInfo)) return 'result.serverInfo is not an object'
  const missing = ['name', 'version'].find((name) => typeof serverInfo[name] !== 'string')
  return missing === undefined ? undefined : `result.serverInfo.${missing} is not a string`
}

/** Returns a result without the nulls that the SDK refuses. The other members are read in wire.ts, which accepts null. */
function resultIn(result: WireObject): WireObject {
  if (isHandshake(result)) return { ...(withoutNulls(result) as WireObject), capabilities: capabilitiesIn(result) }
  const { _meta, resultType, ...rest } = result
  return {
    ...rest,
    ...(isObject(_meta) ? { _meta: withoutNulls(_meta) } : {}),
    ...(resultType === null || resultType === undefined ? {} : { resultType }),
  }
}

function capabilitiesIn({ capabilities }: WireObject): unknown {
  return withoutNulls(capabilities ?? {})
}

/** Returns a value without the members of objects that are null, at any depth. */
function withoutNulls(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNulls)
  if (!isObject(value)) return value
  const members = Object.entries(value).filter(([, one]) => one !== null)
  return Object.fromEntries(members.map(([key, one]) => [key, withoutNulls(one)]))
}

function errorResponse(id: RequestId, message: string): unknown {
  return { jsonrpc: '2.0', id, error: { code: unreadableCode, message } }
}

function isId(id: unknown): id is RequestId {
  return typeof id === 'string' || typeof id === 'number'
}
