import { redactedMark, type Scrubber } from '../../core/scrub.ts'
import { blobStreamKey, isBlobStream } from '../messages/json.ts'
import { isObject, protocolKeys, type Request, type Response, revisions } from '../messages/messages.ts'

/**
 * Removes known secrets from an answer, as its last step: from results and errors, texts, names, metadata, and the bytes of blobs. The
 * client's own id, URI and progress token stay unchanged.
 */
export type AnswerScrubber = (response: Response, request: Request) => Response

/** Creates an {@link AnswerScrubber}. Without a secret to remove, it returns answers unchanged. */
export function createAnswerScrubber(scrubber: Scrubber | undefined): AnswerScrubber {
  if (scrubber === undefined || scrubber.isEmpty === true) return (response) => response
  return (response, request) => {
    const clean = createClean(scrubber, ownWordsOf(request))
    if ('error' in response) return { ...response, error: clean(response.error, '', 0) as typeof response.error }
    return { ...response, result: clean(response.result, '', 0) as typeof response.result }
  }
}

/** Values with a meaning in the protocol, and the default name of a server. A secret that equals one of them cannot be told apart. */
const protocolWords: ReadonlySet<string> = new Set([
  ...['2.0', 'complete', 'private', 'public', 'user', 'assistant', 'hikidashi'],
  ...revisions,
])

/** Names of members of metadata that the protocol defines. */
const protocolNames: ReadonlySet<string> = new Set([...Object.values(protocolKeys), 'name', 'version'])

/** Returns the test for values that the client itself has sent, or that the protocol defines. */
function ownWordsOf({ id, params = {} }: Request): (text: string) => boolean {
  const token = isObject(params._meta) ? params._meta.progressToken : undefined
  const { uri } = params
  return (text) => protocolWords.has(text) || text === id || text === uri || text === token
}

/** Maximum depth of the search. Deeper values are removed as a whole. */
const maxDepth = 100

/** Creates a function that cleans a JSON value, given the key that it belongs to. */
function createClean({ scrub, scrubBytes, stream }: Scrubber, isOwn: (text: string) => boolean) {
  async function* cleaned(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    const scrubbed = stream()
    for await (const piece of bytes) yield* scrubbed.push(piece)
    yield scrubbed.end()
  }
  const cleanText = (text: string, key: string): string => {
    if (isOwn(text)) return text
    if (key === 'blob') return cleanBlob(text)
    const clean = scrub(text)
    // A URI must stay a valid URI, so the mark in it is escaped.
    return key === 'uri' || key === 'uriTemplate'
      ? clean.replaceAll(redactedMark, encodeURIComponent(redactedMark))
      : clean
  }
  const cleanBlob = (base64: string): string => {
    const bytes = Buffer.from(base64, 'base64')
    const clean = scrubBytes(bytes)
    return clean === bytes ? base64 : Buffer.from(clean).toString('base64')
  }
  /** @param isMeta Whether the value is in metadata, whose names can come from anyone. */
  const clean = (value: unknown, key: string, depth: number, isMeta = false): unknown => {
    if (typeof value === 'string') return cleanText(value, key)
    if (typeof value !== 'object' || value === null) return value
    if (depth > maxDepth) return redactedMark
    if (isBlobStream(value)) return { ...value, [blobStreamKey]: cleaned(value[blobStreamKey]) }
    return Array.isArray(value) ? cleanItems(value, key, depth, isMeta) : cleanMembers(value, depth, isMeta)
  }
  // Arrays and objects are copied from the first value on that changes, because most answers contain no secret.
  const cleanItems = (items: readonly unknown[], key: string, depth: number, isMeta: boolean): readonly unknown[] => {
    let copy: unknown[] | undefined
    for (let at = 0; at < items.length; at++) {
      const item = clean(items[at], key, depth + 1, isMeta)
      if (item === items[at]) continue
      copy ??= items.slice()
      copy[at] = item
    }
    return copy ?? items
  }
  const cleanMembers = (value: object, depth: number, isMeta: boolean): object => {
    const members = value as Readonly<Record<string, unknown>>
    const names = Object.keys(members)
    let copy: [name: string, member: unknown][] | undefined
    for (let at = 0; at < names.length; at++) {
      const name = names[at] ?? ''
      const member = members[name]
      const cleanName = isMeta && !protocolNames.has(name) ? scrub(name) : name
      const cleanMember = clean(member, name, depth + 1, isMeta || name === '_meta')
      if (copy === undefined && cleanName === name && cleanMember === member) continue
      copy ??= names.slice(0, at).map((before) => [before, members[before]])
      copy.push([cleanName, cleanMember])
    }
    return copy === undefined ? value : Object.fromEntries(copy)
  }
  return clean
}
