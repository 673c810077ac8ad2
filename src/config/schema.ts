import { z } from 'zod'
import { auth, scopes } from './auth.ts'
import { clients } from './clients.ts'
import { access, duration, interval, listen, secret, size, text } from './fields.ts'
import { apiShape } from './providers/api.ts'
import { documentsShape } from './providers/documents.ts'
import { envShape } from './providers/env.ts'
import { filesShape } from './providers/files.ts'
import { gcsShape } from './providers/gcs.ts'
import { checkGdrive, gdriveShape } from './providers/gdrive.ts'
import { gitShape } from './providers/git.ts'
import { inlineShape } from './providers/inline.ts'
import { checkMetrics, metricsShape } from './providers/metrics.ts'
import { mysqlShape } from './providers/mysql.ts'
import { postgresShape } from './providers/postgres.ts'
import { promptsShape } from './providers/prompts.ts'
import { checkRemote, remoteShape } from './providers/remote.ts'
import { resultsShape } from './providers/results.ts'
import { s3Shape } from './providers/s3.ts'
import { screenShape } from './providers/screen.ts'
import { searchShape } from './providers/search.ts'
import { settingsShape } from './providers/settings.ts'
import { sqliteShape } from './providers/sqlite.ts'
import { checkWeb, webShape } from './providers/web.ts'
import { store } from './store.ts'
import { refusal } from './words.ts'

/**
 * The schema of `hikidashi.json`. Every key has a description, from which `config.schema.json` is generated. What only
 * the machine can tell (whether a folder is there, a variable set) is looked at when the file is loaded.
 */

const count = z.int().min(1)

/** What every mount has, whatever its provider. */
const mountShape = {
  title: text.exactOptional().describe('The name of the mount for people.'),
  description: text.exactOptional().describe('What is in the mount, for people and models.'),
  access: access
    .exactOptional()
    .describe(
      'Who may see what: names of roles that may see the whole mount, or rules. What no rule allows is denied; what any rule denies is denied; what is denied is as if it were not there. Without this key everybody sees everything.',
    ),
  scopes: scopes
    .exactOptional()
    .describe(
      'The OAuth scopes that a token needs for anything in the mount, besides those that every request needs. A token without them does not see the mount, and who asks for something in it is told which scopes that takes.',
    ),
  cache: z
    .strictObject({
      ttl: duration.describe('For how long clients may keep what they got: "60s", "5m", or milliseconds.'),
      scope: z
        .enum(['public', 'private'])
        .default('private')
        .describe(
          'Whether a cache may give what one client got to another. A mount with access rules is always private.',
        ),
    })
    .exactOptional()
    .describe('For how long clients may keep what they got from the mount. By default not at all.'),
  poll: interval
    .exactOptional()
    .describe(
      'How often everything is listed and compared, so that clients are told of changes in a source that cannot tell of them by itself. By default never.',
    ),
  limits: z
    .strictObject({
      timeout: duration
        .refine((ms) => ms >= 100, { error: refusal('This is too short.', 'It must be at least "100ms".') })
        .exactOptional()
        .describe('How long the source may take for one answer. By default "30s".'),
      concurrent: count.exactOptional().describe('How many requests may be at the source at once. By default 32.'),
      waiting: count.exactOptional().describe('How many more may wait for that. By default 256.'),
      failures: count
        .exactOptional()
        .describe('After how many failures in a row the source is left alone for a while. By default 5.'),
      pause: duration
        .refine((ms) => ms >= 1, { error: refusal('This is too short.', 'It must be at least "1ms".') })
        .exactOptional()
        .describe('For how long at first; it doubles while the source stays away, up to a minute. By default "1s".'),
    })
    .exactOptional()
    .describe('What keeps a source that hangs or fails from taking everything else with it.'),
}

const mount = z.discriminatedUnion('provider', [
  z.strictObject({
    provider: z.literal('files').describe('A folder of files.'),
    ...filesShape,
    ...documentsShape,
    ...mountShape,
  }),
  z.strictObject({
    provider: z.literal('git').describe('The history of a repository.'),
    ...gitShape,
    ...documentsShape,
    ...mountShape,
  }),
  z.strictObject({
    provider: z.literal('settings').describe('Configuration files, without their secrets.'),
    ...settingsShape,
    ...mountShape,
  }),
  z.strictObject({
    provider: z.literal('s3').describe('The objects of a bucket of Amazon S3, or of what speaks its protocol.'),
    ...s3Shape,
    ...mountShape,
  }),
  z.strictObject({
    provider: z.literal('gcs').describe('The objects of a bucket of Google Cloud Storage.'),
    ...gcsShape,
    ...mountShape,
  }),
  z
    .strictObject({
      provider: z.literal('gdrive').describe('Files and documents of Google Drive.'),
      ...gdriveShape,
      ...mountShape,
    })
    .superRefine(checkGdrive),
  z.strictObject({
    provider: z
      .literal('postgres')
      .describe('A database of PostgreSQL: its tables, and rows where they are asked for.'),
    ...postgresShape,
    ...mountShape,
  }),
  z.strictObject({
    provider: z
      .literal('mysql')
      .describe('A database of MySQL or MariaDB: its tables, and rows where they are asked for.'),
    ...mysqlShape,
    ...mountShape,
  }),
  z.strictObject({
    provider: z
      .literal('sqlite')
      .describe('A database in a file of SQLite: its tables, and rows where they are asked for.'),
    ...sqliteShape,
    ...mountShape,
  }),
  z.strictObject({
    provider: z.literal('env').describe('Environment variables, without their secrets.'),
    ...envShape,
    ...mountShape,
  }),
  z
    .strictObject({
      provider: z.literal('metrics').describe('Measurements over time: of Prometheus, or of this server itself.'),
      ...metricsShape,
      ...mountShape,
    })
    .superRefine(checkMetrics),
  z.strictObject({
    provider: z.literal('search').describe('Search over other mounts.'),
    ...searchShape,
    ...mountShape,
  }),
  z
    .strictObject({
      provider: z.literal('remote').describe('Another MCP server: what it has, below this address.'),
      ...remoteShape,
      ...mountShape,
    })
    .superRefine(checkRemote),
  z.strictObject({
    provider: z.literal('inline').describe('Small resources that the configuration holds itself.'),
    ...inlineShape,
    ...mountShape,
  }),
  z
    .strictObject({
      provider: z.literal('web').describe('Pages of the web.'),
      ...webShape,
      ...mountShape,
    })
    .superRefine(checkWeb),
  z.strictObject({
    provider: z.literal('api').describe('An API that answers with JSON.'),
    ...apiShape,
    ...mountShape,
  }),
  z.strictObject({
    provider: z.literal('results').describe('Cached results of wall-bounce analyses.'),
    ...resultsShape,
    ...mountShape,
  }),
  z.strictObject({
    provider: z.literal('prompts').describe('A folder of prompts: Markdown files, which are offered as prompts too.'),
    ...promptsShape,
    ...documentsShape,
    ...mountShape,
  }),
  z.strictObject({
    provider: z.literal('screen').describe('The displays of this machine: a picture of what each shows.'),
    ...screenShape,
    ...mountShape,
    cache: z.never().exactOptional().describe('What a display shows is never kept.'),
  }),
])

