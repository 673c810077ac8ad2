import { startWorker } from './trusted.ts'

/** A worker that starts with its first task. A task that times out ends the worker, and with it every waiting task. */
export interface WorkerTasks<Task, Answer> {
  /** Resolves to `undefined` if the worker failed or timed out. */
  run(task: Task): Promise<Answer | undefined>
}

/** @param timeoutMs Time-out of one task, with its wait for the tasks before it. */
export function createWorkerTasks<Task extends object, Answer extends object>(
  workerUrl: string,
  timeoutMs: number,
): WorkerTasks<Task, Answer> {
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
    const started = startWorker(workerUrl)
    started.addEventListener('message', ({ data }: MessageEvent<Answer & { readonly id: number }>) => {
      waiting.get(data.id)?.(data)
      waiting.delete(data.id)
    })
    started.addEventListener('error', giveUp)
    return started
  }

  return {
    run: (task) => {
      worker ??= start()
      const id = ++lastId
      return new Promise((resolve) => {
        const timer = setTimeout(giveUp, timeoutMs)
        waiting.set(id, (answer) => {
          clearTimeout(timer)
          resolve(answer)
        })
        worker?.postMessage({ ...task, id })
      })
    },
  }
}
