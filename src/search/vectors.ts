import type { Texts } from '../store/index.ts'

/** Whether the passages of a text count, by its id: others take no place among the nearest. Undefined: all count. */
type Has = ((text: number) => boolean) | undefined

/** Returns the ids of the passages with the nearest meaning, nearest first. Empty if it is unknown at the moment. */
export type Nearest = (text: string, has?: Has, signal?: AbortSignal) => Promise<readonly number[]>

/** Number of vectors read or compared before the task yields to the event loop. */
const inOneTurn = { read: 2000, compared: 4000 }

/** A vector in its stored form: normalised to length 1, each number as a byte from -127 to 127. */
export function pack(vector: readonly number[]): Uint8Array {
  const most = vector.reduce((so, each) => Math.max(so, Math.abs(each)), 0) || 1
  return Uint8Array.from(vector, (each) => Math.round((127 * each) / most) & 0xff)
}

/** The vectors of one model, in the memory of this process. New vectors are loaded from the store. */
interface Vectors {
  nearest(vector: readonly number[], limit: number, has?: Has): Promise<readonly number[]>
}

export function createVectors(texts: Texts, model: string): Vectors {
  const kept = new Map<number, { readonly text: number; readonly bytes: Int8Array; readonly norm: number }>()
  let known = 0
  /** The change of the texts up to which removed texts have been dropped. */
  let swept = -1
  let running: Promise<void> | undefined

  const catchUp = async () => {
    for (;;) {
      const some = await texts.vectors(model, known, inOneTurn.read)
      for (const { id, order, text, vector } of some) {
        const bytes = new Int8Array(vector.buffer, vector.byteOffset, vector.byteLength).slice()
        kept.set(id, { text, bytes, norm: Math.sqrt(dot(bytes, bytes)) || 1 })
        known = order
      }
      if (some.length < inOneTurn.read) break
    }
    // Removed texts take no place among the nearest: their parts are removed as well.
    const { embedded, revision } = await texts.size(model)
    if (kept.size <= embedded || revision === swept) return
    const there = new Set(await texts.ids())
    for (const [id, { text }] of kept) if (!there.has(text)) kept.delete(id)
    swept = revision
  }
  const update = () => {
    running ??= catchUp().finally(() => {
      running = undefined
    })
    return running
  }

  return {
    nearest: async (vector, limit, has) => {
      await update()
      const wanted = new Int8Array(pack(vector).buffer)
      const found: { readonly id: number; readonly near: number }[] = []
      let turn = 0
      for (const [id, { text, bytes, norm }] of kept) {
        if (bytes.length === wanted.length && has?.(text) !== false) found.push({ id, near: dot(bytes, wanted) / norm })
        if (++turn % inOneTurn.compared === 0) await new Promise((resolve) => setImmediate(resolve))
      }
      return found
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
