import { refusedHost } from '../../core/address-guard.ts'

/** Reasons of failed connections, by the error code of the system or of the client: texts that follow "does not answer:". */
const reasons: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'nothing listens there',
  ECONNRESET: 'it closed the connection',
  EPIPE: 'it closed the connection',
  UND_ERR_SOCKET: 'it closed the connection',
  ENOTFOUND: 'there is no such host',
  EAI_AGAIN: 'the name of the host cannot be looked up',
  EHOSTUNREACH: 'there is no way to the host',
  ENETUNREACH: 'there is no way to the host',
  UND_ERR_CONNECT_TIMEOUT: 'no connection comes about',
  HPE_HEADER_OVERFLOW: 'the headers of its answer are too long',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'its certificate is signed by nobody who is trusted (NODE_EXTRA_CA_CERTS names who is)',
  SELF_SIGNED_CERT_IN_CHAIN: 'its certificate is signed by nobody who is trusted (NODE_EXTRA_CA_CERTS names who is)',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    'its certificate is signed by nobody who is trusted (NODE_EXTRA_CA_CERTS names who is)',
  ERR_TLS_CERT_ALTNAME_INVALID: 'its certificate is for another host',
  CERT_HAS_EXPIRED: 'its certificate has expired',
  ERR_SSL_UNSUPPORTED_PROTOCOL: 'it speaks only a version of TLS that is not safe any more',
  ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION: 'it speaks only a version of TLS that is not safe any more',
  ERR_SSL_WRONG_VERSION_NUMBER: 'it does not speak TLS',
  EPROTO: 'it does not speak TLS',
  Z_DATA_ERROR: 'its answer is packed, and damaged',
  Z_BUF_ERROR: 'its answer is packed, and cut off',
}

/** Returns why a server does not answer. Never a text from the server. */
export function reasonOf(error: unknown): string {
  const code = codeOf(error)
  if (code === refusedHost && error instanceof Error) return error.message
  return reasons[code] ?? (code.startsWith('HPE_') ? 'its answer is not one of HTTP' : code)
}

/** Returns the error code of the underlying failure. Never a text, which may hold parts of the answer. */
export function codeOf(error: unknown): string {
  for (let at: unknown = error; at instanceof Error; at = at.cause)
    if ('code' in at && typeof at.code === 'string') return at.code
  return 'the connection failed'
}
