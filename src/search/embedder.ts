import type { IncomingMessage } from 'node:http'
import {
  type AddressGuard,
  createServiceGuard,
  refusedHostCode,
  type ServiceNetwork,
  sendGuarded,
} from '../core/address-guard.ts'
import { invalid, unavailable } from '../core/errors.ts'
import { type HttpUrl, httpUrlBelow, parseHttpUrl } from '../core/http-url.ts'
import { followAbortFor, singleFlight } from '../core/kit/abort.ts'
import type { Texts } from '../store/index.ts'

/** Source of vectors, and the network rules for requests to a service. */
export type EmbedderOptions = ServiceNetwork & {
  /** The name of the model at the service. */
  readonly model: string
  /** Time-out of one request, in milliseconds. By default 10,000; for a query 1000. */
  readonly timeoutMs?: number
  /** Weight of the ranking by vectors beside that by words, from 0 to 1. By default 0.3. */
  readonly weight?: number
} & (
    | {
        /** The base of an OpenAI-compatible API: `http://127.0.0.1:8080/v1`. */
        readonly openai: { readonly url: string; readonly key?: string }
      }
    | {
        /** The base of an Ollama server: `http://127.0.0.1:11434`. */
        readonly ollama: { readonly url: string }
      }
    | {
        /** A model in this process, by the package @huggingface/transformers, which users install themselves. */
        readonly local: {
          /** The folder of the models. With it, no model is downloaded. */
          readonly folder?: string
        }
      }
  )

interface Embedder {
  readonly model: string
  /** @throws ResourceError `unavailable`, whose message contains no text, URL or key; a local model throws other errors. */
  embed(
    texts: readonly string[],
    kind: 'query' | 'passage',
    signal: AbortSignal,
  ): Promise<readonly (readonly number[])[]>
  close(): Promise<void>
}

/** Maximum number of bytes read of an answer. */
const maxBytes = 64 * 1024 * 1024
/** Default time-out of one request, in milliseconds. */
const timeoutsMs = { query: 1000, passage: 10_000 } as const

/**
 * Creates the source of vectors. A service may be at the address in its URL, at `localhost` if that is its host, on the internet, and in
 * `allowAddresses`: see {@link createServiceGuard}. Redirects are not followed.
 *
 * @throws ResourceError `invalid` for an invalid URL, and for a local model whose package is not installed.
 */
export async function createEmbedder(options: EmbedderOptions): Promise<Embedder> {
  if ('local' in options) return createLocalEmbedder(options.model, options.local)
  const { model, timeoutMs } = options
  const service = 'openai' in options ? openaiOf(options.openai) : ollamaOf(options.ollama)
  const guard = createServiceGuard(service.url, options)
  return {
    model,
    embed: async (texts, kind, caller) => {
      const { signal, release } = followAbortFor(caller, timeoutMs ?? timeoutsMs[kind])
      try {
        const answer = await post(service, guard, JSON.stringify({ model, input: texts }), signal)
        return checked(service.vectorsOf(answer), texts.length)
      } finally {
        release()
      }
    },
    close: async () => {},
  }
}

interface Service {
  readonly url: HttpUrl
  readonly headers: Readonly<Record<string, string>>
  vectorsOf(answer: unknown): unknown
}

/** https://platform.openai.com/docs/api-reference/embeddings: the vectors come in any order, each with its index. */
function openaiOf({ url, key }: { readonly url: string; readonly key?: string }): Service {
  return {
    url: httpUrlBelow(parseHttpUrl(url), 'embeddings'),
    headers: key === undefined ? {} : { Authorization: `Bearer ${key}` },
    vectorsOf: (answer) => {
      const { data } = answer as { readonly data?: unknown }
      if (!Array.isArray(data)) return undefined
      const ordered: unknown[] = []
      for (const [position, each] of data.entries()) {
        const { index = position, embedding } = each as { readonly index?: number; readonly embedding?: unknown }
        ordered[index] = embedding
      }
      return ordered
    },
  }
}

