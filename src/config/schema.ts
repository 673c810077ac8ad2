import { z } from 'zod'
import { access, duration, listen, secret, size, text } from './fields.ts'
import { filesShape } from './providers/files.ts'
import { gitShape } from './providers/git.ts'
import { refusal } from './words.ts'

/**
 * The schema of `hikidashi.json`. Every key has a description, from which `config.schema.json` is generated. What only
 * the machine can tell (whether a folder is there, a variable set) is looked at when the file is loaded.
 */

/** What every mount has, whatever its provider. */
const mountShape = {
  title: text.exactOptional().describe('The name of the mount for people.'),
  description: text.exactOptional().describe('What is in the mount, for people and models.'),
  access: access
    .exactOptional()
    .describe(
      'Who may see what: names of roles that may see the whole mount, or rules. What no rule allows is denied; what any rule denies is denied; what is denied is as if it were not there. Without this key everybody sees everything.',
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
}

const mount = z.discriminatedUnion('provider', [
  z.strictObject({ provider: z.literal('files').describe('A folder of files.'), ...filesShape, ...mountShape }),
  z.strictObject({ provider: z.literal('git').describe('The history of a repository.'), ...gitShape, ...mountShape }),
])

const count = z.int().min(1)

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
  sse: z
    .boolean()
    .exactOptional()
    .describe('Serves the deprecated HTTP+SSE transport of 2024-11-05 too, at /sse and /messages. By default false.'),
  limits: z
    .strictObject({
      body: size.exactOptional().describe('The longest body of a request. By default "1MiB".'),
      concurrent: count.exactOptional().describe('How many requests are worked on at once. By default 64.'),
      waiting: count.exactOptional().describe('How many more may wait for that. By default 1024.'),
      connections: count.exactOptional().describe('How many connections may be open. By default 1024.'),
      sessions: count
        .exactOptional()
        .describe('How many sessions (clients up to 2025-11-25) may be open. By default 1000.'),
      sessionIdle: duration
        .refine((ms) => ms >= 1000, { error: refusal('This is less than a second.', 'It must be at least "1s".') })
        .exactOptional()
        .describe('After how long without a request a session ends. By default "30m".'),
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
  roles: z
    .array(text)
    .exactOptional()
    .describe('The roles of whoever asks, while nobody is asked to say who they are. By default none.'),
  pages: z
    .strictObject({
      first: count.exactOptional().describe('How many entries the first page of a list has. By default 250.'),
      most: count.exactOptional().describe('Each next page has twice as many, up to this. By default 4000.'),
      bytes: size.exactOptional().describe('About how long a page may be. By default "4MiB".'),
      scan: count.exactOptional().describe('How many entries are looked at for one page at most. By default 100000.'),
    })
    .exactOptional()
    .describe('How long the pages of lists are.'),
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
