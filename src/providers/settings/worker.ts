import { parentPort } from 'node:worker_threads'
import { answerSettings, type Reply, type SettingsRequest } from './answer.ts'

parentPort?.on('message', (ask: SettingsRequest) => {
  answerSettings(ask).then(
    (found) => parentPort?.postMessage(found),
    () => parentPort?.postMessage({ error: true } satisfies Reply),
  )
})
parentPort?.postMessage('ready')