/** https://github.com/ollama/ollama/blob/main/docs/api.md#generate-embeddings */
function ollamaOf({ url }: { readonly url: string }): Service {
  return {
    url: httpUrlBelow(parseHttpUrl(url), 'api/embed'),
    headers: {},
    vectorsOf: (answer) => (answer as { readonly embeddings?: unknown }).embeddings,
  }
}

/** @throws ResourceError `unavailable`, as {@link Embedder.embed} does. */
async function post(
  { url, headers }: Service,
  guard: AddressGuard,
  body: string,
  signal: AbortSignal,
): Promise<unknown> {
  const all = {
    ...headers,
    Accept: 'application/json',
    // Without compression, the length of the body is the number of bytes read.
    'Accept-Encoding': 'identity',
    'Content-Type': 'application/json',
  }
  let response: IncomingMessage
  try {
    response = await sendGuarded(guard, { url, headers: all, body, signal })
  } catch (error) {
    if (signal.aborted) throw late()
    const isRefused = error instanceof Error && 'code' in error && error.code === refusedHostCode
    throw unavailable(isRefused ? `No request is sent to it: ${error.message}.` : 'It cannot be reached.')
  }
  try {
    const { statusCode = 0 } = response
    if (statusCode < 200 || statusCode > 299) throw unavailable(`It answered with HTTP ${statusCode}.`)
    const text = await readBody(response, signal)
    try {
      return JSON.parse(text) as unknown
    } catch {
      throw unavailable('Its answer is not JSON.')
    }
  } finally {
    response.destroy()
  }
}

async function readBody(response: IncomingMessage, signal: AbortSignal): Promise<string> {
  const chunks: Buffer[] = []
  let length = 0
  try {
    for await (const chunk of response as AsyncIterable<Buffer>) {
      length += chunk.length
      if (length > maxBytes) break
      chunks.push(chunk)
    }
  } catch {
    throw signal.aborted ? late() : unavailable('Its answer was cut off.')
  }
  if (length > maxBytes) throw unavailable('Its answer is too large.')
  return Buffer.concat(chunks).toString('utf8')
}

const late = () => unavailable('It did not answer in time.')

/** Returns the vectors in an answer: one for each text, all of the same length. */
function checked(vectors: unknown, count: number): readonly (readonly number[])[] {
  const isVector = (each: unknown): each is number[] =>
    Array.isArray(each) &&
    each.length > 0 &&
    each.length <= 16_384 &&
    each.every((n) => typeof n === 'number' && Number.isFinite(n))
  if (!Array.isArray(vectors) || vectors.length !== count || !vectors.every(isVector))
    throw unavailable('Its answer does not have a vector for each text.')
  if (vectors.some(({ length }) => length !== vectors[0]?.length)) throw unavailable('Its vectors differ in length.')
  return vectors
}

/** Whether the passages of a text count, by the id of the text. Undefined: all count. */
type Has = ((text: number) => boolean) | undefined

/** Returns the ids of the passages with the nearest meaning, nearest first. Empty if the vector of the text is unknown at the moment. */
type Nearest = (text: string, has?: Has, signal?: AbortSignal) => Promise<readonly number[]>

/** A second ranking, by vectors. */
export interface VectorRanking {
  readonly nearest: Nearest
  readonly weight: number
}

/** Number of vectors read or compared before the task yields to the event loop. */
const inOneTurn = { read: 2000, compared: 4000 }

/** Packs a vector for the store: one byte for each number, scaled so that the number farthest from 0 becomes 127 or -127. */
export function packVector(vector: readonly number[]): Uint8Array {
  const most = vector.reduce((so, each) => Math.max(so, Math.abs(each)), 0) || 1
  return Uint8Array.from(vector, (each) => Math.round((127 * each) / most) & 0xff)
}

