/** Why a request is refused, and the answer to it. */
export interface Refusal {
  /** Reason in the audit log. */
  readonly reason: 'no-token' | 'malformed-token' | 'bad-token' | 'unjudged-token' | 'scope'
  readonly status: 400 | 401 | 403 | 503
  readonly message: string
  readonly headers: Readonly<Record<string, string>>
}

/** The refusals of a resource server (RFC 6750, section 3, and RFC 9728, section 5.1), for one resource. */
interface Challenges {
  /** The request has no token: the answer names the required scopes, and no error. */
  readonly missing: Refusal
  readonly malformed: Refusal
  readonly invalid: Refusal
  /** @param scopes All scopes that the operation requires, including those that the token has. */
  insufficient(scopes: readonly string[]): Refusal
  /** The validity of the token cannot be decided at the moment. */
  readonly unavailable: Refusal
}

/** Seconds after which a client may retry when its token could not be checked. */
const retryAfterSeconds = 5

export function createChallenges(metadataUrl: string | undefined, scopes: readonly string[]): Challenges {
  const refusal = (
    reason: Refusal['reason'],
    status: 400 | 401 | 403,
    message: string,
    error: string | undefined,
    needed: readonly string[],
  ): Refusal => {
    const params = [
      ...(error === undefined
        ? []
        : [
            ['error', error],
            ['error_description', message],
          ]),
      ...(needed.length === 0 ? [] : [['scope', needed.join(' ')]]),
      ...(metadataUrl === undefined ? [] : [['resource_metadata', metadataUrl]]),
    ]
    // A scheme always has a parameter (RFC 6750, section 3).
    const shown = params.length === 0 ? [['realm', 'hikidashi']] : params
    const challenge = `Bearer ${shown.map(([name, value]) => `${name}="${value}"`).join(', ')}`
    return { reason, status, message, headers: { 'WWW-Authenticate': challenge } }
  }
  return {
    missing: refusal('no-token', 401, 'A token is needed here.', undefined, scopes),
    malformed: refusal(
      'malformed-token',
      400,
      'The token is not sent once, as a bearer token in the header.',
      'invalid_request',
      [],
    ),
    invalid: refusal('bad-token', 401, 'The token is not good here, or not any more.', 'invalid_token', scopes),
    insufficient: (needed) => refusal('scope', 403, 'The token lacks a scope.', 'insufficient_scope', needed),
    unavailable: {
      reason: 'unjudged-token',
      status: 503,
      message: 'Nobody can say just now whether the token is good. Try again later.',
      headers: { 'Retry-After': String(retryAfterSeconds) },
    },
  }
}
