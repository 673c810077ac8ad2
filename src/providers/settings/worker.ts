import { parentPort } from 'node:worker_threads'
import { type Ask, answer, type Reply } from './answer.ts'

parentPort?.on('message', (ask: Ask) => {
  answer(ask).then(
    (found) => parentPort?.postMessage(found),
    () => parentPort?.postMessage({ error: true } satisfies Reply),
  )
})
parentPort?.postMessage('ready')
