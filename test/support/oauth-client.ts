import {
  Client,
  type OAuthClientProvider,
  type OAuthDiscoveryState,
  StreamableHTTPClientTransport,
  UnauthorizedError,
} from '@modelcontextprotocol/client'
import { desktop, signIn } from './authorization-server.ts'

type Tokens = Parameters<OAuthClientProvider['saveTokens']>[0]

/** The official client, with a person who signs in when the server requires it. */
export interface Person {
  readonly client: Client
  /** The requested scopes of each sign-in, in order. */
  readonly asked: readonly (string | null)[]
  /** Returns the current token. */
  readonly token: () => string | undefined
  /** Calls a function with the client, and signs in as often as needed. */
  with<T>(what: (client: Client) => Promise<T>): Promise<T>
  close(): Promise<void>
}

/** Connects as an account of an authorization server, with an authorization code and PKCE. */
export async function connectAs(account: string, url: string, mode: 'auto' | 'legacy'): Promise<Person> {
  let tokens: Tokens | undefined
  let verifier = ''
  let discovered: OAuthDiscoveryState | undefined
  let redirected: URL | undefined
  const asked: (string | null)[] = []
  const provider: OAuthClientProvider = {
    redirectUrl: desktop.redirect_uris[0],
    clientMetadata: { redirect_uris: [...desktop.redirect_uris] },
    clientInformation: () => ({ client_id: desktop.client_id }),
    tokens: () => tokens,
    saveTokens: (saved) => {
      tokens = saved
    },
    redirectToAuthorization: (to) => {
      redirected = to
      asked.push(to.searchParams.get('scope'))
    },
    saveCodeVerifier: (saved) => {
      verifier = saved
    },
    codeVerifier: () => verifier,
    saveDiscoveryState: (saved) => {
      discovered = saved
    },
    discoveryState: () => discovered,
  }
  let transport = new StreamableHTTPClientTransport(new URL(url), { authProvider: provider })

  const authorize = async (error: unknown): Promise<void> => {
    const to = redirected
    redirected = undefined
    if (!(error instanceof UnauthorizedError) || to === undefined) throw error
    await transport.finishAuth(await signIn(to, account))
  }
  const connect = async (): Promise<Client> => {
    const client = new Client({ name: 'person', version: '1' }, { versionNegotiation: { mode } })
    await client.connect(transport)
    return client
  }
  let client: Client
  try {
    client = await connect()
  } catch (error) {
    await authorize(error)
    transport = new StreamableHTTPClientTransport(new URL(url), { authProvider: provider })
    client = await connect()
  }
  return {
    client,
    asked,
    token: () => tokens?.access_token,
    with: async (what) => {
      try {
        return await what(client)
      } catch (error) {
        await authorize(error)
        return what(client)
      }
    },
    close: () => client.close(),
  }
}