/** A duration of a second or more. */
const seconds = duration.refine((ms) => ms >= 1000, {
  error: refusal('This is less than a second.', 'It must be at least "1s".'),
})

const http = z.strictObject({
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
        .describe('How long the headers of a request may take to come. By default "15s".'),
      requestTime: seconds.exactOptional().describe('How long a whole request may take to come. By default "60s".'),
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

export const configSchema = z.strictObject({
  $schema: z.string().exactOptional().describe('Where this schema is, for editors.'),
  name: text.exactOptional().describe('What the server calls itself to clients. By default "hikidashi".'),
  instructions: text.exactOptional().describe('What clients may tell a model about this server and how to use it.'),
  mounts: z
    .record(z.string(), mount)
    .refine((mounts) => Object.keys(mounts).length > 0, {
      error: refusal(
        'Nothing is mounted.',
        'Add a mount, such as "file:///docs": { "provider": "files", "root": "docs" }.',
      ),
    })
    .describe(
      'What is served: an address (a URI prefix, such as "file:///docs" or "docs://manual") for each source. No address lies at or under another.',
    ),
  http: http.exactOptional().describe('How it is served over HTTP.'),
  clients: clients.exactOptional().describe('What clients are given by what they call themselves.'),
  context: z
    .strictObject({
      prompt: z
        .boolean()
        .exactOptional()
        .describe(
          'Whether there is a prompt `assemble_context`, which asks a question with what helps with it. By default true.',
        ),
    })
    .exactOptional()
    .describe('How contexts are assembled for clients.'),
  roles: z
    .array(text)
    .exactOptional()
    .describe(
      'The roles of whoever asks where nobody is asked to say who they are: on stdio, and over HTTP without `http.auth`. By default none.',
    ),
  audit: z
    .strictObject({
      file: text.describe('The file that records go to, one a line. A relative path starts at this file.'),
      maxBytes: size
        .exactOptional()
        .describe('How long it may become before it is put aside, as FILE.1. By default "64MiB".'),
      keep: z.int().min(0).exactOptional().describe('How many of those are kept. By default 5.'),
    })
    .exactOptional()
    .describe('Keeps a record of who asked for what, and what came of it: never of content, and never of tokens.'),
  pages: z
    .strictObject({
      first: count.exactOptional().describe('How many entries the first page of a list has. By default 250.'),
      most: count.exactOptional().describe('Each next page has twice as many, up to this. By default 4000.'),
      bytes: size.exactOptional().describe('About how long a page may be. By default "4MiB".'),
      scan: count.exactOptional().describe('How many entries are looked at for one page at most. By default 100000.'),
    })
    .exactOptional()
    .describe('How long the pages of lists are.'),
  changes: z
    .strictObject({
      perSubscription: count
        .exactOptional()
        .describe(
          'How many URIs one subscription may have: one `subscriptions/listen`, or all of a session or pipe. By default 1000.',
        ),
      perPrincipal: count
        .exactOptional()
        .describe('How many URIs all subscriptions of one principal may have together. By default 20000.'),
      total: count.exactOptional().describe('How many URIs all subscriptions may have together. By default 200000.'),
      subscriptions: count.exactOptional().describe('How many subscriptions one principal may have. By default 1000.'),
      totalSubscriptions: count.exactOptional().describe('How many subscriptions there may be. By default 10000.'),
    })
    .exactOptional()
    .describe('How much clients may listen to.'),
  store: store
    .exactOptional()
    .describe('Where what the server itself remembers is kept: results, its own measurements, and what is searched.'),
  cursorSecret: secret
    .exactOptional()
    .describe(
      'Where the secret is that authenticates the cursors of lists: { "env": "NAME" } or { "file": "path" }. Replicas share it. By default a new one at each start, which ends the cursors that clients hold.',
    ),
})

/** A configuration as it was written, once it is parsed: durations in milliseconds, sizes in bytes, defaults filled in. */
export type ConfigFile = z.output<typeof configSchema>
/** A mount of a configuration. Which provider it is for is `provider`. */
export type MountConfig = ConfigFile['mounts'][string]
