import workerUrl from './markdown-worker.ts?worker&url'
import { type MarkdownHtml, plainHtml } from './model/bounds.ts'
import { createWorkerTasks } from './worker-tasks.ts'

/** Time-out of parsing. A document that takes longer is shown as plain text. */
const layoutTimeoutMs = 5000

const tasks = createWorkerTasks<{ readonly text: string }, MarkdownHtml>(workerUrl, layoutTimeoutMs)

/** Parses a document in a worker, so that the page keeps responding. */
export async function parseMarkdown(text: string): Promise<MarkdownHtml> {
  return (await tasks.run({ text })) ?? plainHtml(text)
}
