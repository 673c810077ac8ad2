import { readFile } from 'node:fs/promises'
import { invalid } from '../core/errors.ts'
import { defined } from '../core/kit/defined.ts'
import type { Log } from '../core/log.ts'
import type { Provider } from '../core/provider.ts'
import { providers } from '../providers/index.ts'
import { sliced } from '../wrap/sliced.ts'
import { resolveFolder } from './folder.ts'
import type { MountConfig } from './schema.ts'
import { resolveSecret, type SecretSource } from './secret.ts'

type ConfigOf<Name> = Extract<MountConfig, { readonly provider: Name }>
type PostgresConfig = ConfigOf<'postgres'>

/** Opens a database of PostgreSQL, as its mount says. */
export async function openPostgres(config: PostgresConfig, folder: string, log: Log): Promise<Provider> {
  const url = await urlIn(config.url, folder)
  const options = { ...(await serverOptions(config, folder)), ...rowOptions(config.rows) }
  const { postgres } = await providers.postgres()
  return sliced(await postgres({ url, ...options, log }))
}

/** Opens a database of MySQL or MariaDB, as its mount says. */
export async function openMysql(config: ConfigOf<'mysql'>, folder: string, log: Log): Promise<Provider> {
  const url = await urlIn(config.url, folder)
  const options = { ...(await serverOptions(config, folder)), ...rowOptions(config.rows) }
  const { mysql } = await providers.mysql()
  return sliced(await mysql({ url, ...options, log }))
}

/** Opens a database in a file, as its mount says. */
export async function openSqlite(config: ConfigOf<'sqlite'>, folder: string, log: Log): Promise<Provider> {
  const options = { ...commonOptions(config), ...rowOptions(config.rows) }
  const { sqlite } = await providers.sqlite()
  return sliced(await sqlite({ file: resolveFolder(config.file, folder), ...options, log }))
}

/** Which rows are served; none where nothing says so. */
function rowOptions<Rows extends object>(
  rows: boolean | Rows | undefined,
): { readonly rows?: Rows | Record<never, never> } {
  if (rows === undefined || rows === false) return {}
  return { rows: rows === true ? {} : rows }
}

/** @throws ResourceError `invalid` where there is none. */
export async function urlIn(source: SecretSource, folder: string): Promise<string> {
  const found = await resolveSecret(source, { folder })
  if ('value' in found) return found.value.trim()
  throw invalid(`There is no "url". ${found.message} ${found.fix}`, 'secret')
}

type CommonConfig = Pick<
  PostgresConfig,
  'connections' | 'statementTimeout' | 'lockTimeout' | 'waitTimeout' | 'idleTimeout' | 'watch' | 'reconcile'
>
type ServerConfig = CommonConfig & Pick<PostgresConfig, 'connectTimeout' | 'tls' | 'allowPrivileged' | 'schemas'>

/** Returns the provider options common to all database mounts. */
function commonOptions(config: CommonConfig) {
  const { connections, statementTimeout, lockTimeout, waitTimeout, idleTimeout, watch, reconcile } = config
  return {
    ...defined({
      connections,
      statementTimeoutMs: statementTimeout,
      lockTimeoutMs: lockTimeout,
      waitTimeoutMs: waitTimeout,
      idleTimeoutMs: idleTimeout,
      watch,
      reconcile,
    }),
  }
}

/** Returns the provider options common to mounts over database servers. */
export async function serverOptions(config: ServerConfig, folder: string) {
  const { connectTimeout, allowPrivileged, schemas } = config
  const tls = await tlsIn(config.tls, folder)
  return {
    ...commonOptions(config),
    ...defined({ connectTimeoutMs: connectTimeout, allowPrivileged, schemas, tls }),
  }
}

async function tlsIn(tls: ServerConfig['tls'], folder: string) {
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
