import type { Log } from '../../core/log.ts'

/** Options that every source over a database server takes, besides its address. */
export interface ServerOptions {
  /** The schemas that are served. Of a single one the name is left out of paths. Default: all but those of the system. */
  readonly schemas?: readonly string[]
  /** Encryption of the connection. Default: `verify`, but `off` on the loopback interface unless the URL requests it. */
  readonly tls?: TlsOptions
  /** Takes a role that could do more than read. */
  readonly allowPrivileged?: boolean
  /** Maximum number of connections, besides one that listens. Default 4. */
  readonly connections?: number
  /** Time-out of connecting, in milliseconds. Default 5000. */
  readonly connectTimeoutMs?: number
  /** Time-out of one statement, in milliseconds. Default 10,000. */
  readonly statementTimeoutMs?: number
  /** Time-out of one statement that waits for a lock, in milliseconds. Default 2000. */
  readonly lockTimeoutMs?: number
  /** Time-out of waiting for a free connection, in milliseconds. Default 5000. */
  readonly waitTimeoutMs?: number
  /** After how long without use a connection is ended, in milliseconds. Default 60,000. */
  readonly idleTimeoutMs?: number
  /** Whether changes are reported. Default `true`. */
  readonly watch?: boolean
  /** Interval at which the catalog is compared without notifications, in milliseconds. Default 30,000. */
  readonly reconcile?: number
  readonly log?: Log
}

export interface TlsOptions {
  /** `verify`: the certificate has to be good and of this host. `off`: no encryption. */
  readonly mode: 'verify' | 'off'
  /** Certificates (PEM) to trust instead of the usual ones. */
  readonly ca?: string
  /** The name in the certificate of the server, where it is not that of the host. */
  readonly serverName?: string
}

/** Options with their defaults. */
export interface ServerSettings {
  readonly schemas: readonly string[] | undefined
  readonly connections: number
  readonly connectTimeoutMs: number
  readonly statementTimeoutMs: number
  readonly lockTimeoutMs: number
  readonly waitTimeoutMs: number
  readonly idleTimeoutMs: number
  readonly allowPrivileged: boolean
  readonly log: Log
}

export function completeServerOptions(options: ServerOptions): ServerSettings {
  return {
    schemas: options.schemas,
    connections: options.connections ?? 4,
    connectTimeoutMs: options.connectTimeoutMs ?? 5000,
    statementTimeoutMs: options.statementTimeoutMs ?? 10_000,
    lockTimeoutMs: options.lockTimeoutMs ?? 2000,
    waitTimeoutMs: options.waitTimeoutMs ?? 5000,
    idleTimeoutMs: options.idleTimeoutMs ?? 60_000,
    allowPrivileged: options.allowPrivileged ?? false,
    log: options.log ?? (() => {}),
  }
}
