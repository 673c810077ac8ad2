import { createHash } from 'node:crypto'
import { parseDataUri } from '../../core/data-uri.ts'
import { invalid, notFound } from '../../core/errors.ts'
import { defined, requireKeys } from '../../core/kit/object.ts'
import { isText } from '../../core/kit/utf8.ts'
import { comparePaths, isPath, parentOf } from '../../core/path.ts'
import type { Content, Description, Entry, Provider } from '../../core/provider.ts'
import { decodeBytes, encodingLabel } from '../../text/encoding/decode.ts'

export type InlineResource = Description & {
  readonly text?: string
  readonly bytes?: Uint8Array
  readonly data?: string
}

export interface InlineOptions {
  /** Resources by path. The empty path is the address of the mount itself. */
  readonly resources: Readonly<Record<string, InlineResource>>
}

/** Maximum size of one resource, in bytes. */
export const maxResourceBytes = 1024 * 1024
/** Maximum size of all resources of a mount together, in bytes. */
export const maxMountBytes = 16 * 1024 * 1024

interface Held {
  readonly entry: Entry
  readonly content: Content
}

/**
 * Provider of small resources that a configuration contains.
 *
 * @throws ResourceError `invalid` for an invalid path, or one below another resource; for a resource without exactly one of text, bytes
 * and `data:`; for a malformed `data:` URI; and for a resource that is too large.
 */
export function inline(options: InlineOptions): Provider {
  requireKeys('inline({ resources })', options, { resources: 'an object' })
  const { resources } = options
  const holdings = new Map<string, Held>()
  let total = 0
  for (const [path, resource] of Object.entries(resources)) {
    if (!isPath(path) || path.endsWith('/'))
      throw invalid(
        `${JSON.stringify(path)} is not the path of a resource: write one such as "greeting" or "team/hello".`,
        'configuration',
      )
    const holding = holdOf(path, resource)
    total += holding.entry.size ?? 0
    holdings.set(path, holding)
  }
  if (total > maxMountBytes)
    throw invalid(`The resources have more than ${maxMountBytes} bytes together. Mount files instead.`, 'too-large')
  for (const path of holdings.keys()) refuseNested(path, holdings)
  const paths = [...holdings.keys()].sort(comparePaths)

  const at = (path: string): Held => {
    const resource = holdings.get(path)
    if (resource === undefined) throw notFound('no such resource in the configuration')
    return resource
  }

  return {
    list: async function* ({ prefix = '', after }, { signal }) {
      for (const path of paths) {
        signal.throwIfAborted()
        if (path.startsWith(prefix) && (after === undefined || comparePaths(path, after) > 0)) yield at(path).entry
      }
    },
    stat: async (path, { signal }) => {
      signal.throwIfAborted()
      return at(path).entry
    },
    read: async ({ path }, { signal }) => {
      signal.throwIfAborted()
      return [at(path).content]
    },
  }
}

function refuseNested(path: string, resources: ReadonlyMap<string, unknown>): void {
  for (let above = parentOf(path); above !== ''; above = parentOf(above)) {
    const name = above.slice(0, -1)
    if (resources.has(name))
      throw invalid(
        `${JSON.stringify(path)} lies under ${JSON.stringify(name)}, which is a resource itself. Rename one of them.`,
        'configuration',
      )
  }
}

function holdOf(path: string, { text, bytes, data, ...description }: InlineResource): Held {
  const body = parseInlineBody(text, bytes, data)
  if (body.bytes.length > maxResourceBytes)
    throw invalid(
      `${path === '' ? 'The content' : JSON.stringify(path)} has more than ${maxResourceBytes} bytes. Mount a file instead.`,
      'too-large',
    )
  const type = description.mimeType ?? body.mimeType
  const version = createHash('sha256').update(`${type}\n`).update(body.bytes).digest('base64url').slice(0, 22)
  const facts = { ...defined({ mimeType: type }), size: body.bytes.length, version }
  return {
    entry: { path, ...description, ...facts },
    content: {
      ...facts,
      // A `data:` URI contains its content, which therefore does not change.
      ...(data === undefined ? {} : { immutable: true }),
      ...(isText(body.bytes) ? { text: body.bytes.toString() } : { bytes: body.bytes }),
    },
  }
}

function parseInlineBody(
  text: string | undefined,
  bytes: Uint8Array | undefined,
  data: string | undefined,
): { readonly bytes: Buffer; readonly mimeType?: string } {
  if (text !== undefined && bytes === undefined && data === undefined) {
    if (!text.isWellFormed())
      throw invalid('"text" contains a lone surrogate, which is not valid Unicode.', 'configuration')
    return { bytes: Buffer.from(text), mimeType: 'text/plain' }
  }
  if (bytes !== undefined && text === undefined && data === undefined) return { bytes: Buffer.from(bytes) }
  if (data === undefined || text !== undefined || bytes !== undefined)
    throw invalid(
      'A resource must have exactly one of "text" and "base64"; in code, one of "text", "bytes" and "data".',
      'configuration',
    )
  const { mimeType, parameters, bytes: content } = parseDataUri(data)
  return { mimeType, bytes: inUtf8(content, mimeType, parameters.get('charset')) }
}

/** Converts text in the charset that a `data:` URI names to UTF-8. Returns bytes that do not decode unchanged. */
function inUtf8(bytes: Buffer, mimeType: string, charset: string | undefined): Buffer {
  const label =
    charset === undefined || !/^text\/|[/+](?:json|xml)$/.test(mimeType) ? undefined : encodingLabel(charset)
  if (label === undefined || label === 'utf-8') return bytes
  const text = decodeBytes(bytes, label, 'strict')
  return text === undefined || !text.isWellFormed() ? bytes : Buffer.from(text)
}
