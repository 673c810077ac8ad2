import workerUrl from './highlight-worker.ts?worker&url'
import type { TokenLine } from './model/tokens.ts'
import { startWorker } from './trusted.ts'

/** A text longer than this, in characters, stays plain: a person does not read it for its colours. */
export const mostHighlighted = 1_000_000

/** One that takes longer than this is given up, in milliseconds: there are texts on which expressions take for ever. */
const patience = 8000

let worker: Worker | undefined
let lastId = 0
const waiting = new Map<number, (lines: readonly TokenLine[] | undefined) => void>()

/** The lines of a text as pieces with their classes, worked out beside the page. `undefined`: it stays plain. */
export function highlight(text: string, language: string): Promise<readonly TokenLine[] | undefined> {
  if (text.length > mostHighlighted) return Promise.resolve(undefined)
  worker ??= start()
  const id = ++lastId
  return new Promise((resolve) => {
    const timer = setTimeout(giveUp, patience)
    waiting.set(id, (lines) => {
      clearTimeout(timer)
      resolve(lines)
    })
    worker?.postMessage({ id, text, language })
  })
}

function start(): Worker {
  const started = startWorker(workerUrl)
  started.addEventListener('message', ({ data }: MessageEvent<{ id: number; lines?: readonly TokenLine[] }>) => {
    waiting.get(data.id)?.(data.lines)
    waiting.delete(data.id)
  })
  started.addEventListener('error', giveUp)
  return started
}

function giveUp(): void {
  worker?.terminate()
  worker = undefined
  const left = [...waiting.values()]
  waiting.clear()
  for (const resolve of left) resolve(undefined)
}
