/** Where vectors come from. */
export type EmbedderOptions = {
  /** The name of the model, as the service knows it. Another model means other vectors: all are made anew. */
  readonly model: string
  /** How long one request may take, in milliseconds. By default 10,000; for a query 1000. */
  readonly timeoutMs?: number
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
      /** A model in this process, by the package @huggingface/transformers, which is installed beside this one. */
      readonly local: { /** A folder that models lie in: nothing is fetched then. */ readonly folder?: string }
    }
)

/** Makes vectors of texts: each of them of as many numbers. */
export interface Embedder {
  readonly model: string
  /** @throws Error whose message may be told to the operator: it has no text, URL or key in it. */
  embed(
    texts: readonly string[],
    kind: 'query' | 'passage',
    signal: AbortSignal,
  ): Promise<readonly (readonly number[])[]>
  close(): Promise<void>
}

/** How much is read of an answer, in bytes. */
const mostBytes = 64 * 1024 * 1024

/** @throws ResourceError `invalid` where a local model is asked for and its package is not there. */
export async function createEmbedder(options: EmbedderOptions): Promise<Embedder> {
  if ('local' in options) return (await import('./embedder-local.ts')).createLocalEmbedder(options.model, options.local)
  const { model, timeoutMs } = options
  return {
    model,
    embed: async (texts, kind, signal) => {
      const { url, headers, vectorsOf } = 'openai' in options ? openaiOf(options.openai) : ollamaOf(options.ollama)
      const late = AbortSignal.timeout(timeoutMs ?? (kind === 'query' ? 1000 : 10_000))
      const body = JSON.stringify({ model, input: texts })
      const answer = await post(url, headers, body, AbortSignal.any([signal, late]))
      return checked(vectorsOf(answer), texts.length)
    },
    close: async () => {},
  }
}

interface Service {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  vectorsOf(answer: unknown): unknown
}

/** https://platform.openai.com/docs/api-reference/embeddings: the vectors are told in any order, each with its number. */
function openaiOf({ url, key }: { readonly url: string; readonly key?: string }): Service {
  return {
    url: `${url.replace(/\/+$/, '')}/embeddings`,
    headers: key === undefined ? {} : { authorization: `Bearer ${key}` },
    vectorsOf: (answer) => {
      const { data } = answer as { readonly data?: unknown }
      if (!Array.isArray(data)) return undefined
      const ordered: unknown[] = []
      for (const [place, each] of data.entries()) {
        const { index = place, embedding } = each as { readonly index?: number; readonly embedding?: unknown }
        ordered[index] = embedding
      }
      return ordered
    },
  }
}

/** https://github.com/ollama/ollama/blob/main/docs/api.md#generate-embeddings */
function ollamaOf({ url }: { readonly url: string }): Service {
  return {
    url: `${url.replace(/\/+$/, '')}/api/embed`,
    headers: {},
    vectorsOf: (answer) => (answer as { readonly embeddings?: unknown }).embeddings,
  }
}

async function post(
  url: string,
  headers: Readonly<Record<string, string>>,
  body: string,
  signal: AbortSignal,
): Promise<unknown> {
  let response: Response
  try {
    const all = { ...headers, 'content-type': 'application/json' }
    response = await fetch(url, { method: 'POST', headers: all, body, signal, redirect: 'error' })
  } catch {
    throw new Error(signal.aborted ? 'It did not answer in time.' : 'It cannot be reached.')
  }
  if (!response.ok) {
    await response.body?.cancel()
    throw new Error(`It answered with HTTP ${response.status}.`)
  }
  return JSON.parse(await readBody(response)) as unknown
}

async function readBody(response: Response): Promise<string> {
  const chunks: Uint8Array[] = []
  let size = 0
  try {
    for await (const chunk of response.body ?? []) {
      size += chunk.byteLength
      if (size > mostBytes) break
      chunks.push(chunk)
    }
  } catch {
    throw new Error('Its answer broke off.')
  }
  if (size > mostBytes) throw new Error('Its answer is too large.')
  return Buffer.concat(chunks).toString('utf8')
}

/** Vectors of numbers, as many as there are texts, all of one length. */
function checked(found: unknown, count: number): readonly (readonly number[])[] {
  const isVector = (each: unknown): each is number[] =>
    Array.isArray(each) &&
    each.length > 0 &&
    each.length <= 16_384 &&
    each.every((n) => typeof n === 'number' && Number.isFinite(n))
  if (!Array.isArray(found) || found.length !== count || !found.every(isVector))
    throw new Error('Its answer has not a vector for each text.')
  if (found.some(({ length }) => length !== found[0]?.length)) throw new Error('Its vectors are of several lengths.')
  return found
}
