import { parentPort } from 'node:worker_threads'
import { answerSettings, type SettingsReply, type SettingsRequest } from './answer.ts'

parentPort?.on('message', (ask: SettingsRequest) => {
  answerSettings(ask).then(
    (found) => parentPort?.postMessage(found),
    () => parentPort?.postMessage({ error: true } satisfies SettingsReply),
  )
})
parentPort?.postMessage('ready')
