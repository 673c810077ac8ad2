import { followAbort } from '../core/kit/abort.ts'
import { defined } from '../core/kit/object.ts'
import type { Log } from '../core/log.ts'
import type { Principal } from '../core/provider.ts'
import type { Scrubber } from '../core/scrub.ts'
import type { Tool } from '../core/tool.ts'
import type { View } from '../core/view.ts'
import { modernRevision, type Notification, ProtocolError } from './messages/messages.ts'
import type { Channel } from './protocol/channel.ts'
import { openViewChannel } from './serve.ts'
import type { Audit } from './telemetry/audit.ts'
import { resourceTools } from './tools/index.ts'

export { localPrincipal } from './serve.ts'
export type { Audit }

interface AttachedOptions {
  readonly tools: boolean | readonly Tool[]
  readonly principal: Principal
  readonly log: Log
  readonly scrubber?: Scrubber
  readonly audit?: Audit
  readonly timeoutMs?: number
  readonly revision: () => string | undefined
  /** Sends a notification of a change to the client. Undefined: the client gets none. */
  readonly tell?: (notification: { method: string; params?: Record<string, unknown> }) => Promise<void>
}

/** Answers methods of MCP from a view, inside an existing server. */
export interface MethodResponder {
  /** @throws ProtocolError when the answer is an error. */
  ask(method: string, params: object | undefined, signal: AbortSignal | undefined): Promise<Record<string, unknown>>
  close(): Promise<void>
}

export function createMethodResponder(view: View, options: AttachedOptions): MethodResponder {
  const { tools, principal, log, scrubber, audit, timeoutMs, revision, tell } = options
  const offeredTools = tools === true ? resourceTools(view) : tools === false ? [] : tools
  const channels: { modern?: Promise<Channel>; legacy?: Promise<Channel> } = {}
  const servedOptions = {
    ...{ name: 'attached', version: '1', log, view: () => view, principal },
    ...(offeredTools.length === 0 ? {} : { tools: () => offeredTools }),
    ...defined({ scrubber, audit, timeoutMs }),
  }
  const openLegacy = async (): Promise<Channel> => {
    const write = async ({ method, params }: Notification) =>
      tell?.(params === undefined ? { method } : { method, params: { ...params } })
    const announcements = tell === undefined ? undefined : { write, onLost: () => {} }
    const channel = await openViewChannel(servedOptions, principal, 'legacy', announcements)
    const clientInfo = { name: 'attached', version: '1' }
    const params = { protocolVersion: revision() ?? '2025-11-25', capabilities: {}, clientInfo }
    await channel.request({ jsonrpc: '2.0', id: 0, method: 'initialize', params })
    channel.notify({ jsonrpc: '2.0', method: 'notifications/initialized' })
    return channel
  }
  const channelOf = (): Promise<Channel> => {
    if (revision() === modernRevision) {
      channels.modern ??= openViewChannel(servedOptions, principal, 'modern')
      return channels.modern
    }
    channels.legacy ??= openLegacy()
    return channels.legacy
  }
  // Open the channel now, so that it notices changes from now on.
  if (tell !== undefined) void channelOf()

  return {
    ask: async (method, params, signal) => {
      const channel = await channelOf()
      const message = {
        jsonrpc: '2.0' as const,
        id: 1,
        method,
        ...(params === undefined ? {} : { params: { ...params } }),
      }
      const cancel = followAbort(...(signal === undefined ? [] : [signal]))
      const answer = await channel.request(message, { cancel }).finally(cancel.release)
      if (answer === undefined) throw new ProtocolError(-32603, 'The request was cancelled.')
      if ('error' in answer) throw new ProtocolError(answer.error.code, answer.error.message, answer.error.data)
      return answer.result
    },
    close: async () => {
      await Promise.all(Object.values(channels).map(async (channel: Promise<Channel>) => (await channel).close()))
    },
  }
}
