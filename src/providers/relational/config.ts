import { readFile } from 'node:fs/promises'
import { invalid } from '../../core/errors.ts'
import { defined } from '../../core/kit/object.ts'
import * as z from '../../schema/builder.ts'
import { count, durationFrom, glob, interval, size, sizeUpTo, text } from '../../schema/fields.ts'
import { refusal } from '../../schema/refusals.ts'
import {
  type Effect,
  type EffectContext,
  pathEffects,
  secretEffects,
  serviceEffects,
  withoutEffects,
} from '../../schema/shapes.ts'
import { resolveConfigPath, resolveSecret, type SecretSource } from '../../schema/values.ts'
import type { OptionsOf } from '../source.ts'

/** A time-out from 100 ms, because connections over a network take some time, to 1 hour. */
const timeout = durationFrom('100ms', '1h')

export const rowsShape = {
  tables: z
    .array(glob)
    .min(1)
    .optionalKey('Serves only tables whose paths match one of these globs: "customers", "sales/*".'),
  columns: z
    .strictObject({
      allow: z.array(glob).optionalKey('Shows only columns that match one of these globs: "customers/name".'),
      deny: z.array(glob).optionalKey('Hides columns that match one of these globs: "**/*password*".'),
    })
    .optionalKey('The columns to show; "deny" overrides "allow". By default all that the database role may read.'),
  limit: count.max(10_000).optionalKey('Maximum number of rows in one answer. By default 1000.'),
  maxValueBytes: size
    .refine((bytes) => bytes >= 16 && bytes <= 16 * 2 ** 20, {
      error: refusal('The size is too small or too large.', 'It must be from 16 bytes to "16MiB".'),
    })
    .optionalKey(
      'Maximum size of a value. Of a longer value the beginning and the length are shown. By default "16KiB".',
    ),
  maxBytes: sizeUpTo('64MiB').optionalKey('Approximate maximum size of all values in one answer. By default "1MiB".'),
  views: z
    .boolean()
    .optionalKey('Also serves rows of views. Reading a view runs the functions that it calls. By default false.'),
}

export const relationalShape = {
  watch: z.boolean().optionalKey('Tells clients what changes. By default true.'),
  reconcile: interval.optionalKey(
    'Interval at which the system catalog is compared, to find changes without a notification. By default "30s".',
  ),
}

export const timeoutShape = {
  statementTimeout: timeout.optionalKey('Time-out of one statement. By default "10s".'),
  lockTimeout: timeout.optionalKey('Time-out of a statement that waits for a lock. By default "2s".'),
  waitTimeout: timeout.optionalKey('Time-out of a request that waits for a free connection. By default "5s".'),
  idleTimeout: timeout.optionalKey('Time after which an unused connection is closed. By default "1m".'),
}

export function connectionsShape(description: string) {
  return { connections: count.max(100).optionalKey(description) }
}

export function rowsKey<Shape extends z.Shape>(shape: Shape) {
  return z
    .union([z.boolean(), z.strictObject(shape)], {
      error: refusal('This is not a choice of rows.', 'Write true, false, or { "tables": ["customers"] }.'),
    })
    .optionalKey('Serves rows of tables: true for all, or an object. By default false: only the structure of tables.')
}

export const serverShape = {
  ...relationalShape,
  ...connectionsShape('Maximum number of connections; with PostgreSQL another one listens for changes. By default 4.'),
  connectTimeout: timeout.optionalKey('Time-out of connecting. By default "5s".'),
  ...timeoutShape,
  tls: z
    .union(
      [
        z.enum(['verify', 'off']),
        z.strictObject({
          ca: text.optionalKey('A file with the certificates to trust (PEM), relative to the configuration file.'),
          serverName: text.optionalKey('The name in the certificate of the server, if it differs from the host.'),
        }),
      ],
      {
        error: refusal(
          'This is not a setting for encryption.',
          'Write "verify", "off", or { "ca": "certificates.pem" }.',
        ),
      },
    )
    .optionalKey(
      'Encryption of the connection: "verify" requires a valid certificate of the host in the URL, "off" does not encrypt. By default "verify"; for a database on this machine "off", unless the URL requests encryption.',
    ),
  allowPrivileged: z
    .boolean()
    .optionalKey(
      'Accepts a database role that can do more than read, such as a superuser or the owner of tables. By default false.',
    ),
}

export const databaseEffects = {
  ...withoutEffects('rows watch reconcile connections statementTimeout lockTimeout waitTimeout idleTimeout'),
} as const

export const serverEffects = {
  always: ({ url }: { readonly url: SecretSource }): readonly Effect[] =>
    serviceEffects(`the database that ${'env' in url ? `the variable ${url.env}` : `the file ${url.file}`} names`),
  options: {
    ...databaseEffects,
    url: secretEffects,
    tls: (tls: NonNullable<z.output<typeof serverShape.tls>>, context: EffectContext) =>
      typeof tls === 'object' && tls.ca !== undefined ? pathEffects(tls.ca, context) : [],
    ...withoutEffects('schemas connectTimeout allowPrivileged'),
  },
} as const

type DatabaseOptions = OptionsOf<typeof relationalShape & typeof timeoutShape & ReturnType<typeof connectionsShape>>
type ServerOptions<Rows> = OptionsOf<typeof serverShape> & {
  readonly url: SecretSource
  readonly schemas?: readonly string[]
  readonly rows?: boolean | Rows
}

export function rowOptions<Rows extends object>(
  rows: boolean | Rows | undefined,
): { readonly rows?: Rows | Record<never, never> } {
  if (rows === undefined || rows === false) return {}
  return { rows: rows === true ? {} : rows }
}

export function databaseOptions(options: DatabaseOptions) {
  const { connections, statementTimeout, lockTimeout, waitTimeout, idleTimeout, watch, reconcile } = options
  return defined({
    connections,
    statementTimeoutMs: statementTimeout,
    lockTimeoutMs: lockTimeout,
    waitTimeoutMs: waitTimeout,
    idleTimeoutMs: idleTimeout,
    watch,
    reconcile,
  })
}

/** Returns the provider options of a mount over a database server. @throws ResourceError `invalid` for a missing secret or certificate. */
export async function serverOptions<Rows extends object>(options: ServerOptions<Rows>, folder: string) {
  const { connectTimeout, allowPrivileged, schemas } = options
  const url = await urlIn(options.url, folder)
  const tls = await tlsIn(options.tls, folder)
  return {
    url,
    ...databaseOptions(options),
    ...rowOptions(options.rows),
    ...defined({ connectTimeoutMs: connectTimeout, allowPrivileged, schemas, tls }),
  }
}

async function urlIn(source: SecretSource, folder: string): Promise<string> {
  const secret = await resolveSecret(source, { folder })
  if ('value' in secret) return secret.value.trim()
  throw invalid(`"url" has no value. ${secret.message} ${secret.fix}`, 'configuration')
}

async function tlsIn(tls: OptionsOf<typeof serverShape>['tls'], folder: string) {
  if (tls === undefined) return undefined
  if (typeof tls === 'string') return { mode: tls }
  const { ca, serverName } = tls
  return {
    mode: 'verify' as const,
    ...(ca === undefined ? {} : { ca: await certificatesIn(resolveConfigPath(ca, folder)) }),
    ...defined({ serverName }),
  }
}

async function certificatesIn(file: string): Promise<string> {
  const text = await readFile(file, 'utf8').catch(() => '')
  if (text.includes('-----BEGIN CERTIFICATE-----')) return text
  throw invalid(
    `The file ${file} holds no certificates (PEM), or cannot be read. Correct the path in "tls".`,
    'configuration',
  )
}
