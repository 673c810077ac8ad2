import { pathOfForeign } from '../../core/foreign.ts'
import { type FoundHit, foundMimeType, parseFound } from '../../core/found.ts'
import type { Content } from '../../core/provider.ts'
import { formatUri, parseAddress } from '../../core/uri.ts'

/** Rewrites the URIs in search results, so that they can be read here. Other content stays unchanged. */
export function withFound(content: Content, address: string | undefined): Content {
  if (address === undefined || content.mimeType !== foundMimeType || !('text' in content)) return content
  const found = parseFound(content.text)
  if (found === undefined) return content
  const here = parseAddress(address)
  const uriOf = (uri: string) => formatUri(here, pathOfForeign(uri))
  const hitOf = (hit: FoundHit): FoundHit => {
    const query = /\?.*$/s.exec(hit.uri)?.[0] ?? ''
    // The found part is requested by the parameters of the server.
    const uri = hit.uri === `${hit.document}${query}` ? `${uriOf(hit.document)}${query}` : uriOf(hit.uri)
    return { ...hit, uri, document: uriOf(hit.document), mount: uriOf(hit.mount) }
  }
  return { ...content, text: JSON.stringify({ ...found, hits: found.hits.map(hitOf) }) }
}
