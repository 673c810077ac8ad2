import { maxCounted, openCounter } from '../../context/index.ts'
import type { Encoding } from '../../context/tokens.ts'
import { contentLength } from '../../core/entry.ts'
import { isResourceError } from '../../core/errors.ts'
import { defined } from '../../core/kit/object.ts'
import { isText } from '../../core/kit/utf8.ts'
import type { Resource, ResourceContent, View } from '../../core/view.ts'
import type { TokenCount } from './tree-walk.ts'

const concurrency = 6
/** Maximum size in bytes of a resource that is read. For larger ones, tokens are estimated. */
const maxBytes = maxCounted
/** An assumption for text and code in UTF-8. */
const bytesPerToken = 4

/** Tokens of a text that is too large or cannot be read are estimated. */
export async function createTokenCounter(
  view: View,
  encoding: Encoding,
): Promise<(resource: Resource) => Promise<TokenCount>> {
  const counter = await openCounter(encoding)
  const takeTurn = turns(concurrency)
  const measure = async (resource: Resource): Promise<TokenCount> => {
    if (resource.size !== undefined && resource.size > maxBytes) return estimateTokens(resource)
    try {
      const { contents } = await view.read(resource.uri)
      let tokens: number | undefined
      for (const content of contents) {
        const text = await readCountableText(content)
        if (text === 'too-large') return estimateTokens({ ...resource, size: resource.size ?? contentLength(content) })
        if (text !== undefined) tokens = (tokens ?? 0) + (await counter.count(text))
      }
      return { ...defined({ tokens }), isEstimate: false }
    } catch (error) {
      if (!isResourceError(error)) throw error
      return isResourceError(error, 'not-found') ? { isEstimate: false } : estimateTokens(resource)
    }
  }
  return (resource) => takeTurn(() => measure(resource))
}

/** Estimates from the listed size. `tokens` is undefined for binary contents and unknown sizes. */
export function estimateTokens({ size, mimeType = '', uri }: Resource): TokenCount {
  const isTextual =
    /^text\/|[/+.-](?:json|xml|yaml|toml|javascript|typescript|ecmascript|sql|x-sh|ndjson|x-ndjson|rtf)\b/.test(
      mimeType,
    ) ||
    (mimeType === '' && /\.(?:md|txt|rst|ts|js|py|c|h|go|rs|java|json|ya?ml|toml|csv)$/i.test(uri))
  if (size === undefined || !isTextual) return { isEstimate: false }
  return { tokens: Math.ceil(size / bytesPerToken), isEstimate: true }
}

async function readCountableText(content: ResourceContent): Promise<string | 'too-large' | undefined> {
  if ('text' in content) return content.text.length > maxCounted ? 'too-large' : content.text.toWellFormed()
  const bytes = 'bytes' in content ? content.bytes : await collectStream(content)
  if (bytes === undefined || bytes.length > maxBytes) return 'too-large'
  return isText(bytes) ? Buffer.from(bytes).toString('utf8') : undefined
}

async function collectStream({
  stream,
  length,
}: Extract<ResourceContent, { readonly stream: unknown }>): Promise<Uint8Array | undefined> {
  const chunks: Uint8Array[] = []
  if (length > maxBytes) {
    // A stream that is not read to its end would keep a file or connection open.
    await stream[Symbol.asyncIterator]().return?.()
    return undefined
  }
  for await (const chunk of stream) chunks.push(chunk)
  return Buffer.concat(chunks)
}

/** Starts tasks in order, up to `most` at a time. */
function turns(most: number): <T>(work: () => Promise<T>) => Promise<T> {
  const waiting: (() => void)[] = []
  let running = 0
  return async (work) => {
    if (running >= most) await new Promise<void>((resolve) => waiting.push(resolve))
    running++
    try {
      return await work()
    } finally {
      running--
      waiting.shift()?.()
    }
  }
}
