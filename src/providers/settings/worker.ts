import { parentPort } from 'node:worker_threads'
import { answerSettings, type SettingsReply, type SettingsRequest } from './answer.ts'

parentPort?.on('message', (ask: SettingsRequest) => {
  answerSettings(ask).then(
    (answer) => parentPort?.postMessage(answer),
    () => parentPort?.postMessage({ error: true } satisfies SettingsReply),
  )
})
parentPort?.postMessage('ready')
