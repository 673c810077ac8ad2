import * as z from '../schema/builder.ts'
import { count, duration, listen, size, text } from '../schema/fields.ts'
import { refusal } from '../schema/refusals.ts'
import { httpUrl } from '../schema/shapes.ts'
import { auth } from './auth.ts'

/** A duration of at least one second. */
const seconds = duration.refine((ms) => ms >= 1000, {
  error: refusal('This is less than a second.', 'It must be at least "1s".'),
})

/** The settings for HTTP: address, authentication and limits. */
export const http = z.strictObject({
  listen: listen
    .exactOptional()
    .describe(
      'The address at which `serve` listens: a port on the loopback interface (8787), or "HOST:PORT". With this key `serve` uses HTTP, unless you pass --stdio.',
    ),
  path: z
    .string()
    .regex(/^\/[\w.~/-]*$/, {
      error: refusal('This is not the path of an endpoint.', 'Write one that begins with a slash, such as "/mcp".'),
    })
    .exactOptional()
    .describe('The path of the MCP endpoint. By default "/mcp".'),
  allowedHosts: z
    .array(text)
    .exactOptional()
    .describe(
      'Allowed values of the Host header besides the loopback names, exactly as clients send them: "context.example.org", "10.0.0.5:8787". Required to listen beyond the loopback interface.',
    ),
  allowedOrigins: z
    .array(text)
    .exactOptional()
    .describe(
      'Origins of web pages that may send requests, besides loopback origins, such as "https://app.example.org".',
    ),
  auth: auth
    .exactOptional()
    .describe(
      'How clients authenticate. Without this key they do not, and `serve` listens beyond the loopback interface only with --insecure.',
    ),
  explorer: z
    .boolean()
    .exactOptional()
    .describe(
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
    .exactOptional()
    .describe(
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
      title: text.max(100).exactOptional().describe('The title, for people.'),
      websiteUrl: httpUrl.exactOptional().describe('A web page about this server.'),
    })
    .exactOptional()
    .describe(
      'Announces this server to everybody, without authentication: with a server card at the path of the endpoint followed by /server-card, and with the catalog /.well-known/ai-catalog.json. Neither names the mounts. By default there is neither.',
    ),
  contentLinks: z
    .union(
      [
        z.literal(false),
        z.strictObject({
          lifetime: seconds.exactOptional().describe('Lifetime of a link. By default "5m".'),
        }),
      ],
      {
        error: refusal('This is not a setting for links to contents.', 'Write false or { "lifetime": "5m" }.'),
      },
    )
    .exactOptional()
    .describe(
      'Links to contents that are too large for an answer. The error of such a read has a link below /content/; until it expires, anybody with the link can fetch the bytes without a token. false: no links.',
    ),
  sse: z
    .boolean()
    .exactOptional()
    .describe('Also serves the deprecated HTTP+SSE transport of 2024-11-05, at /sse and /messages. By default false.'),
  limits: z
    .strictObject({
      body: size.exactOptional().describe('Maximum size of the body of a request. By default "1MiB".'),
      headers: size
        .exactOptional()
        .describe('Maximum size of the headers of a request, with its first line. By default "32KiB".'),
      path: size.exactOptional().describe('Maximum length of the path of a request. By default "8KiB".'),
      answer: size.exactOptional().describe('Maximum size of an answer. By default "64MiB".'),
      timeout: seconds.exactOptional().describe('Time-out of a request. By default "2m".'),
      rate: z
        .number()
        .min(0)
        .exactOptional()
        .describe(
          'Rate limit of all clients together, in requests a second on average; after a rest ten times as many at once. By default 0: no limit.',
        ),
      perPrincipal: z
        .strictObject({
          rate: z
            .number()
            .min(0)
            .exactOptional()
            .describe(
              'Rate limit of one principal, in requests a second on average; after a rest ten times as many at once. 0: no limit. By default 100.',
            ),
          concurrent: count
            .exactOptional()
            .describe('Maximum number of concurrent requests of one principal. By default 8.'),
          waiting: count
            .exactOptional()
            .describe('Maximum number of further requests of one principal that wait. By default 256.'),
          connections: count
            .exactOptional()
            .describe('Maximum number of open connections of one principal. By default 256.'),
          sessions: count.exactOptional().describe('Maximum number of sessions of one principal. By default 100.'),
        })
        .exactOptional()
        .describe('The share of one principal, if clients authenticate (`http.auth`).'),
      concurrent: count.exactOptional().describe('Maximum number of concurrent requests. By default 64.'),
      waiting: count.exactOptional().describe('Maximum number of further requests that wait. By default 1024.'),
      connections: count.exactOptional().describe('Maximum number of open connections. By default 1024.'),
      connectionsPerAddress: count
        .exactOptional()
        .describe('Maximum number of open connections of one IP address. By default 896, or 7 of 8 of `connections`.'),
      newConnections: z
        .number()
        .min(0)
        .exactOptional()
        .describe(
          'Rate limit of new connections of one IP address, in connections a second on average; after a rest ten times as many at once. 0: no limit. By default 200.',
        ),
      badTokens: z
        .number()
        .min(0)
        .exactOptional()
        .describe(
          'Rate limit of invalid tokens of one IP address, in tokens a second on average; after a rest ten times as many at once. 0: no limit. By default 20.',
        ),
      sessions: count
        .exactOptional()
        .describe('Maximum number of open sessions (clients up to 2025-11-25). By default 1000.'),
      sessionIdle: seconds
        .exactOptional()
        .describe('Time without a request after which a session ends. By default "30m".'),
      headersTime: seconds.exactOptional().describe('Time-out for the headers of a request. By default "10s".'),
      requestTime: seconds.exactOptional().describe('Time-out for receiving a whole request. By default "30s".'),
      slow: seconds
        .exactOptional()
        .describe('Time in which a client must read an answer, or its connection is cut. By default "1m".'),
      stalled: seconds
        .exactOptional()
        .describe(
          'Time after which the connection of a client that reads nothing is cut (on Linux). By default "45s".',
        ),
      drain: duration
        .exactOptional()
        .describe('Time that requests in flight have when the server stops. By default "10s".'),
    })
    .exactOptional()
    .describe('Limits that protect the server from overload.'),
})
