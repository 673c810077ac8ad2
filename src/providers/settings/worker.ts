import { parentPort } from 'node:worker_threads'
import { type Answer, type Ask, answer } from './answer.ts'

/** Reply to a request: the answer, or an error. The error has no text, because that might hold a part of the file. */
export type Reply = Answer | { readonly error: true }

parentPort?.on('message', (ask: Ask) => {
  answer(ask).then(
    (found) => parentPort?.postMessage(found),
    () => parentPort?.postMessage({ error: true } satisfies Reply),
  )
})
parentPort?.postMessage('ready')
