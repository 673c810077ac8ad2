import workerUrl from './highlight-worker.ts?worker&url'
import type { TokenLine } from './model/lines.ts'
import { createWorkerTasks } from './worker-tasks.ts'

/** Maximum length of a highlighted text, in characters: nobody reads a longer one for its colours. */
export const mostHighlighted = 1_000_000

/** Time-out of highlighting, because some texts make regular expressions run very long. */
const highlightTimeoutMs = 8000

interface Highlighted {
  readonly lines?: readonly TokenLine[]
}

const tasks = createWorkerTasks<{ readonly text: string; readonly language: string }, Highlighted>(
  workerUrl,
  highlightTimeoutMs,
)

/** Splits the lines of a text into pieces with their classes, in a worker. `undefined`: the text stays plain. */
export async function highlight(text: string, language: string): Promise<readonly TokenLine[] | undefined> {
  return text.length > mostHighlighted ? undefined : (await tasks.run({ text, language }))?.lines
}
