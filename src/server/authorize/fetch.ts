import { ResourceError } from '../../core/errors.ts'

/** How long an issuer may take for an answer, in milliseconds. */
const patience = 3000
/** How long it may be, in bytes. */
const maxBytes = 256 * 1024

export interface Fetched {
  readonly value: unknown
  /** By how much the clock of whoever answered is ahead of ours, in milliseconds, where it says. */
  readonly ahead: number | undefined
}

/**
 * Fetches JSON from an address that the operator gave. Nothing leads it elsewhere: redirects are refused.
 *
 * @throws ResourceError `unavailable`, whatever the fault.
 */
export async function fetchJson(
  url: string,
  init: { readonly body?: string; readonly authorization?: string } = {},
): Promise<Fetched> {
  const { body, authorization } = init
  try {
    const response = await fetch(url, {
      method: body === undefined ? 'GET' : 'POST',
      redirect: 'error',
      signal: AbortSignal.timeout(patience),
      headers: {
        Accept: 'application/json',
        // One that was kept may be gone by now, and nobody would be told apart from an issuer that is down.
        Connection: 'close',
        // What is not compressed cannot grow.
        'Accept-Encoding': 'identity',
        ...(body === undefined ? {} : { 'Content-Type': 'application/x-www-form-urlencoded' }),
        ...(authorization === undefined ? {} : { Authorization: authorization }),
      },
      ...(body === undefined ? {} : { body }),
    })
    const text = await textOf(response)
    if (response.status !== 200) throw new Error(`the answer has the status ${response.status}`)
    const date = Date.parse(response.headers.get('date') ?? '')
    return { value: JSON.parse(text), ahead: Number.isNaN(date) ? undefined : date - Date.now() }
  } catch (error) {
    throw new ResourceError('unavailable', `There is no good answer from ${url}: ${reasonOf(error)}`)
  }
}

async function textOf(response: Response): Promise<string> {
  const chunks: Uint8Array[] = []
  let length = 0
  for await (const chunk of response.body ?? []) {
    length += chunk.length
    if (length > maxBytes) throw new Error(`the answer is longer than ${maxBytes} bytes`)
    chunks.push(chunk)
  }
  return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(chunks))
}

/** Not the text of what was answered, of which there may be a part in a message of the parser. */
function reasonOf(error: unknown): string {
  if (error instanceof SyntaxError) return 'it is not JSON'
  if (!(error instanceof Error)) return 'unknown'
  const cause = error.cause instanceof Error ? error.cause : undefined
  const code = cause !== undefined && 'code' in cause ? String(cause.code) : undefined
  return code ?? cause?.message ?? error.message
}
