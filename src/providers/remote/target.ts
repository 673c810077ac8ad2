import { parseUri } from '../../core/uri.ts'

/** Whether a text is a URL at which an MCP server may be: http or https, without a user or a fragment. */
export function isServerUrl(text: string): boolean {
  return parsed(text) !== undefined
}

/** The host that a URL sends everything to in the clear. `undefined` where it does not. */
export function cleartextHost(text: string): string | undefined {
  const { scheme, authority } = parsed(text) ?? {}
  if (scheme !== 'http' || authority === undefined) return undefined
  return authority.replace(/:\d+$/, '').replace(/^\[(.*)\]$/, '$1')
}

function parsed(text: string) {
  try {
    const uri = parseUri(text)
    return (uri.scheme === 'http' || uri.scheme === 'https') && uri.authority !== '' ? uri : undefined
  } catch {
    return undefined
  }
}
