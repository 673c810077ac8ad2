import { readFile } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { isLoopback, parseUri } from '../core/uri.ts'
import * as z from '../schema/builder.ts'
import { duration, scope, scopes, secret, text } from '../schema/fields.ts'
import { refusal } from '../schema/refusals.ts'
import { allowAddresses } from '../schema/shapes.ts'
import { resolveSecret } from '../schema/values.ts'
import { parseDocument } from './document.ts'
import { type Finding, servedFileFinding } from './problem.ts'
import type { ConfigEnvironment } from './store.ts'

/** Whether a URL uses TLS or names this machine, and has no user, query or fragment. */
function isTrusted(url: string): boolean {
  try {
    const { scheme, authority, query } = parseUri(url)
    const [, host = '', port = '443'] = /^(\[[^\]]*\]|[^:]*)(?::(\d{1,5}))?$/.exec(authority) ?? []
    if (host === '' || query !== undefined || Number(port) > 65_535 || Number(port) === 0) return false
    return scheme === 'https' || (scheme === 'http' && isLoopback(host.replace(/^\[|\]$/g, '')))
  } catch {
    return false
  }
}

const endpoint = text.refine(isTrusted, {
  error: refusal(
    'The URL is not allowed here.',
    'Write an https:// URL without a user name and a query. For this machine, http:// is allowed, too.',
  ),
})

const role = text.describe('The name of a role.')

const roleRule = z.strictObject({
  claim: z
    .union([text, z.array(text).min(1)])
    .describe('The name of a claim, or the path of a nested claim: ["realm_access", "roles"].'),
  map: z
    .record(text, z.union([role, z.array(role).min(1)]))
    .optionalKey('The roles for each value of the claim. Without this key, a value is itself the name of a role.'),
})

const roles = z
  .array(
    z.union([role, roleRule], {
      error: refusal(
        'This is not a rule that gives roles.',
        'Write the name of a role, or { "claim": "groups", "map": { "staff": "reader" } }.',
      ),
    }),
  )
  .transform((rules) =>
    rules.map((rule) => {
      if (typeof rule === 'string') return { roles: [rule] }
      const map = Object.entries(rule.map ?? {}).map(([value, roleNames]) => [value, [roleNames].flat()] as const)
      return { claim: [rule.claim].flat(), ...(rule.map === undefined ? {} : { map: Object.fromEntries(map) }) }
    }),
  )

const algorithm = z.enum([
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
  'ES256',
  'ES384',
  'ES512',
  'EdDSA',
  'Ed25519',
])

const issuer = z
  .strictObject({
    issuer: endpoint.describe('The identifier of the server, exactly as in the claim `iss` of its tokens.'),
    audiences: z
      .array(text)
      .min(1)
      .optionalKey(
        'Accepted audiences: the claim `aud` of a token must contain one of these, exactly. By default the URL in "resource".',
      ),
    jwks: endpoint.optionalKey('The URL of the keys (JWKS), for access tokens that are JWTs.'),
    introspection: z
      .strictObject({
        url: endpoint.describe('The introspection endpoint (RFC 7662).'),
        clientId: text.describe('The client id of hikidashi at this server.'),
        clientSecret: secret.describe('The secret of this client, as { "env": "NAME" } or { "file": "path" }.'),
      })
      .optionalKey('Token introspection, for opaque access tokens. At most one issuer can have this.'),
    allowAddresses: allowAddresses.describe(
      'Addresses outside the internet to which the names in "jwks" and "introspection" may lead, such as "10.0.0.0/8". IP addresses and localhost in these URLs need no entry here. By default none.',
    ),
    algorithms: z
      .array(algorithm)
      .min(1)
      .optionalKey('Allowed signature algorithms. By default all asymmetric algorithms.'),
    types: z
      .array(z.enum(['at+jwt', 'JWT']))
      .min(1)
      .optionalKey(
        'Accepted types of JWT. "JWT" is for issuers that do not use the type "at+jwt" of RFC 9068. By default ["at+jwt"].',
      ),
    clients: z
      .array(text)
      .min(1)
      .optionalKey('Accepts only tokens of these clients (`client_id`, `azp`). By default all clients.'),
    maxAge: duration.optionalKey('Maximum age of a token since it was issued. By default until the token expires.'),
    roles: roles.optionalKey(
      'The roles that tokens give: names of roles that all tokens give, or claims whose values give roles. By default none.',
    ),
  })
  .refine(({ jwks, introspection }) => jwks !== undefined || introspection !== undefined, {
    error: refusal(
      'The issuer has neither "jwks" nor "introspection", so its tokens cannot be checked.',
      'Add "jwks" for JWTs, or "introspection" for opaque tokens.',
    ),
  })

