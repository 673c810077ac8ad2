import * as z from '../../schema/builder.ts'
import { type Effect, type Context as EffectContext, path, secrets, service } from '../../schema/effects.ts'
import { count, duration, glob, interval, size, text } from '../../schema/fields.ts'
import { refusal } from '../../schema/refusals.ts'
import type { SecretSource } from '../../schema/secret.ts'

/** A time-out: nothing that waits for the network is given up sooner. */
export const patience = duration.refine((ms) => ms >= 100 && ms <= 3_600_000, {
  error: refusal('This is too short or too long.', 'It must be from "100ms" to "1h".'),
})

/** Keys that select the rows of a database to serve. */
export const rowsShape = {
  tables: z
    .array(glob)
    .min(1)
    .exactOptional()
    .describe('Only tables that one of these globs matches, as their paths have them: "customers", "sales/*".'),
  columns: z
    .strictObject({
      allow: z.array(glob).exactOptional().describe('Only columns that one of these globs matches: "customers/name".'),
      deny: z.array(glob).exactOptional().describe('No columns that one of these globs matches: "**/*password*".'),
    })
    .exactOptional()
    .describe(
      'Which columns are shown, by their table and name. A denial wins. By default all that the role may read.',
    ),
  limit: count.max(10_000).exactOptional().describe('The most rows that one answer has. By default 1000.'),
  maxValueBytes: size
    .refine((bytes) => bytes >= 16 && bytes <= 16 * 2 ** 20, {
      error: refusal('This is too short or too long.', 'It must be from 16 bytes to "16MiB".'),
    })
    .exactOptional()
    .describe('The longest value: of a longer one the beginning is shown, and how long it is. By default "16KiB".'),
  maxBytes: size
    .refine((bytes) => bytes <= 64 * 2 ** 20, {
      error: refusal('This is too long.', 'It must be at most "64MiB".'),
    })
    .exactOptional()
    .describe('About how long the values of one answer are together. By default "1MiB".'),
}

/** Keys common to all mounts over a relational database. */
export const relationalShape = {
  watch: z.boolean().exactOptional().describe('Tells clients what changes. By default true.'),
  reconcile: interval
    .exactOptional()
    .describe('How often the catalog is looked at for changes that nothing tells of. By default "30s".'),
}

/** The time-outs that every mount over a database has. */
export const timeoutShape = {
  statementTimeout: patience.exactOptional().describe('How long one statement may take. By default "10s".'),
  lockTimeout: patience.exactOptional().describe('How long a statement may wait for a lock. By default "2s".'),
  waitTimeout: patience.exactOptional().describe('How long a request may wait for a free connection. By default "5s".'),
  idleTimeout: patience.exactOptional().describe('After how long without use a connection is ended. By default "1m".'),
}

/** How many connections there may be. */
export function connectionsShape(description: string) {
  return { connections: count.max(100).exactOptional().describe(description) }
}

/** A key that says which rows are served: all or none, or which and how. */
export function rowsKey<Shape extends z.Shape>(shape: Shape) {
  return z
    .union([z.boolean(), z.strictObject(shape)], {
      error: refusal('This does not say which rows are served.', 'Write true, false, or { "tables": ["customers"] }.'),
    })
    .exactOptional()
    .describe('Serves rows of tables: true, or which and how. By default false: only what the tables are.')
}

/** The key that serves rows of views, too. */
export const viewsShape = {
  views: z
    .boolean()
    .exactOptional()
    .describe('Serves rows of views too: reading them runs whatever functions they call. By default false.'),
}

/** Keys common to all mounts over a database server. */
export const serverShape = {
  ...connectionsShape('How many connections there are at most, besides one that listens for changes. By default 4.'),
  connectTimeout: patience.exactOptional().describe('How long connecting may take. By default "5s".'),
  ...timeoutShape,
  tls: z
    .union(
      [
        z.enum(['verify', 'off']),
        z.strictObject({
          ca: text
            .exactOptional()
            .describe('A file with the certificates to trust (PEM), relative to the configuration file.'),
          serverName: text
            .exactOptional()
            .describe('The name in the certificate of the server, where it is not that of the host.'),
        }),
      ],
      {
        error: refusal(
          'This does not say how the connection is encrypted.',
          'Write "verify", "off", or { "ca": "certificates.pem" }.',
        ),
      },
    )
    .exactOptional()
    .describe(
      'How the connection is encrypted: "verify", with a certificate that is good and of this host; "off", not at all. By default "verify", but "off" on this machine where the URL does not ask for it.',
    ),
  allowPrivileged: z
    .boolean()
    .exactOptional()
    .describe(
      'Takes a role that could do more than read, such as a superuser or the owner of tables. By default false.',
    ),
}

/** Effects of the options common to all mounts over a relational database. */
export const databaseEffects = {
  rows: 'none',
  watch: 'none',
  reconcile: 'none',
  connections: 'none',
  statementTimeout: 'none',
  lockTimeout: 'none',
  waitTimeout: 'none',
  idleTimeout: 'none',
} as const

/** Effects of a mount over a database server. */
export const serverEffects = {
  always: ({ url }: { readonly url: SecretSource }): readonly Effect[] =>
    service(`the database that ${'env' in url ? `the variable ${url.env}` : `the file ${url.file}`} names`),
  options: {
    ...databaseEffects,
    url: secrets,
    schemas: 'none',
    connectTimeout: 'none',
    tls: (tls: NonNullable<z.output<typeof serverShape.tls>>, context: EffectContext) =>
      typeof tls === 'object' && tls.ca !== undefined ? path(tls.ca, context) : [],
    allowPrivileged: 'none',
  },
} as const
