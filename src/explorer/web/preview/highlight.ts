import workerUrl from './highlight-worker.ts?worker&url'
import type { TokenLine } from './model/tokens.ts'
import { createWorkerTasks } from './worker-tasks.ts'

/** A text longer than this, in characters, stays plain: a person does not read it for its colours. */
export const mostHighlighted = 1_000_000

/** A text that takes longer stays plain: there are texts on which regular expressions take for ever. */
const highlightTimeoutMs = 8000

interface Highlighted {
  readonly lines?: readonly TokenLine[]
}

const tasks = createWorkerTasks<{ readonly text: string; readonly language: string }, Highlighted>(
  workerUrl,
  highlightTimeoutMs,
)

/** The lines of a text as pieces with their classes, worked out beside the page. `undefined`: it stays plain. */
export async function highlight(text: string, language: string): Promise<readonly TokenLine[] | undefined> {
  return text.length > mostHighlighted ? undefined : (await tasks.run({ text, language }))?.lines
}
