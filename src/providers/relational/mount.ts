import { readFile } from 'node:fs/promises'
import { invalid } from '../../core/errors.ts'
import { defined } from '../../core/kit/object.ts'
import { resolveFolder, resolveSecret, type SecretSource } from '../../schema/values.ts'
import type { OptionsOf } from '../source.ts'
import type { connectionsShape, relationalShape, serverShape, timeoutShape } from './config.ts'

/** The options of a mount over a relational database, and of one over a database server. */
type DatabaseOptions = OptionsOf<typeof relationalShape & typeof timeoutShape & ReturnType<typeof connectionsShape>>
type ServerOptions = OptionsOf<typeof relationalShape & typeof serverShape> & { readonly schemas?: readonly string[] }

/** Returns the provider options for the served rows. Default: none are served. */
export function rowOptions<Rows extends object>(
  rows: boolean | Rows | undefined,
): { readonly rows?: Rows | Record<never, never> } {
  if (rows === undefined || rows === false) return {}
  return { rows: rows === true ? {} : rows }
}

/** Returns the provider options common to all database mounts. */
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

/** Returns the provider options common to mounts over database servers. */
export async function serverOptions(options: ServerOptions, folder: string) {
  const { connectTimeout, allowPrivileged, schemas } = options
  const tls = await tlsIn(options.tls, folder)
  return {
    ...databaseOptions(options),
    ...defined({ connectTimeoutMs: connectTimeout, allowPrivileged, schemas, tls }),
  }
}

/** @throws ResourceError `invalid` if there is no such secret. */
export async function urlIn(source: SecretSource, folder: string): Promise<string> {
  const found = await resolveSecret(source, { folder })
  if ('value' in found) return found.value.trim()
  throw invalid(`There is no "url". ${found.message} ${found.fix}`, 'secret')
}

async function tlsIn(tls: ServerOptions['tls'], folder: string) {
  if (tls === undefined) return undefined
  if (typeof tls === 'string') return { mode: tls }
  const { ca, serverName } = tls
  return {
    mode: 'verify' as const,
    ...(ca === undefined ? {} : { ca: await certificatesIn(resolveFolder(ca, folder)) }),
    ...defined({ serverName }),
  }
}

async function certificatesIn(file: string): Promise<string> {
  const text = await readFile(file, 'utf8').catch(() => '')
  if (text.includes('-----BEGIN CERTIFICATE-----')) return text
  throw invalid(`The file ${file} holds no certificates (PEM), or cannot be read.`, 'tls')
}
