import * as z from '../schema/builder.ts'
import { count, duration, listen, size, text } from '../schema/fields.ts'
import { httpUrl } from '../schema/origin.ts'
import { refusal } from '../schema/refusals.ts'
import { auth } from './auth.ts'

/** A duration of a second or more. */
const seconds = duration.refine((ms) => ms >= 1000, {
  error: refusal('This is less than a second.', 'It must be at least "1s".'),
})

/** How a server is reached over HTTP, who may come, and what protects it. */
export const http = z.strictObject({
  listen: listen
    .exactOptional()
    .describe(
      'Where `serve` listens: a port on the loopback (8787), or "HOST:PORT". Where this is given, `serve` speaks HTTP unless it is told --stdio.',
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
      'What the Host header of a request may be besides the loopback, exactly as clients send it: "context.example.org", "10.0.0.5:8787". Needed to listen beyond the loopback.',
    ),
  allowedOrigins: z
    .array(text)
    .exactOptional()
    .describe(
      'From which web pages requests may come besides those of the loopback, such as "https://app.example.org".',
    ),
  auth: auth
    .exactOptional()
    .describe(
      'How clients say who they are. Without this nobody is asked, and `serve` listens beyond the loopback only when it is told --insecure.',
    ),
  explorer: z
    .boolean()
    .exactOptional()
    .describe(
      'Serves the page for people too, beside the MCP endpoint: at /, where that is /mcp. The page asks for what it shows as every client does. By default where `serve` listens on the loopback.',
    ),
  metrics: z
    .union(
      [
        z.boolean(),
        z.strictObject({
          roles: z.array(text).min(1).describe('The roles of whom it is told to, one of which is enough.'),
        }),
      ],
      {
        error: refusal(
          'This does not say whether measurements are told.',
          'Write true, false or { "roles": ["monitor"] }.',
        ),
      },
    )
    .exactOptional()
    .describe(
      'Tells measurements of this server at /metrics, for Prometheus: to who asks from this machine, where nobody is asked who they are; with `http.auth`, to who has a token, or a token with one of some roles. By default false.',
    ),
  public: z
    .strictObject({
      name: z
        .string()
        .max(200)
        .regex(/^[a-zA-Z0-9.-]+\/[a-zA-Z0-9._-]+$/, {
          error: refusal(
            'This is no name of a public server.',
            'Write a domain in reverse and a name, such as "org.example/context".',
          ),
        })
        .describe(
          'The unique name of this server: a domain in reverse and a name in it, such as "org.example/context".',
        ),
      url: httpUrl.describe('The URL of the MCP endpoint, as clients reach it.'),
      description: text.max(100).describe('What this server is for, in 100 characters at most.'),
      title: text.max(100).exactOptional().describe('What people call it.'),
      websiteUrl: httpUrl.exactOptional().describe('A page about it.'),
    })
    .exactOptional()
    .describe(
      'Tells anyone that this server is here, without authentication: a server card at the path of the endpoint and /server-card, and the catalog /.well-known/ai-catalog.json. Neither says what is mounted. By default there is neither.',
    ),
  contentLinks: z
    .union(
      [
        z.literal(false),
        z.strictObject({
          lifetime: seconds.exactOptional().describe('How long a link is valid. By default "5m".'),
        }),
      ],
      {
        error: refusal('This does not say how links to contents are made.', 'Write false or { "lifetime": "5m" }.'),
      },
    )
    .exactOptional()
    .describe(
      'Links to contents that are too large for an answer, below /content/: the error of such a read has one, from which the bytes can be fetched without a token until it expires. false: there are no links.',
    ),
  sse: z
    .boolean()
    .exactOptional()
    .describe('Serves the deprecated HTTP+SSE transport of 2024-11-05 too, at /sse and /messages. By default false.'),
  limits: z
    .strictObject({
      body: size.exactOptional().describe('The longest body of a request. By default "1MiB".'),
      headers: size
        .exactOptional()
        .describe('The longest headers of a request, with its first line. By default "32KiB".'),
      path: size.exactOptional().describe('The longest path that is asked for. By default "8KiB".'),
      answer: size.exactOptional().describe('The longest answer. By default "64MiB".'),
      timeout: seconds.exactOptional().describe('How long a request may take. By default "2m".'),
      rate: z
        .number()
        .min(0)
        .exactOptional()
        .describe(
          'How many requests a second may come in the long run, from all clients together; after a rest ten times as many at once. By default 0: as many as come.',
        ),
      perPrincipal: z
        .strictObject({
          rate: z
            .number()
            .min(0)
            .exactOptional()
            .describe(
              'How many requests a second one may send; after a rest ten times as many at once. 0: as many as it likes. By default 100.',
            ),
          concurrent: count.exactOptional().describe('How many requests of one are worked on at once. By default 8.'),
          waiting: count.exactOptional().describe('How many more of one may wait for that. By default 256.'),
          connections: count.exactOptional().describe('How many connections one may have open. By default 256.'),
          sessions: count.exactOptional().describe('How many sessions one may have. By default 100.'),
        })
        .exactOptional()
        .describe('What one principal may have of all that, where clients are asked who they are (`http.auth`).'),
      concurrent: count.exactOptional().describe('How many requests are worked on at once. By default 64.'),
      waiting: count.exactOptional().describe('How many more may wait for that. By default 1024.'),
      connections: count.exactOptional().describe('How many connections may be open. By default 1024.'),
      connectionsPerAddress: count
        .exactOptional()
        .describe('How many of them one address may have open. By default 896, or 7 of 8 of `connections`.'),
      newConnections: z
        .number()
        .min(0)
        .exactOptional()
        .describe(
          'How many connections a second one address may open in the long run; after a rest ten times as many at once. 0: as many as it likes. By default 200.',
        ),
      badTokens: z
        .number()
        .min(0)
        .exactOptional()
        .describe(
          'How many tokens a second that are not good one address may send in the long run; after a rest ten times as many at once. 0: as many as it likes. By default 20.',
        ),
      sessions: count
        .exactOptional()
        .describe('How many sessions (clients up to 2025-11-25) may be open. By default 1000.'),
      sessionIdle: seconds
        .exactOptional()
        .describe('After how long without a request a session ends. By default "30m".'),
      headersTime: seconds
        .exactOptional()
        .describe('How long the headers of a request may take to come. By default "10s".'),
      requestTime: seconds.exactOptional().describe('How long a whole request may take to come. By default "30s".'),
      slow: seconds
        .exactOptional()
        .describe('How long a client may take to read an answer before its connection is cut. By default "1m".'),
      stalled: seconds
        .exactOptional()
        .describe(
          'How long a client may take nothing of what is sent to it before its connection is cut (on Linux). By default "45s".',
        ),
      drain: duration
        .exactOptional()
        .describe('How long requests in flight may take when the server stops. By default "10s".'),
    })
    .exactOptional()
    .describe('What protects the server from too much at once.'),
})