export const authSchema = z
  .strictObject({
    resource: endpoint.optionalKey(
      'The URL of the MCP endpoint for clients, such as "https://context.example.org/mcp"; it is the audience of tokens. Required with issuers beyond the loopback interface. On the loopback interface the default is the address at which `serve` listens.',
    ),
    issuers: z
      .array(issuer)
      .min(1)
      .refine((issuers) => new Set(issuers.map((one) => one.issuer)).size === issuers.length, {
        error: refusal('An issuer is listed twice.', 'Remove one of the two.'),
      })
      .refine((issuers) => issuers.filter((one) => one.introspection !== undefined).length < 2, {
        error: refusal(
          'Two issuers have "introspection". An opaque token does not name its issuer, and only its issuer may see it.',
          'Keep "introspection" for one of them, and use "jwks" for the other.',
        ),
      })
      .optionalKey('The authorization servers whose access tokens are accepted.'),
    scopes: z
      .array(
        z.union(
          [
            scope.describe('A scope that every request needs.'),
            z.strictObject({
              scopes: scopes.describe('Scopes that some methods need.'),
              methods: z.array(text).min(1).describe('The methods, such as "subscriptions/listen".'),
            }),
          ],
          {
            error: refusal(
              'This is not a scope.',
              'Write the name of a scope, or { "scopes": ["watch"], "methods": ["subscriptions/listen"] }.',
            ),
          },
        ),
      )
      .transform((rules) => rules.map((rule) => (typeof rule === 'string' ? { scopes: [rule] } : rule)))
      .optionalKey(
        'The scopes that tokens of issuers need, for every request or for some methods. Mounts can require more.',
      ),
    implies: z
      .record(scope, scopes)
      .optionalKey('The scopes that a broader scope includes: { "admin": ["files:read", "files:watch"] }.'),
    tokens: text.optionalKey('The file in which `hikidashi token` keeps tokens, relative to the configuration file.'),
  })
  .refine(({ issuers, tokens }) => issuers !== undefined || tokens !== undefined, {
    error: refusal(
      '"auth" has neither "issuers" nor "tokens", so no client can authenticate.',
      'Add "issuers", or "tokens" with the name of a file for `hikidashi token add`.',
    ),
  })

/**
 * Returns the absolute path of the token file; `undefined` if the configuration names none. Faults in the rest of the
 * configuration do not matter.
 * @throws the system error if the configuration cannot be read
 */
export async function findTokenFile(file: string): Promise<string | undefined> {
  const { document } = parseDocument(file, await readFile(file, 'utf8'))
  const { data } = z.object({ http: z.object({ auth: z.object({ tokens: text }) }) }).safeParse(document.value)
  return data === undefined ? undefined : resolve(dirname(file), data.http.auth.tokens)
}

type AuthFile = z.output<typeof authSchema>
type IssuerFile = NonNullable<AuthFile['issuers']>[number]

/** Secrets are read, and paths absolute. */
export interface Auth extends Omit<AuthFile, 'issuers'> {
  readonly issuers?: readonly (Omit<IssuerFile, 'introspection'> & {
    readonly introspection?: { readonly url: string; readonly clientId: string; readonly clientSecret: string }
  })[]
}

/** Values that do not match the schema are skipped, and reported elsewhere. */
export async function loadAuth(
  value: unknown,
  { folder, env, servedBy }: ConfigEnvironment,
): Promise<{ readonly auth: Auth | undefined; readonly findings: readonly Finding[] }> {
  const { data } = authSchema.safeParse(value)
  if (data === undefined) return { auth: undefined, findings: [] }
  const findings: Finding[] = []
  const path = (...keys: readonly (string | number)[]) => ['http', 'auth', ...keys]
  const refuseServed = (file: string, at: Finding['path'], what: string) => {
    const address = servedBy(file)
    if (address !== undefined) findings.push(servedFileFinding(at, `The file ${what}`, address))
  }
  const issuers: NonNullable<Auth['issuers']>[number][] = []
  for (const [index, { introspection, ...rest }] of (data.issuers ?? []).entries()) {
    if (introspection === undefined) {
      issuers.push(rest)
      continue
    }
    const at = path('issuers', index, 'introspection', 'clientSecret')
    const secret = await resolveSecret(introspection.clientSecret, { folder, env })
    if ('message' in secret) findings.push({ path: at, ...secret })
    else if (/^(?:undefined|null)$/.test(secret.value))
      findings.push({
        path: at,
        message: `The secret is the word ${secret.value}, which usually comes from a variable that is not set.`,
        fix: 'Put the secret of the client into the variable or the file.',
      })
    else issuers.push({ ...rest, introspection: { ...introspection, clientSecret: secret.value } })
    const source = introspection.clientSecret
    if ('file' in source) refuseServed(resolve(folder, source.file), at, 'with the secret')
  }
  const { issuers: _, tokens, ...others } = data
  if (tokens !== undefined) refuseServed(resolve(folder, tokens), path('tokens'), 'with the tokens')
  return {
    auth: {
      ...others,
      ...(data.issuers === undefined ? {} : { issuers }),
      ...(tokens === undefined ? {} : { tokens: resolve(folder, tokens) }),
    },
    findings,
  }
}
