import { type MarkdownHtml, plainHtml } from './model/bounds.ts'
import type { FormulaElement } from './model/formula.ts'
import type { HighlightedLine } from './model/lines.ts'
import workerUrl from './worker.ts?worker&url'

/** The kinds of tasks of a worker, each with its answer. */
export interface WorkerTasks {
  highlight(task: { readonly text: string; readonly language: string }): {
    readonly lines: readonly HighlightedLine[] | undefined
  }
  markdown(task: { readonly text: string }): MarkdownHtml
  formula(task: { readonly tex: string; readonly isDisplayed: boolean }): {
    readonly formula: FormulaElement | undefined
  }
}

/**
 * Returns a function that runs tasks in a worker, which starts with the first task. A task that times out ends the worker, and with it
 * every waiting task.
 *
 * @param timeoutMs Time-out of one task, including the time that it waits for earlier tasks.
 */
export function createWorkerTask<Kind extends keyof WorkerTasks>(kind: Kind, timeoutMs: number) {
  type Answer = ReturnType<WorkerTasks[Kind]>
  let worker: Worker | undefined
  let lastId = 0
  const waiting = new Map<number, (answer: Answer | undefined) => void>()

  const giveUp = () => {
    worker?.terminate()
    worker = undefined
    const left = [...waiting.values()]
    waiting.clear()
    for (const resolve of left) resolve(undefined)
  }
  const start = () => {
    const started = startPageWorker(workerUrl)
    started.addEventListener('message', ({ data }: MessageEvent<Answer & { readonly id: number }>) => {
      waiting.get(data.id)?.(data)
      waiting.delete(data.id)
    })
    started.addEventListener('error', giveUp)
    return started
  }

  /** Resolves to `undefined` if the worker failed or timed out. */
  return (task: Parameters<WorkerTasks[Kind]>[0]): Promise<Answer | undefined> => {
    worker ??= start()
    const id = ++lastId
    return new Promise((resolve) => {
      const timer = setTimeout(giveUp, timeoutMs)
      waiting.set(id, (answer) => {
        clearTimeout(timer)
        resolve(answer)
      })
      worker?.postMessage({ id, kind, task })
    })
  }
}

/** The Trusted Types policy of the page for the URLs of its workers. */
interface ScriptPolicy {
  createScriptURL(url: string): unknown
}

interface Factory {
  createPolicy(name: string, rules: { createScriptURL(url: string): string }): ScriptPolicy
}

let policy: ScriptPolicy | undefined

function scriptUrl(url: string): string | URL {
  const { trustedTypes } = globalThis as { trustedTypes?: Factory }
  if (trustedTypes === undefined) return ownScript(url)
  policy ??= trustedTypes.createPolicy('hikidashi', { createScriptURL: ownScript })
  // Browsers accept the trusted URL in place of a string, contrary to the DOM types.
  return policy.createScriptURL(url) as string
}

function ownScript(url: string): string {
  const { href, origin } = new URL(url, document.baseURI)
  const assets = new URL('assets/', document.baseURI).href
  if (origin !== location.origin || !href.startsWith(assets))
    throw new TypeError('The URL of a worker must be a script that was built with the page.')
  return href
}

/** Starts a worker whose script was built with the page. @throws TypeError for any other script. */
export function startPageWorker(url: string): Worker {
  return new Worker(scriptUrl(url), { type: 'module' })
}

/** Maximum length of a highlighted text, in characters. A longer text stays plain. */
const mostHighlighted = 1_000_000

const highlightTimeoutMs = 8000

const highlightTask = createWorkerTask('highlight', highlightTimeoutMs)

/** Highlights a text in a worker: each line becomes pieces with classes. `undefined`: the text stays plain. */
export async function highlight(text: string, language: string): Promise<readonly HighlightedLine[] | undefined> {
  return text.length > mostHighlighted ? undefined : (await highlightTask({ text, language }))?.lines
}

/** Time-out of parsing. A document that takes longer is shown as plain text. */
const layoutTimeoutMs = 5000

const markdownTask = createWorkerTask('markdown', layoutTimeoutMs)

/** Parses a Markdown document in a worker. If the worker fails, returns the text as written. */
export async function parseMarkdown(text: string): Promise<MarkdownHtml> {
  return (await markdownTask({ text })) ?? plainHtml(text)
}
