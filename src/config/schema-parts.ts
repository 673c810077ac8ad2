import { memberOf } from '../core/kit/object.ts'
import { sourceNamed, sources } from '../providers/index.ts'
import type { FindingContext, Source, SourceSchema } from '../providers/source.ts'
import * as z from '../schema/builder.ts'
import {
  count,
  duration,
  durationFrom,
  listenAddress,
  type MountOptions,
  mountShape,
  size,
  text,
} from '../schema/fields.ts'
import { type Finding, refusal } from '../schema/refusals.ts'
import {
  type Effect,
  type EffectContext,
  type EffectRules,
  effectsBy,
  httpUrl,
  withoutEffects,
} from '../schema/shapes.ts'
import { authSchema } from './auth.ts'

/** A parsed mount of a configuration. Its source, which `provider` names, knows the further keys. */
export type MountConfig = MountOptions & { readonly provider: string; readonly [option: string]: unknown }

type AnySchema = SourceSchema<z.Shape>

const commonRules = {
  ...withoutEffects('title description link access scopes cache poll limits'),
} as const satisfies EffectRules<z.output<z.Members<typeof mountShape>>>

const providerOf = (mount: unknown) => memberOf(mount, 'provider')

/** @param mounts The mounts whose sources are loaded; by default all sources are. */
export async function loadMountSchemas(mounts?: Iterable<unknown>, outside: OutsideSources = new Map()) {
  const sourceNames = mounts === undefined ? Object.keys(sources) : [...new Set(Array.from(mounts, providerOf))]
  const schemas = new Map<unknown, Loaded>()
  const names = Object.keys(sources).filter((name) => sourceNames.includes(name))
  for (const [name, sourceLoader] of await Promise.all(
    names.map(async (name) => [name, await loadSource(name)] as const),
  ))
    schemas.set(name, sourceLoader)
  for (const [name, source] of outside) schemas.set(name, await loadOutsideSchema(name, source))
  /** Returns `undefined` if the mount, which need not be valid, names no known source. */
  const sourceOf = (mount: unknown): AnySchema | undefined => schemas.get(providerOf(mount))?.source
  return {
    mount: z.discriminatedUnion(
      'provider',
      [...schemas.values()].map(({ schema }) => schema),
    ),
    sourceOf,
    /** Returns the effects of a mount beyond reading the folder of its configuration. */
    effectsOf: (config: MountConfig, context: EffectContext): readonly Effect[] => {
      const { provider: _, ...options } = config
      const { always, options: own } = schemas.get(config.provider)?.source.effects ?? { options: {} }
      // Options without a rule count as effects, so those of a source that is not loaded are withheld.
      const rules = { ...commonRules, ...own } as EffectRules<typeof options>
      return [...(always?.(options, context) ?? []), ...effectsBy(rules, options, context)]
    },
    /** Finds faults of a mount, before validation, that only its source can detect. */
    findingsOf: async (mount: unknown, context: FindingContext): Promise<readonly Finding[]> => {
      const { source, schema } = schemas.get(providerOf(mount)) ?? {}
      if (source?.findings === undefined) return []
      return source.findings(
        mount as Readonly<Record<string, unknown>>,
        context,
        schema?.safeParse(mount).data as Parameters<typeof source.findings>[2],
      )
    },
  }
}

export type MountSchemas = Awaited<ReturnType<typeof loadMountSchemas>>

interface Loaded {
  readonly source: AnySchema
  readonly schema: z.Schema<MountConfig>
}

/** A mount of a source from outside, as far as it is known without the source. */
export const outsideMountSchema = z.strictObject({
  provider: text
    .regex(new RegExp(`^(?!(?:${Object.keys(sources).join('|')})$)`), {
      error: refusal('This is the name of a built-in source.', 'Write the path of a module, such as "./my-source.js".'),
    })
    .describe(
      'A source of your own: the path of a module, such as "./my-source.js", relative to the configuration file, or the name of an installed package. Its code runs only in a configuration that you have named or trusted.',
    ),
  ...mountShape,
})

/**
 * The sources from outside, by the names that mounts have as `provider`; `undefined` for one that is not loaded for
 * lack of trust.
 */
export type OutsideSources = ReadonlyMap<string, Source | undefined>

