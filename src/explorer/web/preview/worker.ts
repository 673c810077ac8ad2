import type { WorkerTasks } from './workers.ts'

const handlers: {
  readonly [Kind in keyof WorkerTasks]: (
    task: Parameters<WorkerTasks[Kind]>[0],
  ) => Promise<ReturnType<WorkerTasks[Kind]>>
} = {
  highlight: async ({ text, language }) => {
    const { highlightLines } = await import('./model/highlight.ts')
    return { lines: await highlightLines(text, language) }
  },
  markdown: async ({ text }) => (await import('./model/markdown-html.ts')).htmlOf(text),
  formula: async ({ tex, isDisplayed }) => ({
    formula: (await import('./model/formula.ts')).formulaOf(tex, isDisplayed),
  }),
}

interface Message {
  readonly id: number
  readonly kind: keyof WorkerTasks
  readonly task: never
}

addEventListener('message', ({ data }: MessageEvent<Message>) => {
  const answer = handlers[data.kind](data.task)
  // A reported error reaches the page as an error of the worker.
  answer.then((result) => postMessage({ id: data.id, ...result })).catch(reportError)
})
