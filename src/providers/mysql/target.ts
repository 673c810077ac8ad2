import { connect, isIP, type Socket } from 'node:net'
import type { ConnectionOptions } from 'mysql2'
import { invalid } from '../../core/errors.ts'
import { isLoopback } from '../../core/host.ts'
import type { TlsOptions } from '../relational/server.ts'

/** Address of the database server and the account. */
export interface Target {
  readonly user: string
  readonly password: string
  /** `undefined` where the URL names none: then schemas are named, or all are served. */
  readonly database: string | undefined
  /** The name that the certificate of the server has to have; of no account without encryption. */
  readonly host: string
  readonly ssl: NonNullable<Exclude<ConnectionOptions['ssl'], string>> | undefined
  open(): Socket
}

const form =
  /^(?:mysql|mariadb):\/\/([^:@/?#]+)(?::([^@/?#]*))?@(\[[0-9A-Fa-f:.]+\]|[^:@/?#[\]]+)(?::([0-9]{1,5}))?(?:\/([^/?#]*))?$/

/**
 * Parses the URL of a database. It takes no parameters, so a URL cannot weaken a setting.
 *
 * @throws ResourceError `invalid`, in words that hold nothing of the URL.
 */
export function targetOf(url: string, tls: TlsOptions | undefined): Target {
  const match = form.exec(url)
  if (match === null)
    throw invalid(
      'The URL of the database is not of the form mysql://account:password@host:3306/database, without parameters. Percent-encode what its password holds.',
      'url',
    )
  const [, user, password = '', named = '', port = '3306', database = ''] = match
  const [account, secret, place, schema] = [user ?? '', password, named, database].map(decoded)
  if (account === undefined || secret === undefined || place === undefined || schema === undefined)
    throw invalid('The URL of the database cannot be read. Percent-encode what its password holds.', 'url')
  if (Number(port) < 1 || Number(port) > 65_535) throw invalid('The URL of the database has no such port.', 'url')
  const host = place.replace(/^\[|\]$/g, '')
  const isSocket = host.startsWith('/')
  const mode = tls?.mode ?? (isSocket || isLoopback(host) ? 'off' : 'verify')
  return {
    ...{ user: account, password: secret, database: schema === '' ? undefined : schema },
    ...(mode === 'off' ? { host, ssl: undefined } : { host: verifiedName(host, tls), ssl: sslOf(tls) }),
    open: () => {
      const socket = isSocket ? connect(host) : connect(Number(port), host)
      return socket.setNoDelay(true).setKeepAlive(true, 10_000)
    },
  }
}

function decoded(text: string): string | undefined {
  try {
    const plain = decodeURIComponent(text)
    return plain.includes('\0') ? undefined : plain
  } catch {
    return undefined
  }
}

/** The client looks for names in certificates, and for no addresses. */
function verifiedName(host: string, tls: TlsOptions | undefined): string {
  const name = tls?.serverName ?? host
  if (isIP(name) === 0 && !name.startsWith('/')) return name
  throw invalid(
    'The connection is to be encrypted, and the URL has no name of a host that a certificate could be of: write the name, or "tls": { "serverName": … }.',
    'tls',
  )
}

function sslOf(tls: TlsOptions | undefined): NonNullable<Target['ssl']> {
  return {
    ...{ rejectUnauthorized: true, verifyIdentity: true, minVersion: 'TLSv1.2' },
    ...(tls?.ca === undefined ? {} : { ca: tls.ca }),
  }
}
