import workerUrl from './markdown-worker.ts?worker&url'
import { type MarkdownHtml, plainHtml } from './model/plain-html.ts'
import { startWorker } from './trusted.ts'

/** A document that takes longer to lay out is shown as the text that it is, in milliseconds. */
const deadlineMs = 5000

let worker: Worker | undefined
let lastId = 0
const waiting = new Map<number, (found: MarkdownHtml | undefined) => void>()

/** Lays out a document beside the page: whatever is in it, the page goes on answering. */
export function parseMarkdown(text: string): Promise<MarkdownHtml> {
  worker ??= start()
  const id = ++lastId
  return new Promise((resolve) => {
    const timer = setTimeout(giveUp, deadlineMs)
    waiting.set(id, (found) => {
      clearTimeout(timer)
      resolve(found ?? plainHtml(text))
    })
    worker?.postMessage({ id, text })
  })
}

function start(): Worker {
  const started = startWorker(workerUrl)
  started.addEventListener('message', ({ data }: MessageEvent<MarkdownHtml & { readonly id: number }>) => {
    waiting.get(data.id)?.(data)
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
