import { parentPort } from 'node:worker_threads'
import { answer, type Reply, type SettingsRequest } from './answer.ts'

parentPort?.on('message', (ask: SettingsRequest) => {
  answer(ask).then(
    (found) => parentPort?.postMessage(found),
    () => parentPort?.postMessage({ error: true } satisfies Reply),
  )
})
parentPort?.postMessage('ready')
