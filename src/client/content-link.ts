import { ProtocolError } from '@modelcontextprotocol/client'

/**
 * Returns the link to the whole content that hikidashi adds to the error of a read that is too large (`data.link.href`). Undefined
 * when there is none, or when it leads to another origin than the endpoint: a server must not choose what else this machine fetches.
 *
 * @param endpoint URL of the MCP endpoint.
 */
export function contentLinkOf(error: Error, endpoint: string): URL | undefined {
  if (!(error.cause instanceof ProtocolError)) return undefined
  const { data } = error.cause
  const link = typeof data === 'object' && data !== null && 'link' in data ? data.link : undefined
  const href = typeof link === 'object' && link !== null && 'href' in link ? link.href : undefined
  if (typeof href !== 'string' || !URL.canParse(href, endpoint)) return undefined
  const url = new URL(href, endpoint)
  return url.origin === new URL(endpoint).origin ? url : undefined
}
