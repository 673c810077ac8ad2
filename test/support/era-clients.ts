import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { EventSource } from 'eventsource'

/** The interface that the official clients of all eras share. */
export interface EraClient {
  getServerCapabilities(): { readonly resources?: object | undefined } | undefined
  listResources(params?: { readonly cursor: string }): Promise<Listed>
  listResourceTemplates(): Promise<{ readonly resourceTemplates: readonly { readonly uriTemplate: string }[] }>
  readResource(params: { readonly uri: string }): Promise<{ readonly contents: readonly unknown[] }>
  listPrompts(params?: { readonly cursor: string }): Promise<{
    readonly prompts: readonly { readonly name: string; readonly arguments?: readonly object[] | undefined }[]
    readonly nextCursor?: string | undefined
  }>
  getPrompt(params: { readonly name: string; readonly arguments?: Readonly<Record<string, string>> }): Promise<{
    readonly messages: readonly { readonly role: string; readonly content: unknown }[]
  }>
  complete(params: Completing): Promise<{ readonly completion: { readonly values: readonly string[] } }>
  subscribeResource(params: { readonly uri: string }): Promise<unknown>
  unsubscribeResource(params: { readonly uri: string }): Promise<unknown>
  /** Opens a stream of changes (2026-07-28). Earlier clients lack this method. */
  listen?(filter: {
    resourceSubscriptions?: string[]
    resourcesListChanged?: boolean
    promptsListChanged?: boolean
  }): Promise<EraSubscription>
  /** Gets every notification that no other handler takes. */
  fallbackNotificationHandler?: (notification: EraNotification) => Promise<void>
  onclose?: (() => void) | undefined
  close(): Promise<void>
}

export interface EraNotification {
  readonly method: string
  readonly params?: { readonly [name: string]: unknown } | undefined
}

interface EraSubscription {
  readonly honoredFilter: { readonly resourceSubscriptions?: readonly string[] | undefined }
  readonly closed: Promise<string>
  close(): Promise<void>
}

interface Listed {
  readonly resources: readonly { readonly uri: string }[]
  readonly nextCursor?: string | undefined
}

interface Completing {
  readonly ref:
    | { readonly type: 'ref/resource'; readonly uri: string }
    | { readonly type: 'ref/prompt'; readonly name: string }
  readonly argument: { readonly name: string; readonly value: string }
}

/** The address of a server for a client. */
export type Place = { readonly command: string; readonly args: string[] } | { readonly url: string }

export interface Era {
  /** The npm name of the client. */
  readonly name: string
  /** The revision that it negotiates with a server of all revisions. */
  readonly revision: string
  /** The error code that the client throws for an absent resource. */
  readonly absent: -32002 | -32602
  /** Whether `listResources()` follows the cursors itself. */
  readonly aggregates: boolean
  /** Connects. `revision` is the negotiated one. */
  connect(place: Place): Promise<Connected>
}

interface Connected {
  readonly client: EraClient
  readonly revision: string | undefined
  /** The id of the server process, if the client exposes it. */
  readonly pid: number | undefined
}

/** One official client for each revision, from the time when the revision was the newest. */
export const eras: readonly Era[] = [
  v1('1.0.4', 'sdk100', '2024-11-05', 'sse'),
  v1('1.12.3', 'sdk112', '2025-03-26', 'streamableHttp'),
  v1('1.13.3', 'sdk113', '2025-06-18', 'streamableHttp'),
  v1('1.24.3', 'sdk124', '2025-11-25', 'streamableHttp'),
  v2('2.4.0, as it is by default', '2025-11-25', 'legacy'),
  v2('2.4.0, asking for the newest', '2026-07-28', 'auto'),
]

const who = { name: 'era-client', version: '0' }

interface V1Transport {
  readonly pid?: number | null
  start(): Promise<void>
  onmessage?: (...args: unknown[]) => void
}

type V1Client = EraClient & { connect(transport: V1Transport): Promise<void> }

function v1(version: string, module: string, revision: string, http: 'sse' | 'streamableHttp'): Era {
  const load = async (path: string) => (await import(/* @vite-ignore */ `${module}/client/${path}.js`)) as unknown
  const transportTo = async (place: Place): Promise<V1Transport> => {
    if ('command' in place) {
      const { StdioClientTransport: Stdio } = (await load('stdio')) as {
        readonly StdioClientTransport: new (server: object) => V1Transport
      }
      return new Stdio({ ...place, stderr: 'ignore' })
    }
    // The first SSE clients use the global EventSource class.
    if (http === 'sse') Object.assign(globalThis, { EventSource })
    const exports = (await load(http)) as Readonly<Record<string, new (url: URL) => V1Transport>>
    const Http = http === 'sse' ? exports.SSEClientTransport : exports.StreamableHTTPClientTransport
    if (Http === undefined) throw new Error(`${module} has no transport for ${http}`)
    return new Http(http === 'sse' ? new URL('/sse', place.url) : new URL(place.url))
  }
  return {
    name: `@modelcontextprotocol/sdk ${version}`,
    revision,
    absent: -32002,
    aggregates: false,
    connect: async (place) => {
      const { Client: V1 } = (await load('index')) as {
        readonly Client: new (who: object, options: object) => V1Client
      }
      const client = new V1(who, { capabilities: {} })
      const transport = await transportTo(place)
      const agreed = tapRevision(transport)
      await client.connect(transport)
      return { client, revision: agreed(), pid: transport.pid ?? undefined }
    },
  }
}

/** Old clients do not expose the negotiated revision, so it is read from the answer to `initialize`. */
function tapRevision(transport: V1Transport): () => string | undefined {
  let revision: string | undefined
  const start = transport.start.bind(transport)
  transport.start = () => {
    const { onmessage } = transport
    transport.onmessage = (...args) => {
      const [message] = args as [{ readonly result?: { readonly protocolVersion?: string } }]
      revision ??= message.result?.protocolVersion
      onmessage?.(...args)
    }
    return start()
  }
  return () => revision
}

function v2(version: string, revision: string, mode: 'legacy' | 'auto'): Era {
  return {
    name: `@modelcontextprotocol/client ${version}`,
    revision,
    // This client converts the older code into the newer one.
    absent: -32602,
    aggregates: true,
    connect: async (place) => {
      const client = new Client(who, { versionNegotiation: { mode } })
      const transport =
        'command' in place
          ? new StdioClientTransport({ ...place, stderr: 'ignore' })
          : new StreamableHTTPClientTransport(new URL(place.url))
      await client.connect(transport)
      const pid = 'pid' in transport ? (transport.pid ?? undefined) : undefined
      return { client, revision: client.getNegotiatedProtocolVersion(), pid }
    },
  }
}
