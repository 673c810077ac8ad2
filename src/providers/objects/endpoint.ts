import { isIP } from 'node:net'
import { createGuardedLookup } from '../../core/address-guard.ts'
import { invalid } from '../../core/errors.ts'
import { addressBytes, isMetadataAddress, isNotTlsCode } from '../../core/http-url.ts'
import { isLoopback, parseUri } from '../../core/uri.ts'

export interface Endpoint {
  /** URL without a path, such as `https://host:port`. */
  readonly url: string
  readonly host: string
  readonly secure: boolean
}

/** Whether an address is that of a metadata service, which issues credentials of machines. */
export function isMetadataHost(address: string): boolean {
  const bytes = addressBytes(address.replace(/%.*$/, ''))
  return bytes !== undefined && isMetadataAddress(bytes)
}

const refusedAddress = 'EMETADATA'

/** DNS look-up for sockets that refuses a host with an address of a metadata service. */
export const guardedLookup = createGuardedLookup(isMetadataHost, refusedAddress)

/**
 * Parses an endpoint of the operator: `https://storage.example.com`, `http://127.0.0.1:9000`.
 *
 * @param insecure Whether requests beyond the loopback may be unencrypted.
 * @throws ResourceError `invalid` (reason `configuration`).
 */
export function parseEndpoint(text: string, insecure: boolean): Endpoint {
  const refuse = (message: string) => invalid(`The endpoint ${message}`, 'configuration')
  const { scheme, authority, segments, query } = parseEndpointUri(text)
  const match = /^(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?)(?::(\d{1,5}))?$/.exec(authority)
  const [, host = '', port] = match ?? []
  // URL parsers treat every host that ends in a number as an IP address, such as `2852039166`.
  const isAddress = isIP(host.replace(/^\[|\]$/g, '')) !== 0 || !/(?:^|\.)(?:\d+|0x[\da-f]*)$/i.test(host)
  const hasPort = port === undefined || (Number(port) > 0 && Number(port) < 65_536)
  if ((scheme !== 'https' && scheme !== 'http') || match === null || !hasPort || !isAddress)
    throw refuse(
      'is not the address of a server. Write one such as "https://storage.example.com" or "http://127.0.0.1:9000".',
    )
  if (segments.length > 0 || query !== undefined)
    throw refuse('has a path or a query. Remove it, and name the bucket in "bucket".')
  const address = host.replace(/^\[|\]$/g, '')
  if (isMetadataHost(address) || /^metadata(?:\.google\.internal)?$/i.test(address))
    throw refuse('is a cloud metadata service, which gives out credentials. Name the host of the store.')
  if (scheme === 'http' && !insecure && !isLoopback(address))
    throw refuse('is not encrypted. Write https://, or add "insecure": true if you trust the network.')
  return { url: `${scheme}://${authority}`, host: address, secure: scheme === 'https' }
}

function parseEndpointUri(text: string) {
  try {
    return parseUri(text)
  } catch {
    throw invalid(
      'The endpoint is not the address of a server, or holds a name and password. Write one such as "https://storage.example.com".',
      'configuration',
    )
  }
}

const ways: ReadonlyMap<string, string> = new Map(
  Object.entries({
    ECONNREFUSED: 'Nothing listens at the endpoint. Start the store, or correct "endpoint".',
    ENOTFOUND: 'The host of the endpoint is not known. Correct "endpoint" or "region", or check the DNS.',
    EAI_AGAIN: 'The host of the endpoint cannot be looked up. Check the DNS.',
    EHOSTUNREACH: 'The endpoint cannot be reached. Check the network.',
    ENETUNREACH: 'The endpoint cannot be reached. Check the network.',
    [refusedAddress]:
      'The host of the endpoint resolves to a cloud metadata service, and no request is sent to it. Correct "endpoint".',
    ERR_TLS_CERT_ALTNAME_INVALID: 'The certificate of the endpoint is for another host. Correct "endpoint".',
    CERT_HAS_EXPIRED: 'The certificate of the endpoint has expired. Renew it there.',
  }),
)

const unsigned =
  /^(?:DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_(?:VERIFY_LEAF_SIGNATURE|GET_ISSUER_CERT.*))$/

export function connectionAdvice(system: string | undefined): string | undefined {
  if (system === undefined) return undefined
  if (unsigned.test(system))
    return 'The certificate of the endpoint is not from a trusted authority. Name a file with its authority in NODE_EXTRA_CA_CERTS.'
  if (isNotTlsCode(system)) return 'The endpoint does not speak TLS. Correct "endpoint".'
  return ways.get(system)
}

export const invalidAnswerMessage = 'The answer of the store is not valid. Check the store and the network to it.'

/**
 * Whether the Google client may request credentials from the metadata service of the machine. The operator must enable that in
 * METADATA_SERVER_DETECTION, because on most machines the address of the service does not answer.
 */
export function mayUseMetadataService(): boolean {
  const { METADATA_SERVER_DETECTION: detection = '' } = process.env
  return !/^(?:|none)$/i.test(detection.trim())
}
