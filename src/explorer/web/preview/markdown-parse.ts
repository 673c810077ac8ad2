import workerUrl from './markdown-worker.ts?worker&url'
import { type MarkdownHtml, plainHtml } from './model/plain-html.ts'
import { createWorkerTasks } from './worker-tasks.ts'

/** A document that takes longer to lay out is shown as the text that it is. */
const layoutTimeoutMs = 5000

const tasks = createWorkerTasks<{ readonly text: string }, MarkdownHtml>(workerUrl, layoutTimeoutMs)

/** Lays out a document beside the page: whatever is in it, the page goes on answering. */
export async function parseMarkdown(text: string): Promise<MarkdownHtml> {
  return (await tasks.run({ text })) ?? plainHtml(text)
}
