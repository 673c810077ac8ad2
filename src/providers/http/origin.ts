import { createGuard, parseAllowed, type Resolve } from '../../core/address-guard.ts'
import { invalid, isResourceError } from '../../core/errors.ts'
import { isLoopback } from '../../core/host.ts'
import { type HttpUrl, originOf, parseHttpUrl } from '../../core/http-url.ts'
import { defined } from '../../core/kit/defined.ts'
import { createClient, type Get } from './client.ts'

/** Options of access to a web server. */
export interface OriginOptions {
  /** Base URL: all requests are at or below it. */
  readonly url: string
  /** Addresses, single or in blocks (`10.0.0.0/8`), that may be requested although they are not public. Default none. */
  readonly allowAddresses?: readonly string[]
  /** Whether a URL beyond this machine may be `http://`. Default false. */
  readonly insecure?: boolean
  /** Other origins that redirects may lead to. Default none. */
  readonly redirects?: readonly string[]
  /** Time-out of one answer, in milliseconds. Default 20,000. */
  readonly timeoutMs?: number
  /** Maximum size of an answer, in bytes. Default 8 MiB. */
  readonly maxBytes?: number
  /** Certificates of additional authorities, besides those that Node trusts. */
  readonly ca?: string
  /** Resolves host names. Default: the system's resolver. */
  readonly resolve?: Resolve
}

interface Origin {
  readonly base: HttpUrl
  readonly get: Get
}

/** @throws ResourceError `invalid`, whose message names the invalid option and the remedy. */
export function openOrigin(options: OriginOptions): Origin {
  const {
    allowAddresses = [],
    insecure = false,
    redirects = [],
    timeoutMs = 20_000,
    maxBytes = 8 * 1024 * 1024,
  } = options
  const base = checkedUrl('url', options.url, insecure)
  if (base.target.includes('?')) throw invalid('"url" has a query (?). Leave it away.', 'url')
  const guard = createGuard(parseAllowed(allowAddresses), options.resolve)
  const refusal = guard.refusal(base)
  if (refusal !== undefined) throw invalid(`"url" cannot be asked: ${refusal}.`, 'url')
  const get = createClient({
    guard,
    timeoutMs,
    maxBytes,
    redirects: redirects.map((text) => checkedOrigin(text, insecure)),
    ...defined({ ca: options.ca }),
  })
  return { base, get }
}

function checkedOrigin(text: string, insecure: boolean): string {
  const url = checkedUrl('redirects', text, insecure)
  if (url.target !== '/') throw invalid('"redirects" names origins, without a path: https://www.example.org.', 'url')
  return originOf(url)
}

function checkedUrl(key: string, text: string, insecure: boolean): HttpUrl {
  let url: HttpUrl
  try {
    url = parseHttpUrl(text)
  } catch (error) {
    if (!isResourceError(error)) throw error
    throw invalid(`"${key}" holds no address of the web. ${error.message}`, 'url')
  }
  if (url.scheme === 'http' && !insecure && !isLoopback(url.host))
    throw invalid(
      `"${key}" is not encrypted. Write https://, or add "insecure": true if nobody else is on the way there.`,
      'insecure',
    )
  return url
}
