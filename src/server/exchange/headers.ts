import type { IncomingMessage } from 'node:http'

/** The end of a target that counts for nothing when its endpoint is found: a final slash of the path, and the query. */
export const afterRoute = /\/?(?:\?.*)?$/

/** The values of a request by the names of its headers in lower case, under a key of ours. */
const valuesKey = Symbol('values of headers')

const noValues: readonly string[] = []

/** Returns every value of a header, unchanged: Node keeps only one value of some headers. */
export function valuesOf(request: IncomingMessage, name: string): readonly string[] {
  const known = request as IncomingMessage & { [valuesKey]?: Map<string, string[]> }
  if (known[valuesKey] === undefined) {
    // Seven headers are needed: one pass over the headers finds all of them.
    const values = new Map<string, string[]>()
    const raw = request.rawHeaders
    for (let i = 0; i + 1 < raw.length; i += 2) {
      const header = raw[i]?.toLowerCase() ?? ''
      const others = values.get(header)
      if (others === undefined) values.set(header, [raw[i + 1] ?? ''])
      else others.push(raw[i + 1] ?? '')
    }
    known[valuesKey] = values
  }
  return known[valuesKey].get(name) ?? noValues
}