/** The vectors of one model, in the memory of this process. New vectors are loaded from the store. */
export function createVectorIndex(texts: Texts, model: string) {
  const vectors = new Map<number, { readonly text: number; readonly bytes: Int8Array; readonly norm: number }>()
  let count = 0
  /** The revision of the texts at which the vectors of removed texts were last dropped. */
  let swept = -1
  let opening = -1

  const update = singleFlight(async () => {
    const { opening: now } = await texts.size(model)
    if (now !== opening) {
      vectors.clear()
      count = 0
      swept = -1
      opening = now
    }
    for (;;) {
      const some = await texts.vectors(model, count, inOneTurn.read)
      for (const { id, order, text, vector } of some) {
        const bytes = new Int8Array(vector.buffer, vector.byteOffset, vector.byteLength).slice()
        vectors.set(id, { text, bytes, norm: Math.sqrt(dot(bytes, bytes)) || 1 })
        count = order
      }
      if (some.length < inOneTurn.read) break
    }
    // Drop the vectors of removed texts, so that these take no place among the nearest passages.
    const { embedded, revision } = await texts.size(model)
    if (vectors.size <= embedded || revision === swept) return
    const there = new Set(await texts.ids())
    for (const [id, { text }] of vectors) if (!there.has(text)) vectors.delete(id)
    swept = revision
  }).run

  return {
    nearest: async (vector: readonly number[], limit: number, has?: Has): Promise<readonly number[]> => {
      await update()
      const target = new Int8Array(packVector(vector).buffer)
      const neighbours: { readonly id: number; readonly near: number }[] = []
      let turn = 0
      for (const [id, { text, bytes, norm }] of vectors) {
        if (bytes.length === target.length && has?.(text) !== false)
          neighbours.push({ id, near: dot(bytes, target) / norm })
        if (++turn % inOneTurn.compared === 0) await new Promise((resolve) => setImmediate(resolve))
      }
      return neighbours
        .sort((a, b) => b.near - a.near || a.id - b.id)
        .filter(({ near }) => near > 0)
        .slice(0, limit)
        .map(({ id }) => id)
    },
  }
}

function dot(a: Int8Array, b: Int8Array): number {
  let sum = 0
  for (let index = 0; index < a.length; index++) sum += (a[index] ?? 0) * (b[index] ?? 0)
  return sum
}

/** The used part of the types of `@huggingface/transformers` (4.x). */
interface Transformers {
  readonly env: { allowRemoteModels: boolean; localModelPath: string }
  pipeline(task: 'feature-extraction', model: string): Promise<Extract>
}

interface Extract {
  (texts: readonly string[], options: { pooling: 'mean'; normalize: true }): Promise<{ tolist(): number[][] }>
  dispose(): Promise<unknown>
}

/** Users install the package themselves. The name is a variable, so that no compiler resolves it. */
const packageName: string = '@huggingface/transformers'

async function createLocalEmbedder(model: string, { folder }: { readonly folder?: string }): Promise<Embedder> {
  const library = (await import(packageName).catch(() => undefined)) as Transformers | undefined
  if (library === undefined)
    throw invalid(
      `A local model needs the package ${packageName}, which cannot be loaded. Install it beside hikidashi: npm install ${packageName}`,
      'configuration',
    )
  if (folder !== undefined) {
    library.env.allowRemoteModels = false
    library.env.localModelPath = folder
  }
  let loading: Promise<Extract> | undefined
  const load = () => {
    loading ??= library.pipeline('feature-extraction', model).catch(() => {
      loading = undefined
      const advice = folder === undefined ? 'its name and the network' : 'its files in the folder'
      throw new Error(`The model cannot be loaded. Check ${advice}.`)
    })
    return loading
  }
  return {
    model,
    embed: async (texts) => {
      const extract = await load()
      return (await extract(texts, { pooling: 'mean', normalize: true })).tolist()
    },
    close: async () => {
      await (await loading?.catch(() => undefined))?.dispose()
    },
  }
}
