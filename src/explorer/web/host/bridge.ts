import { signal } from '@preact/signals'
import type { Wire } from '../../../client/wire.ts'
import { ResourceError } from '../../../core/errors.ts'
import { isObject } from '../../../core/kit/object.ts'
import { errorOf } from '../mcp/request.ts'

/** Facts about the host around the page (MCP Apps, `HostContext`) that the page uses. */
export const hostContext = signal<Wire>({})

/** Abilities of the host. */
export const hostCapabilities = signal<Wire>({})

/** Arguments of the call of `browse` that opened the page. */
export const toolInput = signal<Wire>({})

/** Sends the event `change` when the host says that entries were added or removed. */
export const listChanges = new EventTarget()

/** The revision of MCP Apps that the page speaks. */
const revision = '2026-01-26'

const waiting = new Map<number, (message: Wire) => void>()
let lastId = 0

/** Sends a message to the frame around the page. The host has an origin that the page cannot know. */
function post(message: Wire): void {
  window.parent.postMessage({ jsonrpc: '2.0', ...message }, '*')
}

/**
 * Sends one request to the host, and returns its answer.
 *
 * @throws ResourceError with the error of the host or the server. After an abort, the reason of the signal.
 */
export function ask(method: string, params: Wire, signal?: AbortSignal): Promise<Wire> {
  const id = ++lastId
  return new Promise((resolve, reject) => {
    const end = () => {
      waiting.delete(id)
      post({ method: 'notifications/cancelled', params: { requestId: id } })
      reject(signal?.reason)
    }
    if (signal?.aborted === true) {
      reject(signal.reason)
      return
    }
    signal?.addEventListener('abort', end, { once: true })
    waiting.set(id, ({ result, error }) => {
      signal?.removeEventListener('abort', end)
      if (isObject(result)) resolve(result)
      else if (isObject(error)) reject(errorOf(error.code, error.message, error.data))
      else reject(new ResourceError('unavailable', 'The host gave no answer.'))
    })
    post({ id, method, params })
  })
}

export function tell(method: string, params: Wire): void {
  post({ method, params })
}

/** Listens to the host, and introduces the page to it. */
export async function meetHost(): Promise<void> {
  addEventListener('message', (event) => {
    // Only the frame around the page is its host.
    if (event.source === window.parent && isObject(event.data)) hear(event.data)
  })
  const answer = await ask('ui/initialize', {
    appInfo: { name: 'hikidashi-explorer', version: '1' },
    appCapabilities: { availableDisplayModes: ['inline', 'fullscreen'] },
    protocolVersion: revision,
  })
  if (isObject(answer.hostContext)) hostContext.value = answer.hostContext
  if (isObject(answer.hostCapabilities)) hostCapabilities.value = answer.hostCapabilities
  tell('ui/notifications/initialized', {})
}

function hear(message: Wire): void {
  const { id, method, params } = message
  if (typeof method !== 'string') {
    const settle = typeof id === 'number' ? waiting.get(id) : undefined
    if (typeof id === 'number') waiting.delete(id)
    settle?.(message)
    return
  }
  const given = isObject(params) ? params : {}
  if (method === 'ui/notifications/host-context-changed') hostContext.value = { ...hostContext.value, ...given }
  if (method === 'ui/notifications/tool-input' && isObject(given.arguments)) toolInput.value = given.arguments
  if (method === 'notifications/resources/list_changed') listChanges.dispatchEvent(new Event('change'))
  if (id === undefined) return
  const isKnown = method === 'ping' || method === 'ui/resource-teardown'
  post(isKnown ? { id, result: {} } : { id, error: { code: -32601, message: 'Method not found' } })
}