async function loadOutsideSchema(name: string, outside: Source | undefined): Promise<Loaded> {
  const runs = () => [{ kind: 'runs' as const, what: name }]
  if (outside === undefined) {
    const source = { about: '', shape: {}, effects: { always: runs, options: {} } }
    return { source, schema: z.object({ provider: z.literal(name) }) as unknown as z.Schema<MountConfig> }
  }
  const source = (await outside.schema()).source as unknown as AnySchema
  const effects = { ...source.effects, always: runs }
  return { source: { ...source, effects }, schema: schemaOf(name, source) }
}

const loadedSources = new Map<string, Loaded>()

async function loadSource(name: string): Promise<Loaded> {
  const cachedSource = loadedSources.get(name)
  if (cachedSource !== undefined) return cachedSource
  // Each source has a type for its own options. The source of a mount is known only at run time.
  const source = (await (sourceNamed(name) as Source).schema()).source as unknown as AnySchema
  const loadedSource = { source, schema: schemaOf(name, source) }
  loadedSources.set(name, loadedSource)
  return loadedSource
}

/** The options of the source, and the common options that the source does not define itself. */
function schemaOf(name: string, { about, shape, check }: AnySchema): z.Schema<MountConfig> {
  const isCommon = ([key]: readonly [string, unknown]) => Object.hasOwn(mountShape, key)
  const [replaced, own] = [true, false].map((isWanted) =>
    Object.fromEntries(Object.entries(shape).filter((member) => isCommon(member) === isWanted)),
  )
  const members = z.strictObject({ provider: z.literal(name).describe(about), ...own, ...mountShape, ...replaced })
  return (check === undefined ? members : members.superRefine(check)) as unknown as z.Schema<MountConfig>
}

const seconds = durationFrom('1s')

