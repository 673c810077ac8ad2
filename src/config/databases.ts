import { readFile } from 'node:fs/promises'
import { invalid } from '../core/errors.ts'
import type { Log } from '../core/log.ts'
import type { Provider } from '../core/provider.ts'
import { providers } from '../providers/index.ts'
import { sliced } from '../wrap/sliced.ts'
import { resolveFolder } from './folder.ts'
import type { MountConfig } from './schema.ts'
import { resolveSecret, type SecretSource } from './secret.ts'

type PostgresConfig = Extract<MountConfig, { readonly provider: 'postgres' }>

/** Opens a database of PostgreSQL, as its mount says. */
export async function openPostgres(config: PostgresConfig, folder: string, log: Log): Promise<Provider> {
  const { schemas, rows = false } = config
  const url = await urlIn(config.url, folder)
  const options = await serverOptions(config, folder)
  const { postgres } = await providers.postgres()
  const opened = await postgres({
    url,
    ...options,
    ...(schemas === undefined ? {} : { schemas }),
    ...(rows === false ? {} : { rows: rows === true ? {} : rows }),
    log,
  })
  return sliced(opened)
}

/** @throws ResourceError `invalid` where there is none. */
export async function urlIn(source: SecretSource, folder: string): Promise<string> {
  const found = await resolveSecret(source, { folder })
  if ('value' in found) return found.value.trim()
  throw invalid(`There is no "url". ${found.message} ${found.fix}`, 'secret')
}

type ServerConfig = Pick<
  PostgresConfig,
  | 'connections'
  | 'connectTimeout'
  | 'statementTimeout'
  | 'lockTimeout'
  | 'waitTimeout'
  | 'idleTimeout'
  | 'tls'
  | 'allowPrivileged'
  | 'watch'
  | 'reconcile'
>

/** What mounts over database servers have in common, as options. */
export async function serverOptions(config: ServerConfig, folder: string) {
  const { connections, connectTimeout, statementTimeout, lockTimeout, waitTimeout, idleTimeout } = config
  const { allowPrivileged, watch, reconcile } = config
  const tls = await tlsIn(config.tls, folder)
  return {
    ...(connections === undefined ? {} : { connections }),
    ...(connectTimeout === undefined ? {} : { connectTimeoutMs: connectTimeout }),
    ...(statementTimeout === undefined ? {} : { statementTimeoutMs: statementTimeout }),
    ...(lockTimeout === undefined ? {} : { lockTimeoutMs: lockTimeout }),
    ...(waitTimeout === undefined ? {} : { waitTimeoutMs: waitTimeout }),
    ...(idleTimeout === undefined ? {} : { idleTimeoutMs: idleTimeout }),
    ...(allowPrivileged === undefined ? {} : { allowPrivileged }),
    ...(watch === undefined ? {} : { watch }),
    ...(reconcile === undefined ? {} : { reconcile }),
    ...(tls === undefined ? {} : { tls }),
  }
}

async function tlsIn(tls: ServerConfig['tls'], folder: string) {
  if (tls === undefined) return undefined
  if (typeof tls === 'string') return { mode: tls }
  const { ca, serverName } = tls
  return {
    mode: 'verify' as const,
    ...(ca === undefined ? {} : { ca: await certificatesIn(resolveFolder(ca, folder)) }),
    ...(serverName === undefined ? {} : { serverName }),
  }
}

async function certificatesIn(file: string): Promise<string> {
  const text = await readFile(file, 'utf8').catch(() => '')
  if (text.includes('-----BEGIN CERTIFICATE-----')) return text
  throw invalid(`The file ${file} holds no certificates (PEM), or cannot be read.`, 'tls')
}
