import { defined } from '../core/kit/defined.ts'
import type { Log } from '../core/log.ts'
import type { Texts } from '../store/index.ts'
import { createEmbedder, type EmbedderOptions } from './embedder.ts'
import { textOfPart } from './part.ts'
import type { EmbeddingState } from './search-index.ts'
import { createVectors, type Nearest, pack } from './vectors.ts'

/** How many passages are sent at once. */
const batch = 16
/** How much of a passage is sent, in UTF-16 units. */
const mostUnits = 2000
/** How long it is waited until it is tried again where it failed: at first, and at most, in milliseconds. */
const retryMs = { first: 1000, most: 60_000 }
/** How often it is looked for passages that another process has put, in milliseconds. */
const lookMs = 5000
/** How many of the nearest passages have a part in an answer. */
const mostNear = 100

/** The vectors of the passages of one index: made in the background, whatever becomes of whoever makes them. */
export interface Embedding {
  /** @param degraded Told why the answer is without vectors, where it is. */
  nearest(degraded?: (why: string) => void): Nearest
  state(): Promise<EmbeddingState>
  /** There is something new. */
  wake(): void
  close(): Promise<void>
}

export async function openEmbedding(texts: Texts, options: EmbedderOptions, log: Log): Promise<Embedding> {
  const embedder = await createEmbedder(options)
  const vectors = createVectors(texts, embedder.model)
  const abort = new AbortController()
  let failing: string | undefined
  let wakeUp: () => void = () => {}
  let woken = false
  /** Until when nothing is asked of a service that has just failed, by the clock of this process. */
  let restingUntil = 0
  let wait: number = retryMs.first

  const sent = async (passages: readonly string[], kind: 'query' | 'passage', signal: AbortSignal) => {
    try {
      const made = await embedder.embed(passages, kind, signal)
      if (failing !== undefined) log('info', 'The embedder answers again.')
      failing = undefined
      wait = retryMs.first
      restingUntil = 0
      return made
    } catch (error) {
      if (signal.aborted && abort.signal.aborted) throw error
      const why = error instanceof Error ? error.message : 'It failed.'
      if (failing === undefined) log('warn', `The embedder fails: search goes by words alone. ${why}`)
      failing = why
      restingUntil = performance.now() + wait
      wait = Math.min(2 * wait, retryMs.most)
      throw error
    }
  }

  const embedSome = async (after: number): Promise<number | undefined> => {
    const some = await texts.unembedded(embedder.model, after, batch)
    const last = some.at(-1)
    if (last === undefined) return undefined
    const plain = some.map(({ value }) => cut(textOfPart(value)))
    const made = await sent(plain, 'passage', abort.signal)
    await texts.embed(
      embedder.model,
      some.map(({ id }, index) => ({ id, vector: pack(made[index] ?? []) })),
    )
    return last.id
  }

  const run = async () => {
    while (!abort.signal.aborted) {
      let pause = lookMs
      woken = false
      try {
        for (let after: number | undefined = 0; after !== undefined && !abort.signal.aborted; )
          after = await embedSome(after)
      } catch {
        pause = Math.max(50, restingUntil - performance.now())
      }
      if (woken && failing === undefined) continue
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, pause)
        timer.unref()
        wakeUp = () => {
          // While the service fails, new documents do not shorten the wait.
          if (failing !== undefined && !abort.signal.aborted) return
          clearTimeout(timer)
          resolve()
        }
      })
    }
  }
  const running = run()

  return {
    nearest:
      (degraded = () => {}) =>
      async (text, has, signal) => {
        if (failing !== undefined && performance.now() < restingUntil) {
          degraded('The embedder does not answer: these are found by their words alone.')
          return []
        }
        try {
          const both = signal === undefined ? abort.signal : AbortSignal.any([signal, abort.signal])
          const [made] = await sent([cut(text)], 'query', both)
          return await vectors.nearest(made ?? [], mostNear, has)
        } catch {
          signal?.throwIfAborted()
          degraded('The embedder does not answer: these are found by their words alone.')
          return []
        }
      },
    state: async () => {
      const { parts, embedded } = await texts.size(embedder.model)
      const waiting = Math.max(0, parts - embedded)
      return { waiting, ...defined({ failing }) }
    },
    wake: () => {
      woken = true
      wakeUp()
    },
    close: async () => {
      abort.abort()
      wakeUp()
      await running
      await embedder.close()
    },
  }
}

function cut(text: string): string {
  return text.slice(0, mostUnits).toWellFormed()
}