export const httpSchema = z.strictObject({
  listen: listenAddress.optionalKey(
    'The address at which `serve` listens: a port on the loopback interface (8787), or "HOST:PORT". With this key `serve` uses HTTP, unless you pass --stdio.',
  ),
  path: z
    .string()
    .regex(/^\/[\w.~/-]*$/, {
      error: refusal('This is not the path of an endpoint.', 'Write one that begins with a slash, such as "/mcp".'),
    })
    .optionalKey('The path of the MCP endpoint. By default "/mcp".'),
  allowedHosts: z
    .array(
      text.regex(/^[^/\s]+$/, {
        error: refusal(
          'No client sends this as its Host header.',
          'Write a name, with its port unless that is 80 or 443, such as "context.example.org:8787".',
        ),
      }),
    )
    .optionalKey(
      'Allowed values of the Host header besides the loopback names, exactly as clients send them: "context.example.org", "10.0.0.5:8787". Required to listen beyond the loopback interface.',
    ),
  allowedOrigins: z
    .array(
      text.regex(/^(?:null|[a-z][a-z0-9+.-]*:\/\/[^/\s]+)$/, {
        error: refusal(
          'No browser sends this as an origin.',
          'Write scheme://host, with the port unless it is the default one, such as "https://app.example.org".',
        ),
      }),
    )
    .optionalKey(
      'Origins of web pages that may send requests, besides loopback origins, such as "https://app.example.org".',
    ),
  auth: authSchema.optionalKey(
    'How clients authenticate. Without this key and --tokens they do not, and `serve` listens beyond the loopback interface only with --insecure.',
  ),
  explorer: z
    .boolean()
    .optionalKey(
      'Also serves the explorer, a web page for people, beside the MCP endpoint: at / if the endpoint is /mcp. The page is a client with the rights of its user. By default true if `serve` listens on the loopback interface.',
    ),
  metrics: z
    .union(
      [
        z.boolean(),
        z.strictObject({
          roles: z.array(text).min(1).describe('The roles that may read the measurements; one of them is enough.'),
        }),
      ],
      {
        error: refusal('This is not a setting for measurements.', 'Write true, false or { "roles": ["monitor"] }.'),
      },
    )
    .optionalKey(
      'Serves measurements of this server at /metrics, for Prometheus. Without `http.auth` only requests from this machine may read them; with it, callers with a token, or with one of the given roles. By default false.',
    ),
  public: z
    .strictObject({
      name: z
        .string()
        .max(200)
        .regex(/^[a-zA-Z0-9.-]+\/[a-zA-Z0-9._-]+$/, {
          error: refusal(
            'This is not the name of a public server.',
            'Write a domain in reverse and a name, such as "org.example/context".',
          ),
        })
        .describe(
          'The unique name of this server: a domain in reverse and a name in it, such as "org.example/context".',
        ),
      url: httpUrl.describe('The URL of the MCP endpoint, as clients reach it.'),
      description: text.max(100).describe('The purpose of this server, in at most 100 characters.'),
      title: text.max(100).optionalKey('The title, for people.'),
      websiteUrl: httpUrl.optionalKey('A web page about this server.'),
    })
    .optionalKey(
      'Announces this server to everybody, without authentication: with a server card at the path of the endpoint followed by /server-card, and with the catalog /.well-known/ai-catalog.json. Neither names the mounts. By default there is neither.',
    ),
  contentLinks: z
    .union(
      [
        z.literal(false),
        z.strictObject({
          lifetime: seconds.optionalKey('Lifetime of a link. By default "5m".'),
        }),
      ],
      {
        error: refusal('This is not a setting for links to contents.', 'Write false or { "lifetime": "5m" }.'),
      },
    )
    .optionalKey(
      'Links to contents that are too large for an answer. The error of such a read has a link below /content/; until it expires, anybody with the link can fetch the bytes without a token. false: no links.',
    ),
  sse: z
    .boolean()
    .optionalKey(
      'Also serves the deprecated HTTP+SSE transport of 2024-11-05, at /sse and /messages. By default false.',
    ),
  limits: z
    .strictObject({
      body: size.optionalKey('Maximum size of the body of a request. By default "1MiB".'),
      headers: size.optionalKey('Maximum size of the headers of a request, with its first line. By default "32KiB".'),
      path: size.optionalKey('Maximum length of the path of a request. By default "8KiB".'),
      answer: size.optionalKey('Maximum size of an answer. By default "64MiB".'),
      timeout: seconds.optionalKey('Time-out of a request. By default "2m".'),
      rate: z
        .number()
        .min(0)
        .optionalKey(
          'Rate limit of all clients together, in requests a second on average; after a rest ten times as many at once. By default 0: no limit.',
        ),
      perPrincipal: z
        .strictObject({
          rate: z
            .number()
            .min(0)
            .optionalKey(
              'Rate limit of one principal, in requests a second on average; after a rest ten times as many at once. 0: no limit. By default 100.',
            ),
          concurrent: count.optionalKey('Maximum number of concurrent requests of one principal. By default 8.'),
          waiting: count.optionalKey('Maximum number of further requests of one principal that wait. By default 256.'),
          connections: count.optionalKey('Maximum number of open connections of one principal. By default 256.'),
          sessions: count.optionalKey('Maximum number of sessions of one principal. By default 100.'),
        })
        .optionalKey('The share of one principal, if clients authenticate (`http.auth`).'),
      concurrent: count.optionalKey('Maximum number of concurrent requests. By default 64.'),
      waiting: count.optionalKey('Maximum number of further requests that wait. By default 1024.'),
      connections: count.optionalKey('Maximum number of open connections. By default 1024.'),
      connectionsPerAddress: count.optionalKey(
        'Maximum number of open connections of one IP address. By default 896, or 7 of 8 of `connections`.',
      ),
      newConnections: z
        .number()
        .min(0)
        .optionalKey(
          'Rate limit of new connections of one IP address, in connections a second on average; after a rest ten times as many at once. 0: no limit. By default 200.',
        ),
      badTokens: z
        .number()
        .min(0)
        .optionalKey(
          'Rate limit of invalid tokens of one IP address, in tokens a second on average; after a rest ten times as many at once. 0: no limit. By default 20.',
        ),
      sessions: count.optionalKey('Maximum number of open sessions (clients up to 2025-11-25). By default 1000.'),
      sessionIdle: seconds.optionalKey('Time without a request after which a session ends. By default "30m".'),
      headersTime: seconds.optionalKey('Time-out for the headers of a request. By default "10s".'),
      requestTime: seconds.optionalKey('Time-out for receiving a whole request. By default "30s".'),
      slow: seconds.optionalKey(
        'Time in which a client must read an answer, or its connection is cut. By default "1m".',
      ),
      stalled: seconds.optionalKey(
        'Time after which the connection of a client that reads nothing is cut (on Linux). By default "45s".',
      ),
      drain: duration.optionalKey('Time that requests in flight have when the server stops. By default "10s".'),
    })
    .optionalKey('Limits that protect the server from overload.'),
})
