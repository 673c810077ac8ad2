import { parentPort } from 'node:worker_threads'
import { type Answer, type Ask, answer } from './answer.ts'

/** What is posted for a question: the answer, or that there is none. An error has no text: it might hold a part of the file. */
export type Reply = Answer | { readonly error: true }

parentPort?.on('message', (ask: Ask) => {
  answer(ask).then(
    (found) => parentPort?.postMessage(found),
    () => parentPort?.postMessage({ error: true } satisfies Reply),
  )
})
parentPort?.postMessage('ready')
