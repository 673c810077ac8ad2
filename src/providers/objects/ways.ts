/** Error code of a host that resolves to a metadata service. */
export const refusedAddress = 'EMETADATA'

/** Causes of failed connections to a store, by the system's error code, with the remedy. */
const ways: ReadonlyMap<string, string> = new Map(
  Object.entries({
    ECONNREFUSED: 'Nothing listens at the endpoint. Start the store, or correct "endpoint".',
    ENOTFOUND: 'The host of the endpoint is not known. Correct "endpoint" or "region", or look at the DNS.',
    EAI_AGAIN: 'The host of the endpoint cannot be looked up. Look at the DNS.',
    EHOSTUNREACH: 'The endpoint cannot be reached. Look at the network.',
    ENETUNREACH: 'The endpoint cannot be reached. Look at the network.',
    [refusedAddress]: 'The host of the endpoint leads to where machines are given their credentials. It is not asked.',
    EPROTO: 'The endpoint does not speak TLS. Correct "endpoint".',
    ERR_TLS_CERT_ALTNAME_INVALID: 'The certificate of the endpoint is for another host. Correct "endpoint".',
    CERT_HAS_EXPIRED: 'The certificate of the endpoint has expired. Renew it there.',
  }),
)

const unsigned =
  /^(?:DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_(?:VERIFY_LEAF_SIGNATURE|GET_ISSUER_CERT.*))$/

/** Returns the cause of a failed connection and the remedy; undefined for an unknown code. */
export function wayFault(system: string | undefined): string | undefined {
  if (system === undefined) return undefined
  if (unsigned.test(system))
    return 'Nobody known has signed the certificate of the endpoint. Name who did in NODE_EXTRA_CA_CERTS.'
  return ways.get(system)
}

/** Message for an unknown cause. */
export const silent = 'The store does not answer as it should. Look at it, and at the way there.'
